"""The one draw from pools whose members are in many chunks: who is drawn is told by a threshold for each pool.

The first n of a pool to ring are those whose key is at most the n-th smallest. That key is found without bringing keys
together: chunks count how many fall into each part of an interval, which then becomes the part that holds the n-th, and
so on, until so few keys are left in it that they can be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Ints
from truerank.core.chance import cell_keys
from truerank.core.ids import Keys
from truerank.sampling.pools import Members

FEW = 2**20  # keys that can be looked at
MOST_BITS = 16
COUNTS = 2**20  # that a chunk gives, in all pools together
ALL_BITS = 64


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Narrowing:
    """For each pool the interval of 2^`bits` numbers from `low` on that holds the last key to be drawn.

    `wanted` are the keys still to be drawn, of the `inside` ones that lie there. Once that is all or none of them, an
    interval up to `last` is not divided further.
    """

    low: Keys
    last: Keys
    bits: int
    wanted: Ints
    inside: Ints

    @classmethod
    def of(cls, n: int, count: Ints) -> Narrowing:
        """n of each pool; `count` are the members of pools."""
        low = np.zeros(len(count), np.uint64)
        return cls(low, ~low, ALL_BITS, np.minimum(n, count), count)

    @property
    def open(self) -> Bools:
        """Pools of whose interval some are drawn and some are not."""
        return (self.wanted > 0) & (self.wanted < self.inside)

    @property
    def done(self) -> bool:
        return self.bits == 0 or int(self.inside[self.open].sum()) <= FEW

    @property
    def step(self) -> int:
        """By how many bits an interval is divided at a time."""
        return min(self.bits, MOST_BITS, max(1, int(np.log2(COUNTS / max(len(self.low), 1)))))

    def within(self, keys: DrawKeys) -> Bools:
        """The keys in the intervals of open pools."""
        inside: Bools = self.open[keys.pool] & (keys.first >= self.low[keys.pool])
        if self.bits < ALL_BITS:
            inside &= (keys.first - self.low[keys.pool]) >> np.uint64(self.bits) == 0
        return inside

    def counts(self, keys: DrawKeys) -> Ints:
        """How many keys lie in each part of the intervals, [pools x parts]."""
        rows, step = self.within(keys), self.step
        pool = keys.pool[rows]
        part = ((keys.first[rows] - self.low[pool]) >> np.uint64(self.bits - step)).astype(np.int64)
        return np.bincount((pool << step) + part, minlength=len(self.low) << step).reshape(len(self.low), -1)

    def narrowed(self, counts: Ints) -> Narrowing:
        """Each interval becomes that part of it which holds the last key to be drawn."""
        upto = np.cumsum(counts, axis=1)
        at = np.minimum((upto < self.wanted[:, None]).sum(axis=1), counts.shape[1] - 1)
        pools, bits = np.arange(len(at)), self.bits - self.step
        before = np.where(at > 0, upto[pools, at - 1], 0)
        low = self.low + (at.astype(np.uint64) << np.uint64(bits))
        last = low + np.uint64(2**bits - 1)
        return Narrowing(
            np.where(self.open, low, self.low),
            np.where(self.open, last, self.last),
            bits,
            np.where(self.open, self.wanted - before, self.wanted),
            np.where(self.open, counts[pools, at], self.inside),
        )

    def threshold(self, left: Sequence[DrawKeys]) -> DrawThreshold:
        """From the keys that are left in the intervals of open pools: the last one that is drawn of each."""
        first, second = self.last.copy(), np.full(len(self.low), np.iinfo(np.uint64).max)
        pool, one, two = (
            np.concatenate([getattr(each, name) for each in left]) if left else np.zeros(0, np.uint64)
            for name in ("pool", "first", "second")
        )
        order = np.lexsort((two, one, pool))
        start = np.searchsorted(pool[order], np.arange(len(self.low)))
        for at in np.flatnonzero(self.open).tolist():
            row = order[start[at] + self.wanted[at] - 1]
            first[at], second[at] = one[row], two[row]
        return DrawThreshold(self.wanted > 0, first, second)


@dataclass(frozen=True, slots=True, eq=False)
class DrawThreshold:
    """Of each pool whether any is drawn, and the last key that is."""

    any: Bools
    first: Keys
    second: Keys

    def drawn(self, keys: DrawKeys) -> Bools:
        """Which members are drawn.

        >>> keys = DrawKeys(np.zeros(3, np.int64), np.array([5, 1, 3], np.uint64), np.zeros(3, np.uint64))
        >>> narrowing = Narrowing.of(2, np.array([3]))
        >>> narrowing.done, narrowing.threshold([keys]).drawn(keys).tolist()
        (True, [False, True, True])
        """
        first, second = self.first[keys.pool], self.second[keys.pool]
        found: Bools = (keys.first < first) | ((keys.first == first) & (keys.second <= second))
        return found & self.any[keys.pool]
