"""Importance weights of impressions: target exposure over logging exposure, clipped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.arrays import Bools, Floats, Ints, sums_by
from truerank.core import Terms
from truerank.data.impressions import Impressions, Logged
from truerank.errors import RefusedError
from truerank.exposure.policies import Policy, Rows


@dataclass(frozen=True, slots=True)
class Weighing:
    """A log, and how much a target and the logging policy expose each of its rows.

    w = ε · min(m, 1/ε0) with m the clip (paper 3, eq. 8 and section 6.2); m = ∞ is the importance weight, m = 1 leaves
    the raw label. A row that neither policy exposes weighs nothing.
    """

    log: Impressions
    target: Policy
    logging: Policy

    @property
    def views_known(self) -> bool:
        return self.log.logged is Logged.VIEWED

    def viewed_rows(self) -> Ints | None:
        """The rows that were viewed, None for all of them."""
        return None if self.log.viewed is None else np.flatnonzero(self.log.viewed)

    def rewarded(self, reward: str) -> Ints:
        """The rows with a reward: no others enter a sum of rewards."""
        return np.flatnonzero(self.log.reward(reward))

    def parts(self, rows: Rows = None) -> tuple[Floats, Floats]:
        """ε and 1/ε0 of rows; 1/ε0 is 0 where both are 0."""
        target, logged = self.target.exposure(rows), self.logging.exposure(rows)
        never = logged == 0
        if never.any():
            if (never & (target > 0)).any():
                row = int(np.argmax(never & (target > 0)))
                place = np.arange(len(self.log)) if rows is None else np.arange(len(self.log))[rows]
                raise RefusedError(self._unsupported(int(place[row])))
            return target, np.divide(1.0, logged, out=np.zeros(len(logged)), where=~never)
        return target, 1.0 / logged

    def weights(self, clip: float = math.inf, rows: Ints | None = None) -> Floats:
        """The weight of each row.

        >>> clipped(np.array([0.5, 1.0]), np.array([4.0, 2.0]), 3.0).tolist()
        [1.5, 2.0]
        """
        target, inverse = self.parts(rows)
        return clipped(target, inverse, clip)

    def by_unit(self, values: Floats, rows: Ints | None = None) -> Floats:
        """The sum over each unit of values of rows."""
        unit = self.log.unit if rows is None else self.log.unit[rows]
        return sums_by(unit, values, n=self.log.n_units)

    def n_viewed(self) -> Floats:
        rows = self.viewed_rows()
        return np.bincount(self.log.unit if rows is None else self.log.unit[rows], minlength=self.log.n_units).astype(
            np.float64
        )

    def terms(self, num: Floats, den: Floats, *, total: Floats | None = None, kept: Bools | None = None) -> Terms:
        """Terms of the units whose ranking is known."""
        defined = self.target.defined() if kept is None else self.target.defined() & kept
        made = Terms(num, den, np.ones(len(num), dtype=bool), self.log.cluster, total=total)
        return made if defined.all() else made.restrict(defined)

    def _unsupported(self, row: int) -> str:
        log = self.log
        place = "" if log.position is None else f" at position {log.position[row]}"
        return (
            f"{log.source}: an item{place} was logged although the logging policy gives it no exposure, and "
            f"{self.target.name} would show it: its weight is infinite. Use a position model without that cut-off, or "
            "leave such rows out."
        )


def clipped(target: Floats, inverse: Floats, clip: float) -> Floats:
    """ε · min(m, 1/ε0)."""
    limited: Any = inverse if math.isinf(clip) else np.minimum(inverse, clip)
    return np.asarray(target * limited, dtype=np.float64)
