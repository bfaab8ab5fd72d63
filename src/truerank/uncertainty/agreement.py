"""Do offline estimates agree with what was measured online? (paper 3, section 6 and appendix A)"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.special import ndtr, stdtr


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r of n pairs with Student's two-sided p; NaN where a series does not vary."""

    r: float
    p: float
    n: int


def student_p(r: float, n: int) -> float:
    """The two-sided p of a correlation of n pairs: t = r √((n - 2) / (1 - r²)) with n - 2 degrees of freedom.

    >>> round(student_p(0.86, 6), 3)
    0.028
    """
    if math.isnan(r) or n < 3:
        return math.nan
    if abs(r) >= 1:
        return 0.0
    return float(2 * stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / (1 - r * r))))


def correlation(offline: npt.ArrayLike, online: npt.ArrayLike) -> Correlation:
    """Pearson's correlation of daily estimates with daily online reward (paper 3, table 2).

    >>> correlation([1, 2, 3, 4], [2, 4, 6, 8.5]).r > 0.99
    True
    """
    x, y = _pairs(offline, online)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(math.nan, math.nan, len(x))
    a, b = x - x.mean(), y - y.mean()
    r = float(np.clip((a @ b) / math.sqrt((a @ a) * (b @ b)), -1.0, 1.0))
    return Correlation(r, student_p(r, len(x)), len(x))


def sign_agreement(offline: npt.ArrayLike, online: npt.ArrayLike) -> float:
    """The share of online differences whose offline estimate has the same sign.

    Online differences of 0 have no sign and are left out; an offline difference of 0 agrees with nothing. NaN where
    nothing is left.

    >>> sign_agreement([0.1, -0.2, 0.0, 0.3], [1, 1, 1, 0])
    0.3333333333333333
    """
    x, y = _pairs(offline, online)
    signed = y != 0
    return float(np.mean(np.sign(x[signed]) == np.sign(y[signed]))) if signed.any() else math.nan


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How well one estimator (at one clip) sees true improvements: paper 3, figure 1."""

    clip: float
    true_positive_rate: float
    mean_p: float
    sign_agreement: float
    n: int


def sensitivity(
    difference: npt.ArrayLike, stderr: npt.ArrayLike, *, clip: float = math.inf, level: float = 0.99
) -> Sensitivity:
    """True-positive rate, mean p and sign agreement over cells (days x rewards) that are known to be improvements.

    A cell is found where its normal interval of that level is strictly positive; p is one-sided, for a difference of at
    most 0. A cell without spread has p 0 where its difference is positive, else 1.

    >>> sensitivity([0.3, 0.1], [0.1, 0.1]).true_positive_rate
    0.5
    """
    from truerank.core.special import ndtri

    value, error = _pairs(difference, stderr)
    if (error < 0).any():
        raise InputError("a negative standard error; expected one from 0 for every difference.")
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, value / error, np.where(value > 0, np.inf, -np.inf))
    found = z > float(ndtri(0.5 + level / 2))
    return Sensitivity(clip, float(found.mean()), float(ndtr(-z).mean()), float((value > 0).mean()), len(value))


def sensitivity_curve(
    clips: Sequence[float], difference: Floats, stderr: Floats, *, level: float = 0.99
) -> list[Sensitivity]:
    """Sensitivity at every clip; differences and standard errors are [clips x cells]."""
    if len(clips) != len(difference) or np.shape(difference) != np.shape(stderr):
        raise InputError(
            f"{len(clips)} clips with differences of shape {np.shape(difference)} and errors of shape "
            f"{np.shape(stderr)}; expected one row per clip in both."
        )
    rows = zip(clips, difference, stderr, strict=True)
    return [sensitivity(value, error, clip=clip, level=level) for clip, value, error in rows]


def disagreement(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The probability that two metrics order a pair of models differently (paper 3, appendix A).

    A pair agrees if x1 < x2 and y1 <= y2, or x1 > x2 and y1 >= y2; pairs that are equal in both are left out; all
    others disagree. Without ties it is (1 - Kendall's τ) / 2. NaN where no pair is left.

    >>> disagreement([1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    a, b = _pairs(x, y)
    first, second = np.triu_indices(len(a), 1)
    by_x, by_y = np.sign(a[second] - a[first]), np.sign(b[second] - b[first])
    counted = (by_x != 0) | (by_y != 0)
    agree = (by_x != 0) & (by_x * by_y >= 0)
    return float(np.mean(~agree[counted])) if counted.any() else math.nan


def _pairs(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise InputError(f"{a.shape} values against {b.shape}; expected two series of the same length, not empty.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("a value that is no finite number; expected finite values in both series.")
    return a, b
