"""Sums over lists that predictions assist: what they say of every place, corrected by the judged ones.

Symbols of one list or of what is beside it: places with discount w, predictions ŷ known of some (c), labelled rows S
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
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.core.forms import Form, HitMove
from truerank.core.record import record

Columns = npt.NDArray[Any]

ALIKE = 1e-9  # predictions that differ by less than this share of their mean square are one

# of judged rows, in a stratum: how many rows, what is predicted, and what least squares needs
SAMPLED = (
    "found", "listed", "covered", "foreseen",
    "weight", "weight_x", "weight_xx", "weight_y", "weight_xy", "weight_yy", "weight_squared", "weight_rows",
    "weight_all", "weight_y_all", "squared", "covered_rows",
)  # fmt: skip
KNOWN = ("places", "covered_places", "foreseen_places")
FITTED = slice(SAMPLED.index("weight"), SAMPLED.index("weight_rows") + 1)
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


@record
class Help:
    """What predictions did for lists: the share of places that have one, and of the slope on them that is kept.

    `rows` are the labelled rows of the lists; `why_not` says why nothing of the slope is kept.
    """

    covered: float
    kept: float
    rows: int
    why_not: NotAssisted | None


def assisted_sum(columns: Sequence[Columns], *, few: Columns, doubt: float) -> Columns:
    """The estimated sum of w y over the places of a stratum; where rows are `few` from these alone (Hájek).

    Complex numbers pass through it, so that its slopes are known to the last digits.
    """
    (hits, listed, covered, foreseen, weight, x, xx, y, xy, _, _, _, every, every_y, _, _,
     places, covered_places, foreseen_places) = columns  # fmt: skip
    with np.errstate(invalid="ignore", divide="ignore"):
        used = _able(columns) & ~few
        share = _share_kept(columns, used, doubt)
        mean = np.where(used, foreseen_places / covered_places, 0.0)
        slope = np.where(used, share * (weight * xy - x * y) / (weight * xx - x * x), 0.0)
        level = np.where(used, (every_y - slope * (x + mean * (every - weight))) / every, hits / listed)
        missing = places - listed
        apart = mean * places - foreseen - mean * (listed - covered)
        total = hits + level * missing + slope * apart
        return np.where(listed.real > 0, total, np.where(places.real > 0, math.nan, 0.0))


def rows_of(columns: Sequence[Columns]) -> Columns:
    """How many labelled rows with π < 1 a stratum has."""
    return columns[SAMPLED.index("weight_rows")].real


def help_of(columns: Sequence[Columns], *, few: Columns, doubt: float) -> Help:
    """What predictions do for a stratum with these totals."""
    places, covered = (float(columns[place].real[0]) for place in (-3, -2))
    able = _able(columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = float(_share_kept(columns, able & ~few, doubt).real[0])
    why_not = NotAssisted.FEW_ROWS if few[0] else NotAssisted.NO_SLOPE if able[0] else NotAssisted.ALIKE
    rows = round(float(rows_of(columns)[0]))
    return Help(covered / places if places > 0 else 0.0, share, rows, None if share > 0 else why_not)


def hit_move(columns: Sequence[Columns]) -> float:
    """How far one more hit among the labelled rows of a stratum would move its sum: Σ w / n, n = (Σ α w)² / Σ (α w)².

    n are the equally weighted rows that those of the stratum amount to.
    """
    listed, squared, places = (float(columns[place].real[0]) for place in (1, SAMPLED.index("squared"), -3))
    return places * squared / listed**2 if listed > 0 else math.nan


def _able(columns: Sequence[Columns]) -> Columns:
    """Whether there is something to fit: labelled rows of which the prediction differs; and where places are without a
    label, some of them with a prediction."""
    weight, x, xx = (column.real for column in columns[FITTED][:3])
    differ = weight * xx - x * x > ALIKE * weight * xx
    places, covered = columns[-3].real, columns[-2].real
    covered_rows = columns[SAMPLED.index("covered_rows")].real * (1 + ALIKE)
    return np.asarray((covered > 0) & differ & ((covered > covered_rows) | (covered_rows >= places)))


def _share_kept(columns: Sequence[Columns], able: Columns, doubt: float) -> Columns:
    """The part of the slope of least squares that is kept, max(0, 1 - doubt / t²); none if any line fits.

    The number of rows is a constant, not a sum that moves with the weights of units: otherwise influences would not
    add up to 0.
    """
    if doubt == 0:
        return np.where(able, 1.0, 0.0)
    weight, x, xx, y, xy, yy, squares, counted = columns[FITTED]
    spread, together, varied = weight * xx - x * x, weight * xy - x * y, weight * yy - y * y
    explained, whole = together * together, spread * varied
    rows = counted.real * weight * weight / (squares * counted)
    fitted = able & (rows.real > LINE) & (explained.real > 0)
    rest = np.where((whole - explained).real > ALIKE * whole.real, whole - explained, 0.0)
    share = 1.0 - doubt * rest / np.where(fitted, (rows - LINE) * explained, 1.0)
    return np.where(fitted & (share.real > 0), share, 0.0)


class AssistedForm(Form):
    """A function of assisted sums over strata: the lists, and perhaps what is beside them."""

    __slots__ = ()

    fewest: float
    doubt: float

    def strata(self, totals: Columns) -> list[list[Columns]]:
        """The columns of each stratum, the lists first."""
        raise NotImplementedError

    def few(self, totals: Columns) -> Columns:
        """Whether a stratum with labelled rows has fewer of them than a slope is fitted to."""
        rows = [rows_of(stratum) for stratum in self.strata(totals)]
        return np.minimum(rows[0], np.where(rows[-1] > 0, rows[-1], rows[0])) < self.fewest

    def sums(self, totals: Columns) -> list[Columns]:
        """The assisted sum of each stratum."""
        few = self.few(totals)
        return [assisted_sum(stratum, few=few, doubt=self.doubt) for stratum in self.strata(totals)]

    def help(self, totals: Floats) -> Help:
        """What predictions do for lists; beside them there are more rows."""
        return self._helps(totals)[0]

    def assisted(self, totals: Floats) -> bool:
        """Whether predictions change the value."""
        return any(part.kept > 0 for part in self._helps(totals))

    def _helps(self, totals: Floats) -> list[Help]:
        few = self.few(totals[None])
        return [help_of(stratum, few=few, doubt=self.doubt) for stratum in self.strata(totals[None])]


@record
class AssistedMean(AssistedForm):
    """The assisted sum over lists, divided by the number of units; hajek below `fewest` labelled rows in lists."""

    fewest: float = 0.0
    doubt: float = 0.0
    graded: bool = False  # gains are not 0 or 1

    columns = ("numerator", "denominator", *SAMPLED[2:], "total", *KNOWN[1:], "units")

    def strata(self, totals: Columns) -> list[list[Columns]]:
        return [list(totals.T[:-1])]

    def function(self, totals: Columns) -> Columns:
        (total,) = self.sums(totals)
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / totals[:, -1]

    def one_hit_more(self, totals: Floats) -> HitMove:
        size = 1.0
        if self.graded:  # Σ v y² / Σ v y over the labelled rows of lists, the gain of a typical hit
            gain, squared_gain = (float(totals[self.columns.index(name)]) for name in ("weight_y", "weight_yy"))
            size = squared_gain / gain if gain > 0 else math.nan
        return HitMove(size * hit_move(self.strata(totals[None])[0]) / float(totals[-1]), self.assisted(totals))


@record
class AssistedShare(AssistedForm):
    """Â / (Â + Ĉ): relevant items in lists and beside them, each an assisted sum.

    Post-stratified recall where fewer than `fewest` labelled rows are in lists, or beside them.
    """

    fewest: float = 0.0
    doubt: float = 0.0

    columns = (
        "numerator", "denominator", *SAMPLED[1:], *(f"beside_{name}" for name in SAMPLED),
        *KNOWN, *(f"beside_{name}" for name in KNOWN),
    )  # fmt: skip
    shares_out = True
    denominators = ("denominator", "listed", "beside_listed")

    def strata(self, totals: Columns) -> list[list[Columns]]:
        return [list(totals.T[stratum]) for stratum in (INSIDE, OUTSIDE)]

    def function(self, totals: Columns) -> Columns:
        top, rest = self.sums(totals)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where((top + rest).real > 0, top / (top + rest), math.nan)

    def one_hit_more(self, totals: Floats) -> HitMove:
        top, rest = (float(total[0]) for total in self.sums(totals[None]))
        move = hit_move(self.strata(totals[None])[0])
        return HitMove(move * rest / (top + rest) ** 2 if top + rest > 0 else math.nan, self.assisted(totals))


INSIDE = [AssistedShare.columns.index(name) for name in ("numerator", *SAMPLED[1:], *KNOWN)]
OUTSIDE = [AssistedShare.columns.index(f"beside_{name}") for name in (*SAMPLED, *KNOWN)]


def sampled(gain: Floats, discount: Floats, foreseen: Floats, weight: Floats) -> list[Floats]:
    """What each judged row adds to the sums of a stratum, in the order of `SAMPLED`, before it is weighted by α."""
    covered = ~np.isnan(foreseen)
    x = np.where(covered, foreseen, 0.0)
    every = discount**2 * (weight - 1.0)
    v = np.where(covered, every, 0.0)
    fitted = [v, v * x, v * x * x, v * gain, v * x * gain, v * gain * gain, weight * v * v, (every > 0) / weight]
    kish = [discount**2 * weight, discount * covered / weight]
    return [gain * discount, discount, discount * covered, discount * x, *fitted, every, every * gain, *kish]
