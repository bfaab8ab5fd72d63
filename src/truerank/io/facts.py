"""Facts about a column of numbers that add up over batches, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, exact_parts

BLOCK = 1 << 16  # numbers that stay in cache


@dataclass(frozen=True, slots=True)
class Facts:
    """Of finite numbers: how many, how many are not 0, their exact sum, the smallest and the largest, whether all are 0
    or 1. Facts of two sets of rows add to those of both, in any order.
    """

    n: int = 0
    nonzero: int = 0
    exact: Fraction = Fraction(0)
    minimum: float = math.inf
    maximum: float = -math.inf
    binary: bool = True

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Facts:
        """
        >>> found = Facts.of(np.array([1e16, 1.0])) + Facts.of(np.array([-1e16, 0.0]))
        >>> found.total, found.nonzero, found.minimum, found.binary
        (1.0, 3, -1e+16, False)
        """
        if len(values) == 0:
            return cls()
        nonzero, low, high = int(np.count_nonzero(values)), float(values.min()), float(values.max())
        binary = low >= 0 and high <= 1 and nonzero == int(np.count_nonzero(values == 1))
        total = Fraction(nonzero) if binary else exact_total(values.astype(np.float64, copy=False))
        return cls(len(values), nonzero, total, low, high, binary)

    def __add__(self, other: Facts) -> Facts:
        return Facts(
            self.n + other.n,
            self.nonzero + other.nonzero,
            self.exact + other.exact,
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
            self.binary and other.binary,
        )

    @property
    def total(self) -> float:
        """The sum, rounded once."""
        return float(self.exact)


def exact_total(values: Floats) -> Fraction:
    """The sum without any rounding.

    >>> exact_total(np.array([0.5, 0.25, 2.0**60])) == 2**60 + Fraction(3, 4)
    True
    """
    total = Fraction(0)
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        parts = exact_parts(block)
        total += sum(map(Fraction, block.tolist() if parts is None else parts), Fraction(0))
    return total
