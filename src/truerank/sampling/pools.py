"""The one draw: members of pools in the order in which their clocks ring, for samples of every size at once.

A clock with rate w rings after an exponential time divided by w; the first n of a pool to ring are a weighted sample
without replacement, and with equal weights a uniform one. The times depend on seed, purpose, user and item alone, so
one table of them serves every set of weights, every size and every log of a study: samples do not depend on the order
of rows, are nested in size, and differ between weights only as far as the weights do.

Of pools whose members are in many chunks, a threshold for each pool tells who is drawn: the first n to ring are those
whose key is at most the n-th smallest. That key is found without bringing all keys together: chunks count how many fall
into each of many cells, and bring those of the cell that holds the n-th.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, frozen, places
from truerank.core.errors import InputError
from truerank.core.ids import Keys
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.rng import cell_keys, cell_uniforms
from truerank.sampling.clocks import checked_weights

LAST = 1e306  # rings after every clock that can ring
NEVER = np.inf
ROWS_AT_ONCE = 2**20


@record
class Members:
    """The rows from which is drawn: row j is member `item[j]` of pool `user[j]`, with a weight where weights differ.

    A pool is what belongs to one user, or everything where `user` is constant. `pool`
    numbers the `n_pools` pools, where that is known; some may be empty. Rows `in_order` of their ids settle equal times
    by that order, others by keys.
    """

    user: Keys
    item: Keys
    weight: Floats | None = None
    pool: Ints | None = None
    n_pools: int = 0
    in_order: bool = False

    def __post_init__(self) -> None:
        if self.weight is not None:
            object.__setattr__(self, "weight", checked_weights(self.weight))

    @staticmethod
    def together(key: Keys, *, weight: Floats | None = None) -> Members:
        """One pool of all members with these keys."""
        return Members(np.zeros(len(key), np.uint64), key, weight, np.zeros(len(key), np.int64), 1)

    @staticmethod
    def of(log: Log, *, weight: Floats | None = None, in_order: bool = False, one_pool: bool = False) -> Members:
        """The rows of a log, in one pool for each of its users, those without a row included, or all in one."""
        pool, n_pools = (np.zeros_like(log.user), 1) if one_pool else (log.user, len(log.users))
        return Members(*row_keys(log), weight, pool=pool, n_pools=n_pools, in_order=in_order)

    def __len__(self) -> int:
        return len(self.user)

    @property
    def weights(self) -> Floats:
        return np.ones(len(self)) if self.weight is None else self.weight

    def pools(self) -> tuple[Ints, Ints]:
        """The number of each row's pool, and the sizes of pools."""
        if self.pool is not None:
            return self.pool, np.bincount(self.pool, minlength=self.n_pools).astype(np.int64)
        _, pool, count = np.unique(self.user, return_inverse=True, return_counts=True)
        return pool.astype(np.int64), count.astype(np.int64)

    def clocks(self, *, seed: int, purpose: str) -> Floats:
        """When the clock of each row rings; those of weight 0 after all others."""
        clock = np.empty(len(self))
        for low in range(0, len(self), ROWS_AT_ONCE):
            rows = slice(low, low + ROWS_AT_ONCE)
            time = ring_times(seed, purpose, self.user[rows], self.item[rows])
            clock[rows] = time if self.weight is None else rings(time, self.weight[rows])
        return clock


def row_keys(log: Log) -> tuple[Keys, Keys]:
    """The keys of the user and of the item of each row."""
    return log.users.keys()[log.user], log.items.keys()[log.item]


# ---------------------------------------------------------------------------------------------------------------- sizes


@record
class Share:
    """That part of a pool, rounded down.

    >>> [Share(0.1).of(size) for size in (9, 10, 29, 30)]
    [0, 1, 2, 3]
    """

    part: float

    def __post_init__(self) -> None:
        if not 0 <= self.part <= 1:
            raise InputError(f"a share of {self.part:g}; expected a number between 0 and 1.")

    def of(self, size: int) -> int:
        return math.floor(self.part * size + 1e-9)  # 0.1 x 30 is a little less than 3 in binary


Size = int | Share


