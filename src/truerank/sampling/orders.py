"""The order in which members of pools are drawn, for samples of every size at once.

A clock with rate w rings after an exponential time divided by w; the first n to ring are a weighted sample without
replacement. The exponential times depend on seed, purpose, user and item alone, so one table of them serves every set
of weights, every size and every log of a study: samples are nested in size, and differ between weights only as far as
the weights do.
"""

from __future__ import annotations

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_uniforms
from truerank.core.ids import Keys

LAST = 1e306  # rings after every clock that can ring
ROWS_AT_ONCE = 2**20


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
