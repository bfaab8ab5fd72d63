"""Sums over clusters from which the standard error of a value, its degrees of freedom and its skewness follow."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.record import record

ROUNDING = 1e-12  # residuals below this share of what they are made of are rounding
SMALL, LARGE = 1e-50, 1e50  # between which fourth powers, and sums of them, are numbers
WORTH_COMPILING = 2**16  # clusters for which it is worth to load compiled sums
NO_SKEW = 1e-6  # skewness below which an interval is symmetric


@record
class Moments:
    """Sums over the clusters that contribute: a number each, or an array with one for each of several values.

    >>> found = Moments.sum(np.array([0.01, 0.02, -0.02, -0.01]), np.array([0.1, 0.2, 0.05, 0.65]))
    >>> round(float(found.stderr), 5), round(float(found.df), 3), abs(float(found.skewness)) < 1e-15
    (0.0363, 1.586, True)
    """

    n: Any
    variance: Any  # Σ L² / (1 - h)
    squares: Any  # Σ L²
    cubes: Any
    fourths: Any
    leverages: Any  # Σ h²
    scaled: Any  # Σ h² / (1 - h)
    scaled_squares: Any  # Σ h⁴ / (1 - h)²
    highest_leverage: Any
    highest_effect: Any
    unit: Any  # that L is in: fourth powers of very large or small rewards have no place in a number
    most_df: float = np.inf  # where something else limits them

    @classmethod
    def sum(cls, effect: Floats, leverage: Floats) -> Moments:
        """Of effects L [clusters] or [values x clusters] and leverages h, which several values may share."""
        largest = np.maximum(effect.max(axis=-1, initial=0.0), -effect.min(axis=-1, initial=0.0))
        unit = power_of_two(largest)
        if (unit != 1.0).any():
            effect = effect / unit[..., None]
        sums = _sums_of_many(effect, leverage) if effect.shape[-1] >= WORTH_COMPILING else _sums(effect, leverage)
        highest = leverage.max(axis=-1, initial=0.0)
        return cls(*(*sums, highest, largest / unit, unit[()]))

    def with_hit(self, size: float) -> Moments:
        """With two clusters more, ± size / √2: what one hit more, and one less, would add."""
        square = (size / self.unit) ** 2
        sums = {"variance": square, "squares": square, "fourths": square**2 / 2, "n": 2}
        return replace(self, **{name: getattr(self, name) + more for name, more in sums.items()})

    def with_unseen(self, variance: float) -> Moments:
        """With the variance of what no cluster has shown; the skewness of that is unknown."""
        return replace(self, variance=self.variance + variance / self.unit**2, cubes=0.0)

    def show_spread(self, scale: Any) -> Any:
        """Whether there is more than one cluster, and more than the rounding of what residuals are differences of."""
        several = (self.n >= 2) & (self.highest_leverage < 1)
        return several & (self.highest_effect > ROUNDING * (scale / self.unit) * self.highest_leverage)

    @property
    def stderr(self) -> Any:
        """√ Σ L² / (1 - h)."""
        return np.sqrt(self.variance) * self.unit

    @property
    def skewness(self) -> Any:
        """k = Σ L³ / (Σ L²)^(3/2), between -1 and 1."""
        return self.cubes / (self.squares * np.sqrt(self.squares))

    @property
    def df(self) -> Any:
        """Degrees of freedom: by unequal parts (Bell and McCaffrey 2002), and by unequal residuals; the smaller."""
        parts = self.leverages + self.scaled**2 - self.scaled_squares
        excess = self.n * self.fourths / self.squares**2 - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            by_parts = np.where(parts > 0, 1.0 / parts, np.inf)
            by_residuals = np.where(excess <= ROUNDING, self.n - 1.0, 2.0 * self.n / excess - 1.0)
        return reduce(np.minimum, (by_parts, np.maximum(by_residuals, 1.0), self.n - 1.0, self.most_df))

    @property
    def largest(self) -> Any:
        """The part of Σ L² that the cluster with the largest residual has."""
        return self.highest_effect**2 / self.squares


def _sums(effect: Floats, h: Floats) -> Any:
    """In the order of the fields."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        square, part, weight = effect * effect, h * h, 1.0 / (1.0 - h)
        scaled = part * weight
        columns = (square * weight, square, square * effect, square * square, part, scaled, scaled * scaled)
    n = np.count_nonzero((effect != 0) | (h != 0), axis=-1)
    return n, *(column.sum(axis=-1) for column in columns)


def _sums_of_many(effect: Floats, h: Floats) -> Any:
    """The same of many clusters, in one pass over them."""
    from truerank.inference.fast import moment_sums

    rows = zip(np.atleast_2d(effect), np.atleast_2d(np.broadcast_to(h, effect.shape)), strict=True)
    return np.array([moment_sums(*row) for row in rows]).T.reshape(8, *effect.shape[:-1])


def power_of_two(largest: Any) -> Floats:
    """1, or a power of two near the largest where its fourth power would overflow or vanish: nothing is rounded by it.

    >>> power_of_two(np.array([3.0, 2.0**300])).tolist() == [1.0, 2.0**301]
    True
    """
    usual = (largest == 0) | ~np.isfinite(largest) | ((largest > SMALL) & (largest < LARGE))
    return np.where(usual, 1.0, np.ldexp(1.0, np.frexp(largest)[1]))


def unskewed(x: Any, k: Any) -> Any:
    """G(x) = (3 / k) (∛(1 + k (x - k / 6)) - 1), which grows with x; x itself without skewness (Hall 1992).

    >>> float(unskewed(2.0, 0.0)), round(float(unskewed(2.0, 0.5)), 4)
    (2.0, 1.5067)
    """
    symmetric = np.abs(k) < NO_SKEW
    k = np.where(symmetric, 1.0, k)
    return np.where(symmetric, x, 3.0 / k * (np.cbrt(1.0 + k * (x - k / 6.0)) - 1.0))


def skewed(t: Any, k: Any) -> Any:
    """g(T) = T + k T² / 3 + k² T³ / 27 + k / 6, of which G is the inverse.

    >>> round(float(unskewed(skewed(1.25, 0.5), 0.5)), 12)
    1.25
    """
    return t + k * t * t / 3.0 + k * k * t**3 / 27.0 + k / 6.0


def ends(value: Any, stderr: Any, t: Any, k: Any, *, widened: bool = True) -> tuple[Any, Any]:
    """Low and high of an interval that reaches t standard errors to each side, around residuals of skewness k.

    Of a difference the correction for skewness may only widen it, because the skewness of a sample leans with its mean.
    """
    upper, lower = unskewed(t, k), unskewed(-t, k)
    if widened:
        upper, lower = np.maximum(t, upper), np.minimum(-t, lower)
    return value - stderr * upper, value - stderr * lower
