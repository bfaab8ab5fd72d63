"""Exact sums of many numbers in one pass, compiled by numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truerank.core.arrays import LEAST, MOST, Floats
from truerank.core.compiled import compiled

BLOCK = 1024  # numbers whose powers are added by themselves


@compiled(boundscheck=False)
def looked_at(bits: Any) -> tuple[int, bool]:
    """The largest of the bits without the sign, and whether all numbers are the same; [numbers] as whole numbers."""
    most, all_have, some_have = 0, -1, 0
    for i in range(bits.shape[0]):
        most = max(most, bits[i] & 0x7FFFFFFFFFFFFFFF)
        all_have &= bits[i]
        some_have |= bits[i]
    return most, all_have == some_have


@compiled(boundscheck=False)
def in_whole_numbers(values: Any, scale: float, step: float) -> tuple[np.int64, np.int64, int]:
    """Σ of the leading bits of each number as whole numbers, Σ of the bits that follow, and how many have still more.

    Whole numbers add without rounding in any order, so that several are added at a time. Both factors are powers of
    two; no sum may reach 2^63.
    """
    leading, following, beyond = np.int64(0), np.int64(0), 0
    for i in range(values.shape[0]):
        x = values[i] * scale
        head = np.int64(x)
        rest = (x - np.float64(head)) * step
        tail = np.int64(rest)
        leading += head
        following += tail
        beyond += 1 if np.float64(tail) != rest else 0
    return leading, following, beyond


@compiled(boundscheck=False, fastmath={"reassoc", "contract"}, error_model="numpy")
def moment_sums(effect: Any, leverage: Any) -> Any:
    """Of effects L and leverages h: n, Σ L² / (1 - h), Σ L², L³, L⁴, h², h² / (1 - h) and its square, by blocks."""
    sums = np.zeros(8)
    for start in range(0, effect.shape[0], BLOCK):
        n, variance, squares, cubes, fourths, parts, scaled, scaled_squares = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(start, min(start + BLOCK, effect.shape[0])):
            x, h = effect[i], leverage[i]
            square, part, weight = x * x, h * h, 1.0 / (1.0 - h)
            n += 1.0 if x != 0.0 or h != 0.0 else 0.0
            variance += square * weight
            squares += square
            cubes += square * x
            fourths += square * square
            parts += part
            scaled += part * weight
            scaled_squares += part * weight * (part * weight)
        sums += np.array([n, variance, squares, cubes, fourths, parts, scaled, scaled_squares])
    return sums


def _number(bits: int) -> float:
    """The number that has these bits."""
    return float(np.array([bits]).view(np.float64)[0])


def exact_sum_of_many(values: Floats) -> float | None:
    """The correctly rounded sum, None where it is not certain here and takes more steps.

    All numbers are below 2^exponent and there are at most 2^bits of them: as whole numbers of 2^(exponent - room) with
    room = 62 - bits their sum is below 2^62, and so is that of the next `room` bits. What is beyond is less than one of
    the last unit for each number that has more: where that does not matter to the rounding, it does not matter.
    """
    bits, same = looked_at(values.view(np.int64))
    largest = _number(bits)
    if same:
        return float(len(values)) * float(values[0]) + 0.0  # one rounding, of the exact sum; no zero has a sign
    room = 62 - math.ceil(math.log2(len(values)))
    exponent = math.frexp(largest)[1]
    unit = exponent - 2 * room
    if not math.isfinite(largest) or exponent > MOST or unit < LEAST:
        return None
    leading, following, beyond = in_whole_numbers(values, math.ldexp(1.0, room - exponent), math.ldexp(1.0, room))
    total = (int(leading) << room) + int(following)
    low, high = (math.ldexp(float(total + error), unit) for error in (-int(beyond), int(beyond)))
    return low if low == high else None
