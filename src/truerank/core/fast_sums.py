"""Exact sums of many numbers in one pass, compiled by numba."""

from __future__ import annotations

import math

import numba as nb

from truerank.core.arrays import Floats


@nb.njit(cache=True, nogil=True, boundscheck=False)
def extracted(values: Floats, first: float, second: float, third: float) -> tuple[float, float, float, bool]:
    """The sums of what three large powers of two split off each number, and whether anything is left (see `exact_sum`).

    Every part is a multiple of the last place of its power of two, so that sums of parts have no rounding error.
    """
    total, more, most, left = 0.0, 0.0, 0.0, False
    for i in range(values.shape[0]):
        x = values[i]
        part = (first + x) - first
        total += part
        x -= part
        part = (second + x) - second
        more += part
        x -= part
        part = (third + x) - third
        most += part
        left |= x != part
    return total, more, most, left


def exact_sum_of_many(values: Floats, *, exponent: int, bits: int) -> float | None:
    """The correctly rounded sum, None where three parts of the numbers are not all of them.

    All numbers are below 2^(exponent - bits), and there are at most 2^(bits - 1) of them.
    """
    step = bits + 1 - 53
    total, more, most, left = extracted(values, *(math.ldexp(1.0, exponent + at * step) for at in range(3)))
    return None if left else math.fsum((total, more, most))
