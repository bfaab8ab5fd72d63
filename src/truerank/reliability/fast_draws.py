"""Compiled draws: the first to ring for several sizes at once, by partial selection instead of sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.compiled import Index, compiled
from truerank.reliability.worlds import Mark

LIKED = int(Mark.LIKED)
FEW = 16  # members up to which putting each in its place is fastest
SAMPLE = 7  # members that a pivot is chosen from


@compiled(boundscheck=False)
def _insert(key: Any, item: Any, left: Any, stop: Any) -> None:
    """Order a few members by (key, item)."""
    for i in range(left + Index(1), stop):
        k, m = key[i], item[i]
        j = Index(i)
        while j > left and (k < key[j - Index(1)] or (k == key[j - Index(1)] and m < item[j - Index(1)])):
            key[j], item[j] = key[j - Index(1)], item[j - Index(1)]
            j -= Index(1)
        key[j], item[j] = k, m


@compiled(boundscheck=False)
def put_first(key: Any, item: Any, size: int, n: int) -> None:
    """Put the n members with the smallest (key, item) of the first `size` in front, in any order (Hoare's FIND).

    The pivot is one of a few members in order, as far from their first as n is from the start, but never the first: so
    some are before it, and one, itself, is not. Members change places without a branch: nobody can guess which do.
    """
    if n <= 0 or n >= size:
        return
    left, stop, wanted = Index(0), Index(size), Index(n)
    while stop - left > Index(FEW):
        step = (stop - left) // Index(SAMPLE)
        for at in range(SAMPLE):
            a, b = left + Index(at), left + Index(at) * step
            key[a], key[b] = key[b], key[a]
            item[a], item[b] = item[b], item[a]
        _insert(key, item, left, left + Index(SAMPLE))
        middle = left + Index(1) + (wanted - left) * Index(SAMPLE - 1) // (stop - left)
        pivot, place = key[middle], item[middle]
        end = left  # of those before the pivot
        for i in range(left, stop):
            k, m = key[i], item[i]
            key[i], item[i] = key[end], item[end]
            key[end], item[end] = k, m
            end += Index((k < pivot) | ((k == pivot) & (m < place)))
        if end == wanted:
            return
        left, stop = (left, end) if end > wanted else (end, stop)
    _insert(key, item, left, stop)


@compiled(boundscheck=False)
def smallest(key: Any, among: Any, n: Any, found: Any) -> None:
    """Mark, for each row, the n members of `among` with the smallest keys."""
    n_items = key.shape[1]
    keys, items = np.empty(n_items, key.dtype), np.empty(n_items, np.int32)
    for u in range(key.shape[0]):
        size = 0
        for i in range(n_items):
            found[u, i] = 0
            if among[u, i]:
                keys[size], items[size] = key[u, i], i
                size += 1
        put_first(keys, items, size, n[u])
        for at in range(min(n[u], size)):
            found[u, items[at]] = 1


@compiled(boundscheck=False)
def levels(clock: Any, left: Any, positive: Any, sizes: Any, level: Any) -> None:
    """At how many sparsities each cell is shown, of sizes[user, sparsity] that fall; the first positive at all."""
    n_items, n_sparsities = clock.shape[1], sizes.shape[1]
    keys, items = np.empty(n_items), np.empty(n_items, np.int32)
    for u in range(clock.shape[0]):
        size, first, earliest = 0, -1, np.inf
        for i in range(n_items):
            level[u, i] = 0
            if left[u, i]:
                keys[size], items[size] = clock[u, i], i
                size += 1
                if positive[u, i] and (first < 0 or clock[u, i] < earliest):
                    first, earliest = i, clock[u, i]
        for s in range(n_sparsities):
            put_first(keys, items, size, sizes[u, s])
            size = min(size, sizes[u, s])
            for at in range(size):
                level[u, items[at]] = s + 1
        if first >= 0:
            level[u, first] = n_sparsities


@compiled(boundscheck=False)
def count_levels(level: Any, mark: Any, rows: Any, liked: Any) -> None:
    """Add, for each item, how many users see it at exactly each number of sparsities, and how many of them like it."""
    for u in range(level.shape[0]):
        for i in range(level.shape[1]):
            at = level[u, i]
            rows[at, i] += 1
            liked[at, i] += mark[u, i] == LIKED
