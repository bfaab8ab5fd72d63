"""The order in which members of pools are drawn, for samples of every size at once.

A clock with rate w rings after an exponential time divided by w; the first n to ring are a weighted sample without
replacement. The exponential times depend on seed, purpose, user and item alone, so one table of them serves every set
of weights, every size and every log of a study: samples are nested in size, and differ between weights only as far as
the weights do.
"""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats, Ints, places
from truerank.chance import cell_uniforms
from truerank.ids import Keys

LAST = 1e306  # rings after every clock that can ring
ROWS_AT_ONCE = 2**20
LONG = 64  # members of a pool from which sorting pools one by one is faster


def ring_times(seed: int, purpose: str, user: Keys, item: Keys) -> Floats:
    """An exponential time of rate 1 for each cell, in the shape that the keys broadcast to."""
    return np.asarray(-np.log1p(-cell_uniforms(seed, purpose, user, item)))


def rings(time: Floats, weight: Floats) -> Floats:
    """When clocks with these weights ring; those of weight 0 after all others, in uniform order.

    >>> rings(np.array([1.0, 3.0, 2.0, 1.0]), np.array([1.0, 6.0, 0.0, 0.0])).argsort().tolist()
    [1, 0, 3, 2]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(weight > 0, np.minimum(time / weight, LAST / 2), LAST * (1 + time))


def places_in_pools(start: Ints, key: Floats) -> Ints:
    """The place of each row in its pool, from 0, in the order of the key; pool p has rows start[p] to start[p + 1] - 1.

    >>> places_in_pools(np.array([0, 3, 3, 5]), np.array([0.3, 0.1, 0.2, 9.0, 7.0])).tolist()
    [2, 0, 1, 1, 0]
    """
    found = np.empty(len(key), dtype=np.int64)
    for first, last in pool_blocks(start, ROWS_AT_ONCE):
        rows = slice(int(start[first]), int(start[last]))
        found[rows] = _places(start[first : last + 1] - start[first], key[rows])
    return found


def pool_blocks(start: Ints, rows: int) -> list[tuple[int, int]]:
    """Runs of pools, [first, last), that have about that many rows together, at least one pool each.

    >>> pool_blocks(np.array([0, 3, 3, 5, 20]), 5)
    [(0, 3), (3, 4)]
    """
    blocks, first, n_pools = [], 0, len(start) - 1
    while first < n_pools:
        last = int(np.searchsorted(start, start[first] + rows, side="right")) - 1
        last = min(max(last, first + 1), n_pools)
        blocks.append((first, last))
        first = last
    return blocks


def _places(start: Ints, key: Floats) -> Ints:
    count = np.diff(start)
    if len(key) < LONG * len(count):
        return places(np.repeat(np.arange(len(count)), count), (key,))
    found = np.empty(len(key), dtype=np.int64)
    for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        found[first:last][key[first:last].argsort(kind="stable")] = np.arange(last - first)
    return found
