"""Exact sums of many numbers in one pass, compiled by numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truerank.core.arrays import LEAST, MOST, Floats
from truerank.core.compiled import compiled

BLOCK = 1024  # numbers whose powers are added by themselves
SIZE_BITS = 49  # the bits behind sign, exponent and the first three of a number: sizes to an eighth


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


@compiled(boundscheck=False)
def line_into(x: Any, y: Any, slope: float, scale: float, out: Any) -> None:
    """(x + slope y) scale, in one pass."""
    for i in range(x.shape[0]):
        out[i] = (x[i] + y[i] * slope) * scale


def line(x: Floats, y: Floats, slope: float, scale: float) -> Floats:
    """(x + slope y) scale as a new array."""
    out = np.empty(len(x))
    line_into(x, y, slope, scale, out)
    return out


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


def are_equal(values: Floats) -> bool:
    """Whether all numbers are the same."""
    return bool(looked_at(values.view(np.int64))[1])


def _number(bits: int) -> float:
    """The number that has these bits."""
    return float(np.array([bits]).view(np.float64)[0])


def largest_of(values: Floats) -> float:
    """The largest without its sign."""
    return _number(looked_at(values.view(np.int64))[0])


def shares_of(values: Floats, total: float) -> Floats:
    """Each as a share of the total; where all are the same, one number that stands for all of them."""
    values = np.ascontiguousarray(values)
    if are_equal(values):
        return np.broadcast_to(values[0] / total, values.shape)
    return np.asarray(values / total)


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


@compiled(boundscheck=False)
def counts_by_size(bits: Any) -> Any:
    """How many numbers above 0 are of each size; [numbers] as whole numbers."""
    count = np.zeros(1 << (63 - SIZE_BITS), dtype=np.int64)
    for i in range(bits.shape[0]):
        if bits[i] > 0:
            count[bits[i] >> SIZE_BITS] += 1
    return count


@compiled(boundscheck=False)
def of_sizes(values: Any, bits: Any, least: int, n: int) -> Any:
    """The n numbers of a size or above."""
    result = np.empty(n)
    index = 0
    for i in range(bits.shape[0]):
        if bits[i] >> SIZE_BITS >= least:
            result[index] = values[i]
            index += 1
    return result


def upper_part(values: Floats, share: float) -> Floats:
    """The largest of the numbers above 0, a share of them, and the next one, which stands first."""
    values = np.ascontiguousarray(values)
    bits = values.view(np.int64)
    count = counts_by_size(bits)
    n = int(share * int(count.sum()))
    from_top = np.cumsum(count[::-1])
    step = int(np.searchsorted(from_top, n + 1))
    candidates = of_sizes(values, bits, len(count) - 1 - step, int(from_top[step])) if step < len(count) else values[:0]
    return np.partition(candidates, len(candidates) - n - 1)[-n - 1 :] if len(candidates) else candidates
