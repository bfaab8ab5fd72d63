"""Importance weights of impressions: target exposure over logging exposure, clipped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.errors import RefusedError
from truerank.core.terms import Terms
from truerank.data.impressions import Impressions, Logged
from truerank.exposure.policies.policies import Policy, Rows

BLOCK = 1 << 17  # rows whose exposures stay in cache


@dataclass(frozen=True, slots=True)
class Weighing:
    """A log, and how much a target and the logging policy expose each of its rows.

    w = ε · min(m, 1/ε0) with m the clip (paper 3, eq. 8 and section 6.2); m = ∞ is the importance weight, m = 1 leaves
    the raw label. A view (or a reward) where the logging policy exposes nothing cannot be and is refused, whatever the
    target shows; a displayed row that earned nothing there weighs nothing.
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
        """ε and 1/ε0 of rows; 1/ε0 is 0 where ε0 is: nothing was viewed there."""
        target, logged = self.target.exposure(rows), self.logging.exposure(rows)
        never = logged == 0
        if never.any():
            self._refuse_impossible(never, rows)
            return target, np.divide(1.0, logged, out=np.zeros(len(logged)), where=~never)
        return target, 1.0 / logged

    def check_views(self) -> None:
        """Refuse views and rewards where the logging policy exposes nothing, in any unit and whatever the target."""
        for start in range(0, len(self.log), BLOCK):
            rows = slice(start, min(start + BLOCK, len(self.log)))
            never = self.logging.exposure(rows) == 0
            if never.any():
                self._refuse_impossible(never, rows)

    def _refuse_impossible(self, never: Bools, rows: Rows) -> None:
        place = np.flatnonzero(never) if rows is None else np.arange(len(self.log))[rows][never]
        log = self.log
        if not self.views_known:
            seen = np.logical_or.reduce([values[place] != 0 for values in log.rewards.values()])
        else:
            seen = np.ones(len(place), dtype=bool) if log.viewed is None else log.viewed[place]
        if seen.any():
            raise RefusedError(self._impossible(int(place[int(np.argmax(seen))])))

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

    def _impossible(self, row: int) -> str:
        log = self.log
        place = "" if log.position is None else f" at position {log.position[row]}"
        what = "was viewed" if self.views_known else "has a reward"
        return (
            f"{log.source}: an item{place} {what} although the logging policy gives it no exposure: its weight is "
            "infinite, and dropping it would lose rewards in silence. Use a position model without that cut-off, or "
            "leave such rows out of the log to count rewards above the cut-off only."
        )


def clipped(target: Floats, inverse: Floats, clip: float) -> Floats:
    """ε · min(m, 1/ε0)."""
    limited: Any = inverse if math.isinf(clip) else np.minimum(inverse, clip)
    return np.asarray(target * limited, dtype=np.float64)
