"""Sums over lists that predictions assist: what they say of every place, corrected by the judged ones.

Symbols of one list or of what is beside it: places with worth w, predictions ŷ known of some of them (c), judged rows S
that stand for α = 1 / π rows like them. The sum of w y over all places is estimated by

    Σ_S α w y + â (Σ w - Σ_S α w) + b̂ (Σ w ŷ - Σ_S α w ŷ)

with (â, b̂) least squares of y on ŷ over judged rows, weights v = w² α (α - 1) (Särndal, Swensson and Wretman 1992; with
a slope of the data's own, as PPI++ of Angelopoulos, Duchi and Zrnic 2023 has). A slope that a few dozen rows tell costs
more than it brings where it is near 0, so that of least squares is drawn towards 0 as Breiman's garrote (1995) does:

    b̂ = b max(0, 1 - doubt / t²),   t² = (n - 2) ρ² / (1 - ρ²),   n = expected rows (Σ v)² / (rows Σ v²)

with ρ the correlation of y and ŷ under these weights. Places without a prediction have the mean of those with one; the
slope is of judged rows with a prediction, the level of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, sums_by
from truerank.core.errors import RefusedError
from truerank.core.metric import Additive
from truerank.core.ranking import JudgedChunk, Pool, RankView
from truerank.core.terms import quotients
from truerank.estimators.biased.rewards import Predicted, at_rows, known_or_one, ranked_lists
from truerank.estimators.sums import worth_of_list
from truerank.metrics.worth import expected_worth

ALIKE = 1e-9  # predictions that differ by less than this share of their mean square are one

# of judged rows, in a stratum: what they are worth, what is predicted, and what least squares needs
SAMPLED = (
    "found", "listed", "covered", "foreseen",
    "weight", "weight_x", "weight_xx", "weight_y", "weight_xy", "weight_yy", "weight_squared", "weight_rows",
    "weight_all", "weight_y_all",
)  # fmt: skip
KNOWN = ("places", "covered_places", "foreseen_places")
FITTED = slice(SAMPLED.index("weight"), SAMPLED.index("weight_rows") + 1)
STEP = 1e-30
LINE = 2  # rows that any line goes through


@dataclass(frozen=True, slots=True)
class Help:
    """What predictions did for lists: the share of places that have one, and of the slope on them that is kept."""

    covered: float
    kept: float


def assisted_sum(columns: Sequence[npt.NDArray[Any]], *, plain: bool, doubt: float, rows: float) -> npt.NDArray[Any]:
    """The estimated sum of w y over the places of a stratum; with `plain` from judged rows alone (Hájek).

    `rows` are expected to be judged there: known before any is seen, and the same however units are weighted. Complex
    numbers pass through it, so that its slopes are known to the last digits.
    """
    (found, listed, covered, foreseen, one, x, xx, y, xy, _, _, _, every, every_y,
     places, covered_places, foreseen_places) = columns  # fmt: skip
    with np.errstate(invalid="ignore", divide="ignore"):
        used = _able(columns, plain=plain)
        kept = _kept(columns, used, doubt, rows)
        mean = np.where(used, foreseen_places / covered_places, 0.0)
        slope = np.where(used, kept * (one * xy - x * y) / (one * xx - x * x), 0.0)
        level = np.where(used, (every_y - slope * (x + mean * (every - one))) / every, found / listed)
        missing = places - listed
        apart = mean * places - foreseen - mean * (listed - covered)
        total = found + level * missing + slope * apart
        return np.where(listed.real > 0, total, np.where(places.real > 0, math.nan, 0.0))


def help_of(columns: Sequence[npt.NDArray[Any]], *, plain: bool, doubt: float, rows: float) -> Help:
    """What predictions do for a stratum with these totals."""
    places, covered = (float(columns[-at].real[0]) for at in (3, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        kept = _kept(columns, _able(columns, plain=plain), doubt, rows)
    return Help(covered / places if places > 0 else 0.0, float(kept.real[0]))


def _able(columns: Sequence[npt.NDArray[Any]], *, plain: bool) -> npt.NDArray[Any]:
    """Whether there is something to fit: places with a prediction, and judged rows of which it differs."""
    one, x, xx = (each.real for each in columns[FITTED][:3])
    differ = one * xx - x * x > ALIKE * one * xx
    return np.asarray((columns[-2].real > 0) & differ & (not plain))


def _kept(
    columns: Sequence[npt.NDArray[Any]], able: npt.NDArray[Any], doubt: float, expected: float
) -> npt.NDArray[Any]:
    """The part of the slope of least squares that is kept, max(0, 1 - doubt / t²); none if any line fits."""
    if doubt == 0:
        return np.where(able, 1.0, 0.0)
    one, x, xx, y, xy, yy, squares, counted = columns[FITTED]
    spread, together, varied = one * xx - x * x, one * xy - x * y, one * yy - y * y
    explained, whole = together * together, spread * varied
    rows = expected * one * one / (squares * counted)
    told = able & (rows.real > LINE) & (explained.real > 0)
    rest = np.where((whole - explained).real > ALIKE * whole.real, whole - explained, 0.0)
    share = 1.0 - doubt * rest / np.where(told, (rows - LINE) * explained, 1.0)
    return np.where(told & (share.real > 0), share, 0.0)


def slopes(function: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], totals: Floats) -> Floats:
    """The gradient of a function of totals [sets x columns] by a complex step (Squire and Trapp 1998): no differences.

    >>> slopes(lambda sums: sums[:, 0] / sums[:, 1], np.array([1.0, 2.0])).tolist()
    [0.5, -0.25]
    """
    stepped = np.tile(totals.astype(np.complex128), (len(totals), 1))
    stepped[np.diag_indices(len(totals))] += 1j * STEP
    return np.asarray(function(stepped).imag / STEP)


def _linear(sums: Floats, slope: Floats) -> Floats:
    """Σ slope x column, column by column: the same bits for a row whatever the others."""
    found = np.zeros(len(sums))
    for column, each in zip(sums.T, slope.tolist(), strict=True):
        found += each * column
    return found


@dataclass(frozen=True, slots=True)
class AssistedMean:
    """The assisted sum over lists, divided by the number of units."""

    plain: bool = False
    doubt: float = 0.0
    rows: float = 0.0  # expected to be judged in lists

    columns: ClassVar[tuple[str, ...]] = ("numerator", "denominator", *SAMPLED[2:], "total", *KNOWN[1:], "units")

    def values(self, totals: Floats) -> Floats:
        return np.asarray(self._values(totals).real, dtype=np.float64)

    def _values(self, totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        with np.errstate(invalid="ignore", divide="ignore"):
            found = assisted_sum(list(totals.T[:-1]), plain=self.plain, doubt=self.doubt, rows=self.rows)
            return np.asarray(found / totals[:, -1])

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        return _linear(sums, slopes(self._values, totals))

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        return np.asarray(sums[:, 1] / totals[1])

    def help(self, totals: Floats) -> Help:
        """What predictions do for lists."""
        return help_of(list(totals[None].T[:-1]), plain=self.plain, doubt=self.doubt, rows=self.rows)


@dataclass(frozen=True, slots=True)
class AssistedShare:
    """Â / (Â + Ĉ): relevant items in lists and beside them, each an assisted sum; post-stratified recall if `plain`."""

    plain: bool = False
    doubt: float = 0.0
    rows: tuple[float, float] = (0.0, 0.0)  # expected to be judged in lists, and beside them

    columns: ClassVar[tuple[str, ...]] = (
        "numerator", "denominator", *SAMPLED[1:], *(f"beside_{name}" for name in SAMPLED),
        *KNOWN, *(f"beside_{name}" for name in KNOWN),
    )  # fmt: skip

    def values(self, totals: Floats) -> Floats:
        return np.asarray(self._values(totals).real, dtype=np.float64)

    def _values(self, totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        top, rest = (
            assisted_sum(list(totals.T[of]), plain=self.plain, doubt=self.doubt, rows=rows)
            for of, rows in zip((INSIDE, OUTSIDE), self.rows, strict=True)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where((top + rest).real > 0, top / (top + rest), math.nan)

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        return _linear(sums, slopes(self._values, totals))

    def alone(self, sums: Floats) -> Floats:
        """As post-stratified: of judged relevant items those in the list."""
        return quotients(sums)

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        shares = [sums[:, at] / totals[at] for at in (RELEVANT, INSIDE[1], OUTSIDE[1]) if totals[at] > 0]
        return np.max(shares, axis=0) if shares else np.zeros(len(sums))

    def help(self, totals: Floats) -> Help:
        """What predictions do for lists; beside them there are more rows."""
        return help_of(list(totals[None].T[INSIDE]), plain=self.plain, doubt=self.doubt, rows=self.rows[0])


_AT = {name: at for at, name in enumerate(AssistedShare.columns)}
INSIDE = [0, *(_AT[name] for name in (*SAMPLED[1:], *KNOWN))]
RELEVANT = _AT["denominator"]
OUTSIDE = [_AT[f"beside_{name}"] for name in (*SAMPLED, *KNOWN)]


def sampled(gain: Floats, worth: Floats, foreseen: Floats, weight: Floats) -> list[Floats]:
    """What each judged row adds to the sums of a stratum, in the order of `SAMPLED`, before it is weighted by α."""
    known = ~np.isnan(foreseen)
    x = np.where(known, foreseen, 0.0)
    every = worth**2 * (weight - 1.0)
    v = np.where(known, every, 0.0)
    fitted = [v, v * x, v * x * x, v * gain, v * x * gain, v * gain * gain, weight * v * v, (every > 0) / weight]
    return [gain * worth, worth, worth * known, worth * x, *fitted, every, every * gain]


# ------------------------------------------------------------------------------------------------------- what is listed


@dataclass(frozen=True, slots=True)
class ForeseenLists:
    """Of each judged row what is predicted; of units Σ w, Σ w and Σ w ŷ of places with a prediction, and beside lists.

    w is divided as the metric is.
    """

    at_rows: Floats
    inside: tuple[Floats, Floats, Floats]
    outside: tuple[Floats, Floats, Floats]


def foreseen_lists(
    chunk: JudgedChunk, view: RankView, questions: Sequence[tuple[Additive, Predicted]]
) -> list[ForeseenLists]:
    """What is predicted of all candidates, for each metric; every list is ranked once for all of them."""
    log, candidates = chunk.labels, chunk.pools[Pool.CATALOGUE]
    if view.scores is None:
        raise RefusedError("predictions need the scores of whole lists, not only the ranks of judged items.")
    if candidates.only is None and candidates.n_items != len(log.items):
        raise RefusedError(
            "assisted predicts the label of every candidate, but not all items are known by name. "
            "Give the catalogue with {option:items FILE}."
        )
    sums = [np.zeros((4, log.n_units)) for _ in questions]
    for units, unit, item, ranks in ranked_lists(view.scores, view, log=log, candidates=candidates):
        for into, (metric, predicted) in zip(sums, questions, strict=True):
            said = predicted.block(units)[unit, item]
            known = ~np.isnan(said)
            said = np.where(known, said, 0.0)
            worth = expected_worth(metric, ranks)
            for at, values in enumerate((worth * known, worth * said, (1.0 - worth) * known, (1.0 - worth) * said)):
                into[at, units] = sums_by(unit, values, n=len(units))
    found = []
    for into, (metric, predicted) in zip(sums, questions, strict=True):
        places, divisor = worth_of_list(metric, view.ranks), known_or_one(metric, view.ranks)
        inside = (places / divisor, into[0] / divisor, into[1] / divisor)
        outside = (view.ranks.n_candidates - places, into[2], into[3])
        found.append(ForeseenLists(at_rows(predicted, log), inside, outside))
    return found
