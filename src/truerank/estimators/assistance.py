"""Sums over lists that predictions assist: what they say of every place, corrected by the judged ones.

Symbols of one list or of what is beside it: places with worth w, predictions ŷ known of some of them (c), judged rows S
that stand for α = 1 / π rows like them. The sum of w y over all places is estimated by

    Σ_S α w y + â (Σ w - Σ_S α w) + b̂ (Σ w ŷ - Σ_S α w ŷ)

with (â, b̂) least squares of y on ŷ over judged rows, weights v = w² α (α - 1) (Särndal, Swensson and Wretman 1992; with
a slope of the data's own, as PPI++ of Angelopoulos, Duchi and Zrnic 2023 has). A slope that a few dozen rows tell costs
more than it brings where it is near 0, so that of least squares is drawn towards 0 as Breiman's garrote (1995) does:

    b̂ = b max(0, 1 - doubt / t²),   t² = (n - 2) ρ² / (1 - ρ²),   n = (Σ v)² / Σ v²

with ρ the correlation of y and ŷ under these weights. Places without a prediction have the mean of those with one; the
slope is of judged rows with a prediction, the level of all. Predictions of judged rows alone predict nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.errors import RefusedError
from truerank.core.metric import Additive
from truerank.core.ranking import JudgedChunk, Pool, RankView
from truerank.core.terms import HitMove, quotients
from truerank.core.wording import option
from truerank.estimators.rewards import Predicted, at_rows, known_or_one, ranked_lists
from truerank.estimators.rows import total_discount
from truerank.metrics.worth import expected_worth

ALIKE = 1e-9  # predictions that differ by less than this share of their mean square are one

# of judged rows, in a stratum: what they are worth, what is predicted, and what least squares needs
SAMPLED = (
    "found", "listed", "covered", "foreseen",
    "weight", "weight_x", "weight_xx", "weight_y", "weight_xy", "weight_yy", "weight_squared", "weight_rows",
    "weight_all", "weight_y_all", "squared", "covered_rows",
)  # fmt: skip
KNOWN = ("places", "covered_places", "foreseen_places")
FITTED = slice(SAMPLED.index("weight"), SAMPLED.index("weight_rows") + 1)
STEP = 1e-30
LINE = 2  # rows that any line goes through


class NotAssisted(StrEnum):
    """Why a value takes nothing from predictions.

    FEW_ROWS   fewer labelled rows in lists than a slope is fitted to
    ALIKE      predictions of the labelled rows in lists do not differ
    NO_SLOPE   labels of these rows do not go with predictions beyond sampling error
    """

    FEW_ROWS = "few-rows"
    ALIKE = "alike"
    NO_SLOPE = "no-slope"


@dataclass(frozen=True, slots=True)
class Help:
    """What predictions did for lists: the share of places that have one, and of the slope on them that is kept.

    `rows` are the labelled rows of the lists; `why_not` says why nothing of the slope is kept.
    """

    covered: float
    kept: float
    rows: int
    why_not: NotAssisted | None


def assisted_sum(columns: Sequence[npt.NDArray[Any]], *, few: npt.NDArray[Any], doubt: float) -> npt.NDArray[Any]:
    """The estimated sum of w y over the places of a stratum; where rows are `few` from these alone (Hájek).

    Complex numbers pass through it, so that its slopes are known to the last digits.
    """
    (found, listed, covered, foreseen, one, x, xx, y, xy, _, _, _, every, every_y, _, _,
     places, covered_places, foreseen_places) = columns  # fmt: skip
    with np.errstate(invalid="ignore", divide="ignore"):
        used = _able(columns) & ~few
        kept = _kept(columns, used, doubt)
        mean = np.where(used, foreseen_places / covered_places, 0.0)
        slope = np.where(used, kept * (one * xy - x * y) / (one * xx - x * x), 0.0)
        level = np.where(used, (every_y - slope * (x + mean * (every - one))) / every, found / listed)
        missing = places - listed
        apart = mean * places - foreseen - mean * (listed - covered)
        total = found + level * missing + slope * apart
        return np.where(listed.real > 0, total, np.where(places.real > 0, math.nan, 0.0))


def rows_of(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """How many labelled rows with π < 1 a stratum has."""
    return np.asarray(columns[SAMPLED.index("weight_rows")].real)


def help_of(columns: Sequence[npt.NDArray[Any]], *, few: npt.NDArray[Any], doubt: float) -> Help:
    """What predictions do for a stratum with these totals."""
    places, covered = (float(columns[-at].real[0]) for at in (3, 2))
    able = _able(columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        kept = float(_kept(columns, able & ~few, doubt).real[0])
    why_not = NotAssisted.FEW_ROWS if few[0] else NotAssisted.NO_SLOPE if able[0] else NotAssisted.ALIKE
    rows = round(float(rows_of(columns)[0]))
    return Help(covered / places if places > 0 else 0.0, kept, rows, None if kept > 0 else why_not)


def hit_move(columns: Sequence[npt.NDArray[Any]]) -> float:
    """How far one more hit among the labelled rows of a stratum would move its sum: Σ w / n, n = (Σ α w)² / Σ (α w)².

    n are the equally weighted rows that those of the stratum are worth.
    """
    listed, squared, places = (float(columns[at].real[0]) for at in (1, SAMPLED.index("squared"), -3))
    return places * squared / listed**2 if listed > 0 else math.nan


def _able(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Whether there is something to fit: labelled rows of which the prediction differs; and where places are without a
    label, some of them with a prediction."""
    one, x, xx = (each.real for each in columns[FITTED][:3])
    differ = one * xx - x * x > ALIKE * one * xx
    places, covered = columns[-3].real, columns[-2].real
    covered_rows = columns[SAMPLED.index("covered_rows")].real * (1 + ALIKE)
    return np.asarray((covered > 0) & differ & ((covered > covered_rows) | (covered_rows >= places)))


