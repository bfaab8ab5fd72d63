"""The one draw: members of pools in the order in which their clocks ring, for samples of every size at once.

A clock with rate w rings after an exponential time divided by w; the first n of a pool to ring are a weighted sample
without replacement, and with equal weights a uniform one. The times depend on seed, purpose, user and item alone, so
one table of them serves every set of weights, every size and every log of a study: samples do not depend on the order
of rows, are nested in size, and differ between weights only as far as the weights do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, frozen, places
from truerank.core.chance import cell_keys, cell_uniforms
from truerank.core.errors import InputError
from truerank.core.ids import Keys
from truerank.core.log import Log
from truerank.sampling.clocks import checked_weights

LAST = 1e306  # rings after every clock that can ring
NEVER = np.inf
ROWS_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True)
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
    def alone(n: int, *, weight: Floats | None = None) -> Members:
        """One pool of n members.

        >>> len(Members.alone(3))
        3
        """
        return Members.together(np.arange(n, dtype=np.uint64), weight=weight)

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

    def select(self, rows: Ints) -> Members:
        """Some rows; pools keep their numbers."""
        return Members(
            self.user[rows],
            self.item[rows],
            None if self.weight is None else self.weight[rows],
            None if self.pool is None else self.pool[rows],
            self.n_pools,
            self.in_order and bool((rows[1:] > rows[:-1]).all()),
        )

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


@dataclass(frozen=True, slots=True)
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


def size_of(n: Size, pool: int) -> int:
    """How many are drawn from a pool of that size: all of a smaller pool."""
    return int(sizes_of(n, np.array([pool]))[0])


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


@dataclass(frozen=True, slots=True)
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
        elif members.in_order:
            keys = (members.clocks(seed=seed, purpose=purpose),)
        else:
            clock = members.clocks(seed=seed, purpose=purpose)
            keys = (cell_keys(seed, purpose, members.user, members.item), clock)
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

    def earliest(self, of: Bools) -> Ints:
        """For each pool the place of the first of these rows, its number of rows where it has none."""
        place = self.count.copy()
        np.minimum.at(place, self.pool[of], self.place[of])
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
