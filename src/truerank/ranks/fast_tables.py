"""Compiled sums of worth over ranked relevant items, for all metrics of an evaluation in one walk."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True, boundscheck=False)
def sum_tables(
    start: Any, above: Any, tied: Any, deepest: int, by_rank: Any, walk_rank: Any, walk_hit: Any,
    sums: Any, walks: Any, shared: Any,
) -> None:  # fmt: skip
    """For each unit Σ by_rank[rank], and Σ walk_rank[rank] walk_hit[j] over its relevant items, the j-th from the top.

    Relevant item i of unit u stands at rank above[i] + 1, start[u] <= i < start[u + 1]; ranks beyond `deepest` are
    worth nothing. Tables are [rank or j] x [metric]. Units with tied or shared ranks are marked and left to others.
    """
    place = np.empty(deepest + 1, np.int64)
    for u in range(len(start) - 1):
        n = 0
        for i in range(start[u], start[u + 1]):
            if above[i] >= deepest:
                continue
            if tied[i] > 0 or n == deepest:
                shared[u] = True
                break
            rank = np.int64(above[i]) + 1
            # in the order of rows, as the plain way adds up
            for m in range(by_rank.shape[1]):
                sums[u, m] += by_rank[rank, m]
            j = n
            while j > 0 and place[j - 1] > rank:
                place[j] = place[j - 1]
                j -= 1
            place[j] = rank
            n += 1
        for j in range(1, n):
            if place[j] == place[j - 1]:
                shared[u] = True
        if shared[u]:
            continue
        for j in range(n):
            for m in range(walk_rank.shape[1]):
                walks[u, m] += walk_rank[place[j], m] * walk_hit[j + 1, m]
