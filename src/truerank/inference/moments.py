"""Sums over clusters from which the standard error of a value, its degrees of freedom and its skewness follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from truerank.core.arrays import Floats, compiled_for, exact_sum, largest_of

ROUNDING = 1e-12  # residuals below this share of what they are made of are rounding
SMALL, LARGE = 1e-50, 1e50  # between which fourth powers, and sums of them, are numbers


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over the clusters that contribute, from which standard error, degrees of freedom and skewness follow.

    >>> found = Moments.of(np.array([0.01, 0.02, -0.02, -0.01]), np.array([0.1, 0.2, 0.05, 0.65]))
    >>> round(found.stderr, 5), round(found.df, 3), found.skewness
    (0.0363, 1.586, 0.0)
    """

    n: int
    variance: float  # Σ L² / (1 - h)
    squares: float  # Σ L²
    cubes: float
    fourths: float
    leverages: float  # Σ h²
    scaled: float  # Σ h² / (1 - h)
    scaled_squares: float  # Σ h⁴ / (1 - h)²
    moved: float  # how many L are not 0
    absolute: float  # Σ |L|
    highest_leverage: float
    highest_effect: float
    df_most: float = math.inf  # where something else limits them
    unit: float = 1.0  # that L is in: fourth powers of very large or small rewards have no place in a number

    @classmethod
    def of(cls, effect: Floats, leverage: Floats) -> Moments:
        largest = largest_of(effect)
        unit = unit_of(largest)
        found = cls._of(effect if unit == 1.0 else effect / unit, leverage, largest / unit)
        return found if unit == 1.0 else replace(found, unit=unit)

    @classmethod
    def _of(cls, effect: Floats, leverage: Floats, largest: float) -> Moments:
        compiled = compiled_for(len(effect))
        if compiled is not None:
            n, *sums = compiled.moments(effect, leverage)
            return cls.listed(int(n), [*sums, largest])
        used = (leverage != 0) | (effect != 0)
        effect, h = effect[used], leverage[used]
        square, whole = effect * effect, 1.0 - h
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = h * h / whole
            columns = (square / whole, square, square * effect, square * square, h * h, scaled, scaled * scaled)
        sums = [exact_sum(column) if np.isfinite(column).all() else math.nan for column in columns]
        sizes = [float(np.count_nonzero(effect)), float(np.abs(effect).sum())]
        return cls.listed(len(effect), [*sums, *sizes, float(h.max(initial=0.0)), largest])

    @classmethod
    def of_ratio(cls, above: Floats, below: Floats, totals: Floats) -> Moments | None:
        """Those of Σ above / Σ below where each row is a cluster, without arrays of L and h; None where these serve."""
        compiled = compiled_for(len(above))
        if compiled is None:
            return None
        n, *sums = compiled.moments_of_ratio(above, below, totals)
        return cls.listed(int(n), sums) if unit_of(sums[-1]) == 1.0 else None

    @classmethod
    def listed(cls, n: int, sums: Sequence[float]) -> Moments:
        """Of sums in the order of the fields."""
        return cls(n, **dict(zip(SUMS, sums, strict=True)))

    def with_hit(self, size: float) -> Moments:
        """With two clusters more, ± size / √2: what one hit more, and one less, would add."""
        square = (size / self.unit) ** 2
        return replace(
            self,
            n=self.n + 2,
            variance=self.variance + square,
            squares=self.squares + square,
            fourths=self.fourths + square**2 / 2,
        )

    def with_unseen(self, variance: float) -> Moments:
        """With the variance of what no cluster has shown; of that no skewness is known."""
        return replace(self, variance=self.variance + variance / self.unit**2, cubes=0.0)

    def show_spread(self, scale: float) -> bool:
        """Whether there is more than one cluster, and more than the rounding of what residuals are differences of."""
        several = self.n >= 2 and self.highest_leverage < 1
        return several and self.highest_effect > ROUNDING * (scale / self.unit) * self.highest_leverage

    @property
    def stderr(self) -> float:
        """√ Σ L² / (1 - h)."""
        return math.sqrt(self.variance) * self.unit

    @property
    def skewness(self) -> float:
        """k = Σ L³ / (Σ L²)^(3/2), between -1 and 1."""
        return self.cubes / (self.squares * math.sqrt(self.squares))

    @property
    def df(self) -> float:
        """Degrees of freedom: by unequal parts (Bell and McCaffrey 2002), and by unequal residuals; the smaller."""
        parts = self.leverages + self.scaled**2 - self.scaled_squares
        by_parts = 1.0 / parts if parts > 0 else math.inf
        kurtosis = self.n * self.fourths / self.squares**2
        excess = kurtosis - 1.0
        by_residuals = self.n - 1.0 if excess <= ROUNDING else 2.0 * self.n / excess - 1.0
        return min(by_parts, max(by_residuals, 1.0), self.n - 1.0, self.df_most)

    @property
    def largest(self) -> float:
        """The part of Σ L² that the cluster with the largest residual has."""
        return self.highest_effect**2 / self.squares


SUMS = tuple(field.name for field in fields(Moments) if field.name not in {"n", "df_most", "unit"})


def unit_of(largest: float) -> float:
    """1, or a power of two near the largest where its fourth power would overflow or vanish: nothing is rounded by it.

    >>> unit_of(3.0), unit_of(2.0**300) == 2.0**301
    (1.0, True)
    """
    usual = largest == 0 or not math.isfinite(largest) or SMALL < largest < LARGE
    return 1.0 if usual else math.ldexp(1.0, math.frexp(largest)[1])
