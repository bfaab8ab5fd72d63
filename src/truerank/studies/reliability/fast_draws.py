"""Compiled draws: the first to ring for several sizes at once, by partial selection instead of sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.compiled import compiled
from truerank.studies.reliability.worlds import Mark

LIKED = int(Mark.LIKED)
FEW = 12  # members from which on putting each in its place is fastest


@compiled(boundscheck=False)
def put_first(key: Any, item: Any, size: int, n: int) -> None:
    """Put the n members with the smallest (key, item) of the first `size` in front, in any order (Hoare's FIND)."""
    left, right, wanted = 0, size - 1, n - 1
    if n <= 0 or n >= size:
        return
    while right - left >= FEW:
        middle = (left + right) >> 1
        for a, b in ((left, middle), (left, right), (middle, right)):
            if key[b] < key[a] or (key[b] == key[a] and item[b] < item[a]):
                key[a], key[b] = key[b], key[a]
                item[a], item[b] = item[b], item[a]
        pivot, place = key[middle], item[middle]
        i, j = left, right
        while i <= j:
            while key[i] < pivot or (key[i] == pivot and item[i] < place):
                i += 1
            while pivot < key[j] or (pivot == key[j] and place < item[j]):
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                item[i], item[j] = item[j], item[i]
                i += 1
                j -= 1
        if wanted <= j:
            right = j
        elif wanted >= i:
            left = i
        else:
            return
    for i in range(left + 1, right + 1):
        k, m = key[i], item[i]
        j = i - 1
        while j >= left and (k < key[j] or (k == key[j] and m < item[j])):
            key[j + 1], item[j + 1] = key[j], item[j]
            j -= 1
        key[j + 1], item[j + 1] = k, m


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
