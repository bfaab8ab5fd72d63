"""Exact sums of many numbers in one pass, compiled by numba: every number is added to integers that hold all digits.

A double is an integer of 53 bits times a power of two. The accumulator has an integer of 64 bits for every 32 binary
places, so that nothing is ever rounded (Neal 2015, the small superaccumulator).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from truerank.core.arrays import Floats, Ints

PLACES = 68  # 2046 exponents and 53 bits in steps of 32, and one for the carry
OFTEN = 1024  # additions after which carries move up, long before an integer overflows
ZERO = 1075  # binary places of the accumulator below the point


@nb.njit(cache=True, nogil=True, boundscheck=False)
def accumulate(bits: Any, places: Any) -> bool:
    """Add numbers, given as their bits, to the accumulator; False where one is infinite or no number."""
    n = bits.shape[0]
    low = np.int64(0xFFFFFFFF)
    for start in range(0, n, OFTEN):
        for i in range(start, min(start + OFTEN, n)):
            b = bits[i]
            exponent = (b >> 52) & 0x7FF
            mantissa = b & 0xFFFFFFFFFFFFF
            if exponent == 0:
                if mantissa == 0:
                    continue
                exponent = 1
            elif exponent == 0x7FF:
                return False
            else:
                mantissa |= 1 << 52
            at, shift = exponent >> 5, exponent & 31
            first = (mantissa << shift) & low
            second = mantissa >> (32 - shift)
            if b < 0:
                places[at] -= first
                places[at + 1] -= second
            else:
                places[at] += first
                places[at + 1] += second
        for k in range(places.shape[0] - 1):
            carry = places[k] >> 32
            places[k] -= carry << 32
            places[k + 1] += carry
    return True


def exact_sum_of_many(values: Floats) -> float | None:
    """The correctly rounded sum, None where a number is not finite."""
    places: Ints = np.zeros(PLACES, dtype=np.int64)
    if not accumulate(np.ascontiguousarray(values, dtype=np.float64).view(np.int64), places):
        return None
    total = 0
    for digit in reversed(places.tolist()):
        total = (total << 32) + digit
    try:
        return float(total / (1 << ZERO))  # a quotient of integers is rounded correctly
    except OverflowError:
        return None