def sizes_of(n: Size, count: Ints) -> Ints:
    """How many are drawn from pools of these sizes.

    >>> sizes_of(Share(0.1), np.array([29, 30])).tolist(), sizes_of(10, np.array([9, 30])).tolist()
    ([2, 3], [9, 10])
    """
    if isinstance(n, Share):
        return np.asarray(np.floor(n.part * count + 1e-9), dtype=np.int64)
    if n < 0:
        raise InputError(f"a sample of {n}; expected a whole number from 0.")
    return np.minimum(n, count).astype(np.int64)


# --------------------------------------------------------------------------------------------------------------- clocks


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


# --------------------------------------------------------------------------------------------------------------- orders


@record
class PoolOrder:
    """The order in which the members of each pool are drawn: `place` of a row in that of its `pool`, from 0.

    >>> order = PoolOrder.by(np.array([0, 1, 0]), np.array([5.0, 1.0, 3.0]))
    >>> order.place.tolist(), order.first(1).tolist()
    ([1, 0, 0], [False, True, True])
    """

    pool: Ints
    count: Ints
    place: Ints

    @classmethod
    def drawn(cls, members: Members, *, seed: int, purpose: str) -> PoolOrder:
        """By the keyed clocks of members: the one draw behind every design, logger, hold-out and split."""
        if members.weight is None:
            # equal weights: keys have the order of times, and hardly ever two of them are equal
            keys: tuple[npt.NDArray[Any], ...] = (cell_keys(seed, purpose, members.user, members.item),)
        else:
            keys = (members.clocks(seed=seed, purpose=purpose),)
            if not members.in_order:
                keys = (cell_keys(seed, purpose, members.user, members.item), *keys)
        pool, count = members.pools()
        return cls(pool, count, frozen(places(pool, keys)))

    @classmethod
    def by(cls, pool: Ints, key: npt.NDArray[Any]) -> PoolOrder:
        """By given numbers, the smallest first, equal ones by row."""
        return cls(pool, np.bincount(pool).astype(np.int64), frozen(places(pool, (key,))))

    def first(self, n: Size | Ints, *, one_of: Bools | None = None) -> Bools:
        """Which rows are drawn: the first n of each pool, or n[p] of pool p; of `one_of` rows the first in any case.

        The first of several clocks to ring is drawn proportionally to weight among them, and independently of when it
        rings: where none of these rows is among the first n, this adds one of them as another draw would.
        """
        size = n if isinstance(n, np.ndarray) else sizes_of(n, self.count)
        chosen = self.place < size[self.pool]
        return chosen if one_of is None else chosen | (self.place == self.earliest(one_of)[self.pool])

    def earliest(self, rows: Bools) -> Ints:
        """For each pool the place of the first of these rows, its number of rows where it has none."""
        place = self.count.copy()
        np.minimum.at(place, self.pool[rows], self.place[rows])
        return place


def first_to_ring(clock: Floats, size: Ints) -> tuple[Ints, Ints]:
    """The columns of the smallest finite numbers of each row, in order, at most `size` of them; and how many.

    What `PoolOrder.by` says of pools that are rows of one block, NEVER for those who are no members: by selection.

    >>> first_to_ring(np.array([[3.0, 1.0, 2.0], [np.inf, 5.0, np.inf]]), np.array([2, 2]))
    (array([1, 2, 1]), array([2, 1]))
    """
    n_rows, n_columns = clock.shape
    count = np.minimum(size, (clock < NEVER).sum(axis=1))
    most = int(count.max(initial=0))
    if most < n_columns // 2:
        # sorting a part of each row is enough
        part = np.argpartition(clock, most, axis=1)[:, :most] if most else np.zeros((n_rows, 0), np.int64)
        order = np.take_along_axis(part, np.take_along_axis(clock, part, axis=1).argsort(axis=1), axis=1)
    else:
        order = clock.argsort(axis=1)[:, :most]
    taken: Bools = np.arange(most) < count[:, None]
    return order[taken].astype(np.int64), count.astype(np.int64)


CELLS = 2**20  # into which a chunk counts its keys, in all pools together
FEWEST_BITS = 4  # that tell the cells of a pool apart


