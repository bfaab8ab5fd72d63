"""Exact sums of many numbers in one pass, compiled by numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truerank.core.arrays import LEAST, MOST, Floats
from truerank.core.compiled import compiled

BLOCK = 1024  # numbers whose parts stay in the nearest cache


@compiled(boundscheck=False)
def looked_at(bits: Any) -> tuple[int, bool]:
    """The largest of the bits without the sign, and whether all numbers are the same; [numbers] as whole numbers."""
    most, all_have, some_have = 0, -1, 0
    for i in range(bits.shape[0]):
        most = max(most, bits[i] & 0x7FFFFFFFFFFFFFFF)
        all_have &= bits[i]
        some_have |= bits[i]
    return most, all_have == some_have


@compiled(boundscheck=False, fastmath={"reassoc"})
def in_any_order(parts: Any, n: int) -> float:
    """Their sum, several at a time: for parts whose sums have no rounding error."""
    total = 0.0
    for i in range(n):
        total += parts[i]
    return total


@compiled(boundscheck=False)
def split(values: Any, large: float, parts: Any, rest: Any) -> None:
    """What adding and subtracting a large power of two splits off each number, and what is left of it."""
    for i in range(values.shape[0]):
        x = values[i]
        part = (large + x) - large
        parts[i] = part
        rest[i] = x - part


@compiled(boundscheck=False)
def extracted(values: Floats, first: float, second: float) -> tuple[float, float, float]:
    """The sums of what two large powers of two split off each number, and of what is left (see `exact_sum`).

    Every part is a multiple of the last place of its power of two, so that sums of parts have no rounding error. Each
    step is a loop of its own over a block in cache: such loops run several numbers at a time.
    """
    total, more, left = 0.0, 0.0, 0.0
    parts, rest = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, values.shape[0], BLOCK):
        n = min(BLOCK, values.shape[0] - start)
        split(values[start : start + n], first, parts, rest)
        total += in_any_order(parts, n)
        split(rest[:n], second, parts, rest)
        more += in_any_order(parts, n)
        left += in_any_order(rest, n)
    return total, more, left


@compiled(boundscheck=False)
def line(x: Any, y: Any, slope: float, scale: float) -> Any:
    """(x + slope y) scale, in one pass."""
    out = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = (x[i] + y[i] * slope) * scale
    return out


@compiled(boundscheck=False, fastmath={"reassoc", "contract"})
def moments_of_block(effect: Any, leverage: Any, out: Any) -> None:
    """Add the number of clusters that contribute and the sums over them to `out`."""
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


@compiled(boundscheck=False)
def summed(effect: Any, leverage: Any) -> Any:
    """The sums of all blocks."""
    out = np.zeros(8)
    for start in range(0, effect.shape[0], BLOCK):
        stop = min(start + BLOCK, effect.shape[0])
        moments_of_block(effect[start:stop], leverage[start:stop], out)
    return out


def moments(effect: Floats, leverage: Floats) -> Floats:
    """The fields of `uncertainty.spreads.Moments`, in their order, but for the last."""
    largest = [looked_at(values.view(np.int64))[0] for values in (leverage, effect)]
    return np.concatenate([summed(effect, leverage), np.array(largest).view(np.float64)])


def exact_sum_of_many(values: Floats) -> float | None:
    """The correctly rounded sum, None where it is not certain here and takes more steps.

    All numbers are below 2^(exponent - bits) and there are at most 2^(bits - 1) of them. What two powers of two leave
    of each is at most half the last place of the second, so the sum of n such has an error below n² second / 2^106:
    where it does not matter to the rounding of the whole, it does not matter.
    """
    most, same = looked_at(values.view(np.int64))
    largest = float(np.array([most]).view(np.float64)[0])
    if same:
        return float(len(values)) * float(values[0])  # one rounding, of the exact sum
    bits = math.ceil(math.log2(len(values))) + 1
    exponent = math.frexp(largest)[1] + bits
    if not math.isfinite(largest) or exponent > MOST or exponent + 2 * (bits - 52) < LEAST:
        return None
    second = math.ldexp(1.0, exponent + bits + 1 - 53)
    total, more, left = extracted(values, math.ldexp(1.0, exponent), second)
    error = len(values) ** 2 * math.ldexp(second, -106)
    low, high = math.fsum((total, more, left, -error)), math.fsum((total, more, left, error))
    return low if low == high else None
