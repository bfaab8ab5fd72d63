"""Arrays: their types, and what is computed of them everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


# between which numbers, weights 1 / chance, their products, and squares and sums of these are numbers again
LARGEST_NUMBER, LEAST_CHANCE = 1e100, 1e-40

MANY_VALUES = 2**16
LONG = 2000  # values from which the vectorised exact sum is faster
MANY = 64  # rows of a group from which it is sorted by itself
MOST, LEAST = 1000, -960  # exponents between which nothing overflows or is lost below the smallest numbers


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, read-only."""
    array.setflags(write=False)
    return array


def as_array(values: Any) -> npt.NDArray[Any]:
    """An array of what other libraries compute with, also in the memory of a graphics card."""
    if hasattr(values, "detach"):  # a tensor of torch
        return np.asarray(values.detach().cpu())
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def check_unmasked(array: npt.NDArray[Any], *, where: str) -> None:
    """Refuse a masked array of which something is masked: whatever stands below the mask is no value."""
    hidden = int(np.count_nonzero(np.ma.getmaskarray(array))) if isinstance(array, np.ma.MaskedArray) else 0
    if hidden:
        raise InputError(
            f"{where}: {hidden:,} values are masked; expected a value everywhere. Fill them first: with -inf the "
            "scores of items that are never recommended."
        )


def as_doubles(values: npt.NDArray[Any], *, where: str) -> Floats:
    """Numbers as float64; those that float64 cannot tell from their neighbours are refused.

    >>> as_doubles(np.array([1, 2**53]), where="scores").tolist()
    [1.0, 9007199254740992.0]
    """
    large = values.size > 0 and values.dtype.kind in "iu" and max(int(values.max()), -int(values.min())) > 2**53
    if large or (values.dtype.kind == "f" and values.dtype.itemsize > 8):
        raise InputError(
            f"{where}: {values.dtype} numbers {'beyond 2^53 ' if large else ''}are finer than float64, in which scores "
            "are compared; neighbours would tie. Give a table user, item, score, or the ranks of items as scores."
        )
    return values.astype(np.float64)


def total(values: Floats) -> float:
    """The sum: correctly rounded up to 65,536 values, beyond it in the order that they have, which is much faster."""
    return exact_sum(values) if len(values) <= MANY_VALUES else float(values.sum())


def exact_sum(values: Floats) -> float:
    """The correctly rounded sum, hence the same bits in any order.

    >>> exact_sum(np.array([1e16, 1.0, -1e16]))
    1.0
    """
    parts = exact_parts(values) if len(values) >= LONG else None
    return math.fsum(values.tolist() if parts is None else parts)


def exact_parts(values: Floats) -> list[float] | None:
    """A few numbers whose sum, if nothing is rounded, is that of the values; None where some are too large or small.

    Rump's extraction: adding and subtracting a large power of two splits off leading bits whose sum has no rounding
    error in any order; what is left is split again until nothing is.

    >>> exact_parts(np.array([1.0, 2.0**-60]))
    [1.0, 8.673617379884035e-19]
    """
    parts = []
    rest = values
    bits = math.ceil(math.log2(max(len(values), 2))) + 1
    while (largest := max(float(rest.max()), -float(rest.min()))) > 0 or math.isnan(largest):
        exponent = math.frexp(largest)[1] + bits
        if not math.isfinite(largest) or exponent > MOST or exponent < LEAST:
            return None
        large = math.ldexp(1.0, exponent)
        leading = (large + rest) - large
        parts.append(float(leading.sum()))
        rest = rest - leading
    return parts


def sums_by(group: Ints, values: npt.NDArray[Any], *, n: int) -> Floats:
    """The sum of the values of each group 0 ... n - 1, added in the order of rows.

    >>> sums_by(np.array([1, 0, 1]), np.array([2.0, 5.0, 3.0]), n=3).tolist()
    [5.0, 5.0, 0.0]
    """
    return np.bincount(group, weights=values, minlength=n).astype(np.float64)


def quotient(dividend: Any, divisor: Any) -> Floats:
    """The quotient where the divisor is positive, else 0.

    >>> quotient(np.array([1.0, 3.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    return np.asarray(np.divide(dividend, divisor, out=np.zeros(len(divisor)), where=divisor > 0))


def equal_parts(parts: Floats) -> float:
    """How many equal parts these are worth, (Σ b)² / Σ b²; 0 where there are none.

    >>> equal_parts(np.array([2.0, 2.0, 4.0, 0.0])).__round__(3)
    2.667
    """
    return float(parts.sum()) ** 2 / float(np.square(parts).sum()) if parts.any() else 0.0


def places(group: Ints, keys: tuple[npt.NDArray[Any], ...]) -> Ints:
    """The place of each row within its group, from 0, in the order of the last key, then the one before.

    >>> places(np.array([0, 1, 0]), (np.array([5, 1, 3]),)).tolist()
    [1, 0, 0]
    """
    count = np.bincount(group)
    first = np.cumsum(count) - count
    place = np.empty(len(group), dtype=np.int64)
    if len(keys) == 1 and len(group) >= MANY * len(count) and (group[1:] >= group[:-1]).all():
        # rows of a group together, and many of them: sorting group by group is several times faster
        for start, n in zip(first.tolist(), count.tolist(), strict=True):
            place[start : start + n][keys[0][start : start + n].argsort(kind="stable")] = np.arange(n)
        return place
    order = np.lexsort((*keys, group))
    place[order] = np.arange(len(group)) - np.repeat(first, count)
    return place


def smallest_that(enough: Callable[[float], bool], low: float, high: float, *, steps: int) -> float:
    """The smallest number between two that is enough, found by halving; the upper one is.

    >>> round(smallest_that(lambda x: x * x >= 2, 0.0, 2.0, steps=40), 6)
    1.414214
    """
    for _ in range(steps):
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b as it is rounded, and exactly what rounding lost (Knuth).

    >>> [each.tolist() for each in two_sum(np.array([1e16]), np.array([1.0]))]
    [[1e+16], [1.0]]
    """
    total = a + b
    seen = total - a
    return total, (a - (total - seen)) + (b - seen)
