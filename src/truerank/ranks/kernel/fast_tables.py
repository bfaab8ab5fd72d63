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
    worth nothing. Tables are [metric] x [rank or j]. Units with tied or shared ranks are marked and left to others.
    """
    most = 0
    for u in range(len(start) - 1):
        most = max(most, start[u + 1] - start[u])
    found, place = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
    for u in range(len(start) - 1):
        # without branches: about a third of the items count, and nobody can guess which
        n, mixed = 0, False
        for i in range(start[u], start[u + 1]):
            inside = above[i] < deepest
            found[n] = np.int64(min(above[i], deepest)) + 1
            mixed |= inside & (tied[i] > 0)
            n += inside
        for i in range(n):
            rank, j = found[i], i
            while j > 0 and place[j - 1] > rank:
                place[j] = place[j - 1]
                j -= 1
            place[j] = rank
        for j in range(1, n):
            mixed |= place[j] == place[j - 1]
        shared[u] = mixed
        if mixed:
            continue
        # in the order of rows, as the plain way adds up
        for m in range(by_rank.shape[0]):
            total = 0.0
            for j in range(n):
                total += by_rank[m, found[j]]
            sums[m, u] = total
        for m in range(walk_rank.shape[0]):
            total = 0.0
            for j in range(n):
                total += walk_rank[m, place[j]] * walk_hit[m, j + 1]
            walks[m, u] = total