def _kept(columns: Sequence[npt.NDArray[Any]], able: npt.NDArray[Any], doubt: float) -> npt.NDArray[Any]:
    """The part of the slope of least squares that is kept, max(0, 1 - doubt / t²); none if any line fits.

    The number of rows is a constant, not a sum that moves with the weights of units: otherwise influences would not
    add up to 0.
    """
    if doubt == 0:
        return np.where(able, 1.0, 0.0)
    one, x, xx, y, xy, yy, squares, counted = columns[FITTED]
    spread, together, varied = one * xx - x * x, one * xy - x * y, one * yy - y * y
    explained, whole = together * together, spread * varied
    rows = counted.real * one * one / (squares * counted)
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
    """The assisted sum over lists, divided by the number of units; hajek below `fewest` labelled rows in lists."""

    fewest: float = 0.0
    doubt: float = 0.0
    graded: bool = False  # gains are not 0 or 1

    columns: ClassVar[tuple[str, ...]] = ("numerator", "denominator", *SAMPLED[2:], "total", *KNOWN[1:], "units")

    def values(self, totals: Floats) -> Floats:
        return np.asarray(self._values(totals).real, dtype=np.float64)

    def _values(self, totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        columns = list(totals.T[:-1])
        with np.errstate(invalid="ignore", divide="ignore"):
            found = assisted_sum(columns, few=rows_of(columns) < self.fewest, doubt=self.doubt)
            return np.asarray(found / totals[:, -1])

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        return _linear(sums, slopes(self._values, totals))

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        return np.asarray(sums[:, 1] / totals[1])

    def help(self, totals: Floats) -> Help:
        """What predictions do for lists."""
        columns = list(totals[None].T[:-1])
        return help_of(columns, few=rows_of(columns) < self.fewest, doubt=self.doubt)

    def one_hit_more(self, totals: Floats) -> HitMove:
        size = _typical_gain(totals) if self.graded else 1.0
        return HitMove(size * hit_move(list(totals[None].T[:-1])) / float(totals[-1]), self.help(totals).kept > 0)


def _typical_gain(totals: Floats) -> float:
    """Σ v y² / Σ v y over the labelled rows of lists, the gain of a typical hit; NaN where there is none."""
    gain, squared_gain = (float(totals[AssistedMean.columns.index(name)]) for name in ("weight_y", "weight_yy"))
    return squared_gain / gain if gain > 0 else math.nan


@dataclass(frozen=True, slots=True)
class AssistedShare:
    """Â / (Â + Ĉ): relevant items in lists and beside them, each an assisted sum.

    Post-stratified recall where fewer than `fewest` labelled rows are in lists, or beside them.
    """

    fewest: float = 0.0
    doubt: float = 0.0

    columns: ClassVar[tuple[str, ...]] = (
        "numerator", "denominator", *SAMPLED[1:], *(f"beside_{name}" for name in SAMPLED),
        *KNOWN, *(f"beside_{name}" for name in KNOWN),
    )  # fmt: skip

    def values(self, totals: Floats) -> Floats:
        return np.asarray(self._values(totals).real, dtype=np.float64)

    def _values(self, totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        top, rest = self._sums(totals)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where((top + rest).real > 0, top / (top + rest), math.nan)

    def _sums(self, totals: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        few = self._few(totals)
        top, rest = (assisted_sum(list(totals.T[of]), few=few, doubt=self.doubt) for of in (INSIDE, OUTSIDE))
        return top, rest

    def _few(self, totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        inside, outside = (rows_of(list(totals.T[of])) for of in (INSIDE, OUTSIDE))
        return np.asarray(np.minimum(inside, np.where(outside > 0, outside, inside)) < self.fewest)

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
        return help_of(list(totals[None].T[INSIDE]), few=self._few(totals[None]), doubt=self.doubt)

    def one_hit_more(self, totals: Floats) -> HitMove:
        top, rest = (float(each[0]) for each in self._sums(totals[None]))
        outside = help_of(list(totals[None].T[OUTSIDE]), few=self._few(totals[None]), doubt=self.doubt)
        move = hit_move(list(totals[None].T[INSIDE])) * rest / (top + rest) ** 2 if top + rest > 0 else math.nan
        return HitMove(move, self.help(totals).kept > 0 or outside.kept > 0)


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
    kish = [worth**2 * weight, worth * known / weight]
    return [gain * worth, worth, worth * known, worth * x, *fitted, every, every * gain, *kish]


# ------------------------------------------------------------------------------------------------------- what is listed


@dataclass(frozen=True, slots=True)
class ListedPredictions:
    """Of units: Σ w over places; Σ w and Σ w ŷ over those with a prediction, and Σ w², Σ w² ŷ and Σ w² ŷ² over these.

    w is divided as the metric is.
    """

    sums: tuple[Floats, Floats, Floats]
    squares: tuple[Floats, Floats, Floats]


@dataclass(frozen=True, slots=True)
class ForeseenLists:
    """Of each judged row what is predicted; and what is predicted of lists, and of all candidates (w = 1)."""

    at_rows: Floats
    inside: ListedPredictions
    candidates: ListedPredictions

    @property
    def outside(self) -> tuple[Floats, Floats, Floats]:
        """The sums of what is beside lists, where these are not divided."""
        places, covered, foreseen = (
            whole - part for whole, part in zip(self.candidates.sums, self.inside.sums, strict=True)
        )
        return places, covered, foreseen


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
            f"Give the catalogue with {option('items FILE')}."
        )
    rows = {id(predicted): at_rows(predicted, log) for _, predicted in questions}
    insides = [_PredictionSums(np.zeros((5, log.n_units))) for _ in questions]
    everything = {key: _PredictionSums(np.zeros((5, log.n_units))) for key in rows}
    for units, unit, item, ranks in ranked_lists(view.scores, view, log=log, candidates=candidates):
        said = {id(predicted): predicted.block(units)[unit, item] for _, predicted in questions}
        for key, values in said.items():
            everything[key].add(units, unit, np.ones(len(unit)), values)
        for inside, (metric, predicted) in zip(insides, questions, strict=True):
            inside.add(units, unit, expected_worth(metric, ranks), said[id(predicted)])
    found = []
    for inside, (metric, predicted) in zip(insides, questions, strict=True):
        places, divisor = total_discount(metric, view.ranks), known_or_one(metric, view.ranks)
        every = everything[id(predicted)].listed(view.ranks.n_candidates, np.ones(log.n_units))
        found.append(ForeseenLists(rows[id(predicted)], inside.listed(places, divisor), every))
    return found


@dataclass(frozen=True, slots=True)
class _PredictionSums:
    """The sums of `ListedPredictions`, filled block by block."""

    sums: Floats

    def add(self, units: Ints, unit: Ints, worth: Floats, predicted: Floats) -> None:
        """Of a block of units: what each of their candidates is worth, and what is predicted of it."""
        kept = np.flatnonzero((worth > 0) & ~np.isnan(predicted))
        unit, worth, predicted = unit[kept], worth[kept], predicted[kept]
        square = worth * worth
        columns = (worth, worth * predicted, square, square * predicted, square * predicted * predicted)
        for into, values in zip(self.sums, columns, strict=True):
            into[units] = sums_by(unit, values, n=len(units))

    def listed(self, places: Floats, divisor: Floats) -> ListedPredictions:
        covered, foreseen, *squares = self.sums
        one, x, xx = (each / divisor**2 for each in squares)
        return ListedPredictions((places / divisor, covered / divisor, foreseen / divisor), (one, x, xx))
