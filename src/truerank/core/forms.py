"""Smooth functions of the totals of a few sums per unit.

Almost everything reported is a ratio of two sums over units; the rest are other smooth functions of a few sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.core.record import record

STEP = 1e-30


@record
class HitMove:
    """How far one more hit among the labelled rows of lists would move a value, and whether predictions changed it."""

    size: float
    assisted: bool


class Form:
    """A smooth function of the totals of a few sums per unit; `columns` names the sums.

    A new form writes `columns` and `function`; its gradient is found by complex numbers.
    """

    __slots__ = ()

    columns: ClassVar[tuple[str, ...]]
    quotient: ClassVar[bool] = False  # it is the first sum over the second, perhaps times a known mean
    # it needs many units: a unit alone has the first sum over the second, and these tell whether units tell two models
    # apart, as shares of strata differ for everybody, and what is found of what is relevant for few
    shares_out: ClassVar[bool] = False
    denominators: ClassVar[tuple[str, ...]] = ()  # the sums that it divides by; the second where none is named

    def function(self, totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The value of each row of totals, [sets x columns] -> [sets]; NaN where it is undefined. Complex ones too."""
        raise NotImplementedError

    def values(self, totals: Floats) -> Floats:
        """The value of each row of totals, as `function`."""
        return np.asarray(self.function(totals).real, dtype=np.float64)

    def alone(self, sums: Floats) -> Floats:
        """The value of each row of sums alone; NaN where it has none."""
        return quotients(sums) if self.shares_out else self.values(sums)

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        """What each row of sums adds to the error of the value at these totals, to first order; they sum to zero."""
        effect = np.zeros(len(sums))  # column by column: the same bits for a row whatever the others
        for column, slope in zip(sums.T, slopes(self.function, totals).tolist(), strict=True):
            effect += slope * column
        return effect

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        """The part of what is divided by that each row of sums has; the largest of several."""
        places = [self.columns.index(name) for name in self.denominators or self.columns[1:2]]
        shares = [sums[:, place] / totals[place] for place in places if totals[place] > 0]
        return np.max(shares, axis=0) if shares else np.zeros(len(sums))

    def one_hit_more(self, totals: Floats) -> HitMove | None:
        """Where residuals do not show how rare hits are, as predictions fit the hits that there are too well."""
        return None


def slopes(function: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], totals: Floats) -> Floats:
    """The gradient of a function of totals [sets x columns] by a complex step (Squire and Trapp 1998): no differences.

    >>> slopes(lambda sums: sums[:, 0] / sums[:, 1], np.array([1.0, 2.0])).tolist()
    [0.5, -0.25]
    """
    stepped = np.tile(totals.astype(np.complex128), (len(totals), 1))
    stepped[np.diag_indices(len(totals))] += 1j * STEP
    return function(stepped).imag / STEP


@record
class Ratio(Form):
    """Σ numerator / Σ denominator; undefined where Σ denominator is not above 0.

    The influence of a unit is (num - R den) / Σ den.

    >>> Ratio().values(np.array([[1.0, 2.0], [1.0, 0.0]])).tolist()
    [0.5, nan]
    """

    columns: ClassVar[tuple[str, ...]] = ("numerator", "denominator")
    quotient = True

    def values(self, totals: Floats) -> Floats:
        return quotients(totals)

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        return _line(sums[:, 0], sums[:, 1], -(totals[0] / totals[1]), 1.0 / totals[1])

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        return np.asarray(sums[:, 1] / totals[1])


@record
class KnownTotal(Form):
    """Σ numerator / Σ denominator times the mean of a known total: Hájek's estimate, self-normalised weights.

    The total T of each unit is known and varies between units: its part of the influence is R (T - mean T) / units.

    >>> KnownTotal().values(np.array([[1.0, 2.0, 6.0, 3.0]])).tolist()
    [1.0]
    """

    columns = ("numerator", "denominator", "total", "units")
    quotient = True
    leverage = Ratio.leverage

    def values(self, totals: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(quotients(totals) * (totals[:, 2] / totals[:, 3]), dtype=np.float64)

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        ratio, mean = totals[0] / totals[1], totals[2] / totals[3]
        effect = _line(sums[:, 0], sums[:, 1], -ratio, mean / totals[1])
        effect += (sums[:, 2] - mean * sums[:, 3]) * (ratio / totals[3])
        return effect


def _line(x: Floats, y: Floats, slope: float, scale: float) -> Floats:
    """(x + slope y) scale."""
    line = y * slope
    line += x
    line *= scale
    return line


def quotients(totals: Floats) -> Floats:
    """The first column over the second, NaN where that is not above 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(totals[:, 1] > 0, totals[:, 0] / totals[:, 1], math.nan), dtype=np.float64)