@record(eq=False)
class DrawKeys:
    """The keys of members, as whole numbers in the order in which they are drawn; `second` settles what is equal."""

    pool: Ints
    first: Keys
    second: Keys

    @classmethod
    def of(cls, members: Members, *, seed: int, purpose: str) -> DrawKeys:
        """In the order of `PoolOrder.drawn`; pools are numbered as their keys say. Those of weight 0 are left out."""
        keys = cell_keys(seed, purpose, members.user, members.item)
        pool = members.user.astype(np.int64)
        if members.weight is None:
            return cls(pool, keys, np.zeros_like(keys))
        rows = np.flatnonzero(members.weight > 0)
        # times are not negative, so that their bits have their order
        clock = members.clocks(seed=seed, purpose=purpose)[rows].view(np.uint64)
        return cls(pool[rows], clock, keys[rows])

    def select(self, rows: Bools) -> DrawKeys:
        return DrawKeys(self.pool[rows], self.first[rows], self.second[rows])

    def cells(self, n_pools: int) -> Ints:
        """The number of each key's cell: all keys of a pool, cut into intervals of the same length."""
        bits = cell_bits(n_pools)
        return (self.pool << bits) + (self.first >> np.uint64(64 - bits)).astype(np.int64)


@record(eq=False)
class LastCells:
    """For each pool the cell of keys that holds the last one to be drawn, and how many of this cell are `wanted`."""

    cell: Ints
    wanted: Ints

    @staticmethod
    def counts(keys: DrawKeys, *, n_pools: int) -> Ints:
        """How many keys lie in each cell, [pools x cells]."""
        cells = 2 ** cell_bits(n_pools)
        return np.bincount(keys.cells(n_pools), minlength=n_pools * cells).reshape(n_pools, cells)

    @classmethod
    def of(cls, n: int, counts: Ints) -> LastCells:
        """Where n of each pool are drawn."""
        upto, pools = np.cumsum(counts, axis=1), np.arange(len(counts))
        n_drawn = np.minimum(n, upto[:, -1])
        cell = np.minimum((upto < n_drawn[:, None]).sum(axis=1), counts.shape[1] - 1)
        return cls(cell + pools * counts.shape[1], n_drawn - (upto - counts)[pools, cell])

    def within(self, keys: DrawKeys) -> Bools:
        """The keys in these cells."""
        inside: Bools = keys.cells(len(self.cell)) == self.cell[keys.pool]
        return inside

    def threshold(self, inside: Sequence[DrawKeys]) -> DrawThreshold:
        """From the keys in these cells: the last one that is drawn of each pool."""
        columns = zip(*((keys.pool, keys.first, keys.second) for keys in inside), strict=True)
        pool, first, second = map(np.concatenate, columns)
        order, pools = np.lexsort((second, first, pool)), np.flatnonzero(self.wanted)
        row = order[np.searchsorted(pool[order], pools) + self.wanted[pools] - 1]
        last = np.zeros((2, len(self.wanted)), dtype=np.uint64)
        last[:, pools] = first[row], second[row]
        return DrawThreshold(self.wanted > 0, *last)


def cell_bits(n_pools: int) -> int:
    """How many of the first bits of a key tell the cell of a pool."""
    return max(FEWEST_BITS, int(math.log2(CELLS / max(n_pools, 1))))


@record(eq=False)
class DrawThreshold:
    """Of each pool whether any is drawn, and the last key that is."""

    any: Bools
    first: Keys
    second: Keys

    def drawn(self, keys: DrawKeys) -> Bools:
        """Which members are drawn.

        >>> keys = DrawKeys(np.zeros(3, np.int64), np.array([5, 1, 3], np.uint64), np.zeros(3, np.uint64))
        >>> last = LastCells.of(2, LastCells.counts(keys, n_pools=1))
        >>> last.threshold([keys.select(last.within(keys))]).drawn(keys).tolist()
        [False, True, True]
        """
        first, second = self.first[keys.pool], self.second[keys.pool]
        upto: Bools = (keys.first < first) | ((keys.first == first) & (keys.second <= second))
        return upto & self.any[keys.pool]
