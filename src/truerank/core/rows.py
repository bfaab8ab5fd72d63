"""What intervals and warnings need from single rows, beside the sums per unit in Terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.record import record


class Column(StrEnum):
    """What is summed over the rows of a unit, or known of it; ω weight, d discount, y gain.

    GAIN      Σ ω d y: the gain of the list
    DISCOUNT  Σ ω d: the discount that was observed
    RELEVANT  Σ ω y: relevant items, in the list or not
    MISSED    Σ ω (1 - d) y: relevant items beside the list
    BESIDE    Σ ω (1 - d): candidates beside the list that were observed
    TOTAL     Σ d over all rank positions, which is known
    OTHERS    N - Σ d, known where the number of candidates is
    UNITS     1
    VIEWS     the number of viewed rows of a session
    """

    GAIN = "gain"
    DISCOUNT = "discount"
    RELEVANT = "relevant"
    MISSED = "missed"
    BESIDE = "beside"
    TOTAL = "total"
    OTHERS = "others"
    UNITS = "units"
    VIEWS = "views"


@record
class SampledRows:
    """What an interval for exactly these units needs: the judged rows and how they were drawn.

    Row i of unit u adds `sums[i]` (before expansion) to the first sums of its unit; rows that would add zeros may be
    left out. `n_judged` of `n_candidates` were drawn uniformly, or each with probability `rate`; or each row with its
    own `chance`, as many of a unit as were judged.
    """

    unit: Ints
    sums: Floats
    n_judged: Floats
    n_candidates: Floats
    rate: float | None = None
    chance: Floats | None = None

    @property
    def num(self) -> Floats:
        return self.sums[:, 0]

    @property
    def den(self) -> Floats:
        return self.sums[:, 1]

    @staticmethod
    def concatenate(parts: Sequence[SampledRows | None], n_units: Sequence[int]) -> SampledRows | None:
        """The rows of all parts, None unless every part has kept them."""
        whole = [part for part in parts if part is not None]
        if not whole or len(whole) < len(parts):
            return None
        shift = np.cumsum([0, *n_units])
        return SampledRows(
            unit=np.concatenate([part.unit + s for part, s in zip(whole, shift, strict=False)]),
            sums=np.concatenate([part.sums for part in whole]),
            n_judged=np.concatenate([part.n_judged for part in whole]),
            n_candidates=np.concatenate([part.n_candidates for part in whole]),
            rate=whole[0].rate,
            chance=_joined([part.chance for part in whole]),
        )

    def take(self, order: Ints) -> SampledRows:
        """These units in this order, and rows with their units."""
        place = np.full(len(self.n_judged), -1)
        place[order] = np.arange(len(order))
        unit = place[self.unit]
        rows = np.argsort(unit, kind="stable")[np.count_nonzero(unit < 0) :]
        return replace(
            self,
            unit=unit[rows],
            sums=self.sums[rows],
            n_judged=self.n_judged[order],
            n_candidates=self.n_candidates[order],
            chance=None if self.chance is None else self.chance[rows],
        )


def _joined(parts: Sequence[Floats | None]) -> Floats | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present and len(present) == len(parts) else None


@record
class Weighting:
    """How unequal the weights ω of rows are: their number, Σω, Σω², the heaviest, and the weight that was cut."""

    rows: int
    total: float
    squares: float
    heaviest: float
    cut: float

    @classmethod
    def of(cls, weight: Floats, *, cut: float = 0.0) -> Weighting:
        """Of the rows that carry weight.

        >>> found = Weighting.of(np.array([1.0, 1.0, 0.0, 2.0]))
        >>> found.rows, found.largest, round(found.effective, 3)
        (3, 0.5, 2.667)
        """
        carried = weight[weight > 0]
        return cls(len(carried), float(carried.sum()), float((carried**2).sum()), float(carried.max(initial=0.0)), cut)

    @classmethod
    def unknown(cls) -> Weighting:
        """There are weights, but how unequal they are was not counted."""
        return cls(0, math.nan, math.nan, math.nan, math.nan)

    @property
    def effective(self) -> float:
        """Kish's number of equally weighted rows that would be worth as much, (Σω)² / Σω²."""
        return 0.0 if self.squares == 0 else self.total**2 / self.squares

    @property
    def largest(self) -> float:
        """The share of the heaviest row."""
        return self.heaviest / self.total if self.total > 0 else 0.0

    @property
    def lost(self) -> float:
        """The share of all weight that a clip took away.

        >>> Weighting.of(np.array([2.0, 4.0]), cut=2.0).lost
        0.25
        """
        before = self.total + self.cut
        return self.cut / before if before > 0 else 0.0

    @staticmethod
    def merge(parts: Sequence[Weighting | None]) -> Weighting | None:
        """Of all parts together, None unless every part has it."""
        counted = [part for part in parts if part is not None]
        if not counted or len(counted) < len(parts):
            return None
        return Weighting(
            rows=sum(part.rows for part in counted),
            total=math.fsum(part.total for part in counted),
            squares=math.fsum(part.squares for part in counted),
            heaviest=max(part.heaviest for part in counted),
            cut=math.fsum(part.cut for part in counted),
        )
