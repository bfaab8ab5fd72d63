"""Exact sums of many numbers in one pass, compiled by numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truerank.core.arrays import LEAST, MOST, Floats
from truerank.core.compiled import compiled

BLOCK = 1024  # numbers whose parts stay in the nearest cache
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


@compiled(boundscheck=False, error_model="numpy")
def shares_into(values: Any, total: float, out: Any) -> None:
    """Each as a share of the total."""
    for i in range(values.shape[0]):
        out[i] = values[i] / total


def line(x: Floats, y: Floats, slope: float, scale: float) -> Floats:
    """(x + slope y) scale as a new array."""
    out = np.empty(len(x))
    line_into(x, y, slope, scale, out)
    return out


@compiled(boundscheck=False, error_model="numpy", fastmath={"reassoc", "contract"})
def moments_of_block(effect: Any, leverage: Any, out: Any) -> None:
    """Add the number of clusters that contribute and the sums over them to their places in `out`.

    As in numpy a part of 1, one cluster that is all, divides by 0 without an error: several are divided at a time.
    """
    n, variance, squares, cubes, fourths = 0.0, 0.0, 0.0, 0.0, 0.0
    leverages, scaled, scaled_squares = 0.0, 0.0, 0.0
    for i in range(effect.shape[0]):
        x, h = effect[i], leverage[i]
        square, part = x * x, h * h
        whole = 1.0 - h
        n += 1.0 if (h != 0.0) | (x != 0.0) else 0.0
        variance += square / whole
        squares += square
        cubes += square * x
        fourths += square * square
        leverages += part
        scaled += part / whole
        scaled_squares += part / whole * (part / whole)
    out[0] += n
    out[1] += variance
    out[2] += squares
    out[3] += cubes
    out[4] += fourths
    out[5] += leverages
    out[6] += scaled
    out[7] += scaled_squares


@compiled(boundscheck=False, fastmath={"reassoc", "contract"})
def powers_of_block(effect: Any, out: Any) -> None:
    """Add the sums of second, third and fourth powers to their places in `out`."""
    squares, cubes, fourths = 0.0, 0.0, 0.0
    for i in range(effect.shape[0]):
        x = effect[i]
        square = x * x
        squares += square
        cubes += square * x
        fourths += square * square
    out[2] += squares
    out[3] += cubes
    out[4] += fourths


@compiled(boundscheck=False, fastmath={"reassoc", "contract"})
def sizes_of_block(effect: Any, out: Any) -> None:
    """Add the number of effects other than 0, and the sum of all without their sign, to their places in `out`."""
    moved, absolute = 0.0, 0.0
    for i in range(effect.shape[0]):
        moved += 1.0 if effect[i] != 0.0 else 0.0
        absolute += abs(effect[i])
    out[8] += moved
    out[9] += absolute


@compiled(boundscheck=False)
def sums_of_effects(effect: Any, leverage: Any, even: Any) -> Any:
    """The sums of all blocks; where parts are even, without those that follow from the part of one."""
    out = np.zeros(10)
    for start in range(0, effect.shape[0], BLOCK):
        stop = min(start + BLOCK, effect.shape[0])
        sizes_of_block(effect[start:stop], out)
        if even:
            powers_of_block(effect[start:stop], out)
        else:
            moments_of_block(effect[start:stop], leverage[start:stop], out)
    return out


@compiled(boundscheck=False)
def sums_of_ratio(above: Any, below: Any, totals: Any, even: Any) -> Any:
    """The same of effects (above - R below) / Σ below and parts below / Σ below in one pass, and the largest."""
    out, most = np.zeros(10), 0
    slope, scale = -(totals[0] / totals[1]), 1.0 / totals[1]
    effect, leverage = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, above.shape[0], BLOCK):
        n = min(BLOCK, above.shape[0] - start)
        line_into(above[start : start + n], below[start : start + n], slope, scale, effect)
        most = max(most, looked_at(effect[:n].view(np.int64))[0])
        sizes_of_block(effect[:n], out)
        if even:
            powers_of_block(effect[:n], out)
        else:
            shares_into(below[start : start + n], totals[1], leverage)
            moments_of_block(effect[:n], leverage[:n], out)
    return out, most


def moments(effect: Floats, leverage: Floats) -> list[float]:
    """The number of clusters that contribute and the fields of `uncertainty.spreads.Moments` up to the largest part."""
    if leverage.strides == (0,):  # one number for all
        return _of_even_parts(sums_of_effects(effect, effect, True), float(leverage[0]), len(effect))
    return [*sums_of_effects(effect, leverage, False).tolist(), largest_of(leverage)]


def moments_of_ratio(above: Floats, below: Floats, totals: Floats) -> list[float]:
    """The same for the terms of Σ above / Σ below, and the largest effect, without an array of effects."""
    above, below = np.ascontiguousarray(above), np.ascontiguousarray(below)
    total = float(totals[1])
    bits, even = looked_at(below.view(np.int64))
    sums, most = sums_of_ratio(above, below, totals, even)
    if even:
        return [*_of_even_parts(sums, float(below[0]) / total, len(above)), _number(most)]
    return [*sums.tolist(), _number(bits) / abs(total), _number(most)]


def _of_even_parts(sums: Floats, part: float, n: int) -> list[float]:
    """The sums over n clusters with the same part: what is said of parts is known without a look at them."""
    squares, cubes, fourths, moved, absolute = sums[[2, 3, 4, 8, 9]].tolist()
    scaled = part * part / (1.0 - part)
    parts = [n * part**2, n * scaled, n * scaled**2]
    return [float(n), squares / (1.0 - part), squares, cubes, fourths, *parts, moved, absolute, part]


def _number(bits: int) -> float:
    """The number that has these bits."""
    return float(np.array([bits]).view(np.float64)[0])


def largest_of(values: Floats) -> float:
    """The largest without its sign."""
    return _number(looked_at(values.view(np.int64))[0])


def shares_of(values: Floats, total: float) -> Floats:
    """Each as a share of the total; where all are the same, one number that stands for all of them."""
    values = np.ascontiguousarray(values)
    if looked_at(values.view(np.int64))[1]:
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
    found = np.empty(n)
    at = 0
    for i in range(bits.shape[0]):
        if bits[i] >> SIZE_BITS >= least:
            found[at] = values[i]
            at += 1
    return found


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
