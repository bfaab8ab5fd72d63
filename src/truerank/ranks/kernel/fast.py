"""The fast rank kernel: scores in cache-sized tiles, counted at once against each user's thresholds.

Compiled by numba without threads of its own (`nogil`: Python threads run it side by side) and cached on disk. Exact:
counts of `>` and `>=` are whole numbers, so it equals the plain kernel on equal score rows.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

LANES = 32  # scores compared by one vector instruction sequence; tile widths are multiples of it


def _counter(comparison: str) -> Any:
    """An intrinsic: how many of LANES scores compare so with a threshold, as one vector compare and a popcount.

    Written in the compiler's own vectors, which it lowers to whatever the processor has. A plain loop is vectorised
    half as well.
    """

    @intrinsic
    def count(typingctx: Any, scores: Any, start: Any, threshold: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            kind = ir.FloatType() if signature.args[2] == types.float32 else ir.DoubleType()
            vector = ir.VectorType(kind, LANES)
            place = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
            values = builder.load(place)
            values.align = 4
            first = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.IntType(32)(0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            everywhere = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)
            mask = builder.fcmp_ordered(comparison, values, everywhere)
            return builder.zext(builder.ctpop(builder.bitcast(mask, ir.IntType(LANES))), ir.IntType(64))

        return types.int64(scores, types.int64, threshold), codegen

    return count


count_above = _counter(">")
count_reaching = _counter(">=")


@nb.njit(cache=True, nogil=True, boundscheck=False)
def count_tile(tile: Any, n_users: int, start: Any, threshold: Any, above: Any, reaching: Any) -> None:
    """Add, for each threshold of each user of a tile, how many scores are above it and how many reach it.

    User u has the thresholds start[u] ... start[u + 1] - 1. The tile's width is a multiple of LANES, filled with -inf.
    """
    scores = tile.reshape(-1)
    width = tile.shape[1]
    for u in range(n_users):
        base = u * width
        first, last = start[u], start[u + 1]
        whole = first + (last - first) // 4 * 4
        # four thresholds share each load of the scores
        for j in range(first, whole, 4):
            t0, t1, t2, t3 = threshold[j], threshold[j + 1], threshold[j + 2], threshold[j + 3]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0
            for i in range(base, base + width, LANES):
                a0 += count_above(scores, i, t0)
                a1 += count_above(scores, i, t1)
                a2 += count_above(scores, i, t2)
                a3 += count_above(scores, i, t3)
                b0 += count_reaching(scores, i, t0)
                b1 += count_reaching(scores, i, t1)
                b2 += count_reaching(scores, i, t2)
                b3 += count_reaching(scores, i, t3)
            above[j] += a0
            above[j + 1] += a1
            above[j + 2] += a2
            above[j + 3] += a3
            reaching[j] += b0
            reaching[j + 1] += b1
            reaching[j + 2] += b2
            reaching[j + 3] += b3
        for j in range(whole, last):
            t0 = threshold[j]
            a0 = b0 = 0
            for i in range(base, base + width, LANES):
                a0 += count_above(scores, i, t0)
                b0 += count_reaching(scores, i, t0)
            above[j] += a0
            reaching[j] += b0


@nb.njit(cache=True, nogil=True, boundscheck=False)
def mask_tile(tile: Any, left: int, n_users: int, pointer: Any, stop: Any, item: Any) -> None:
    """Set the excluded items of each user within a tile to -inf; `pointer` walks along each user's sorted items."""
    right = left + tile.shape[1]
    for u in range(n_users):
        at = pointer[u]
        while at < stop[u] and item[at] < right:
            tile[u, item[at] - left] = -np.inf
            at += 1
        pointer[u] = at


@nb.njit(cache=True, nogil=True, boundscheck=False)
def count_recommended(tile: Any, n_users: int, recommended: Any) -> None:
    """Add how many scores of each user are above -inf."""
    for u in range(n_users):
        count = 0
        for i in range(tile.shape[1]):
            count += tile[u, i] > -np.inf
        recommended[u] += count


@nb.njit(cache=True, nogil=True, boundscheck=False)
def count_within(start: Any, threshold: Any, above: Any, reaching: Any, recommended: Any) -> None:
    """The same for candidates that are the asked items themselves; for a few items per user."""
    for u in range(len(start) - 1):
        for j in range(start[u], start[u + 1]):
            recommended[u] += threshold[j] > -np.inf
            for i in range(start[u], start[u + 1]):
                above[j] += threshold[i] > threshold[j]
                reaching[j] += threshold[i] >= threshold[j]
