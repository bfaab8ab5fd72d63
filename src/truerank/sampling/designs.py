"""Sampling designs: how to draw from pools, how likely each member is drawn, and every outcome on tiny pools.

One thing used three ways: as a logger, as an intervention, and as a candidate sampler. Draws are keyed by seed,
purpose, pool and member: they do not depend on the order of rows, and a larger sample contains the smaller one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Protocol

import numpy as np

from truerank.core.arrays import Floats, Ints, places
from truerank.core.chance import cell_keys, cell_uniforms
from truerank.core.errors import InputError
from truerank.core.ids import Keys
from truerank.core.log import Log
from truerank.sampling.clocks import checked_weights
from truerank.sampling.forced import inclusion_of_pools

Outcomes = Iterator[tuple[tuple[int, ...], float]]


@dataclass(frozen=True, slots=True)
class Members:
    """The rows from which is drawn: row j is member `item[j]` of pool `user[j]`, with a weight where weights differ.

    A pool is what belongs to one user, or everything where `user` is constant. `stratum` divides pools further.
    """

    user: Keys
    item: Keys
    weight: Floats | None = None
    stratum: Ints | None = None

    def __post_init__(self) -> None:
        if self.weight is not None:
            object.__setattr__(self, "weight", checked_weights(self.weight))

    @staticmethod
    def alone(n: int, *, weight: Floats | None = None, stratum: Ints | None = None) -> Members:
        """One pool of n members.

        >>> len(Members.alone(3))
        3
        """
        return Members(np.zeros(n, np.uint64), np.arange(n, dtype=np.uint64), weight, stratum)

    def __len__(self) -> int:
        return len(self.user)

    @property
    def weights(self) -> Floats:
        return np.ones(len(self)) if self.weight is None else self.weight

    def pools(self) -> tuple[Ints, Ints]:
        """The number of each row's pool, and the sizes of pools."""
        _, pool, count = np.unique(self.user, return_inverse=True, return_counts=True)
        return pool.astype(np.int64), count.astype(np.int64)

    def select(self, rows: Ints) -> Members:
        return Members(
            self.user[rows],
            self.item[rows],
            None if self.weight is None else self.weight[rows],
            None if self.stratum is None else self.stratum[rows],
        )


def members_of(log: Log, *, weight: Floats | None = None, stratum: Ints | None = None) -> Members:
    """The rows of a log, in one pool for each user."""
    return Members(log.users.keys()[log.user], log.items.keys()[log.item], weight, stratum)


class Design(Protocol):
    """A random subset of each pool, drawn independently of other pools."""

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        """Which rows are drawn, ascending."""
        ...

    def inclusion(self, members: Members) -> Floats:
        """The probability of each row to be drawn."""
        ...

    def outcomes(self, members: Members) -> Outcomes:
        """Every subset of rows with its probability; for one tiny pool."""
        ...


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
    if isinstance(n, Share):
        return n.of(pool)
    if n < 0:
        raise InputError(f"a sample of {n}; expected a whole number from 0.")
    return min(n, pool)


@dataclass(frozen=True, slots=True)
class Uniform:
    """`n` members of each pool without replacement, all subsets equally likely; all of a smaller pool.

    >>> Uniform(2).inclusion(Members.alone(4)).tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> [members for members, _ in Uniform(2).outcomes(Members.alone(3))]
    [(0, 1), (0, 2), (1, 2)]
    """

    n: Size

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        key = cell_keys(seed, purpose, members.user, members.item)
        return _first(members, (key,), self.n)

    def inclusion(self, members: Members) -> Floats:
        pool, count = members.pools()
        return np.array([size_of(self.n, size) / size for size in count.tolist()])[pool]

    def outcomes(self, members: Members) -> Outcomes:
        size = len(members)
        n = size_of(self.n, size)
        return ((rows, 1 / math.comb(size, n)) for rows in combinations(range(size), n))


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Each member by itself, with probability `rate` x weight (weight 1 where there are none).

    >>> sorted(Bernoulli(0.5).outcomes(Members.alone(1)))
    [((), 0.5), ((0,), 0.5)]
    >>> Bernoulli(0.5).inclusion(Members.alone(2, weight=np.array([1.0, 0.5]))).tolist()
    [0.5, 0.25]
    """

    rate: float = 1.0

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        return np.flatnonzero(
            cell_uniforms(seed, purpose, members.user, members.item) < self.inclusion(members)
        ).astype(np.int64)

    def inclusion(self, members: Members) -> Floats:
        chance = self.rate * members.weights
        bad = np.flatnonzero(chance > 1)
        if len(bad):
            raise InputError(
                f"rate x weight of row {bad[0]:,} is {chance[bad[0]]:g}; expected a probability. Lower the rate."
            )
        return chance

    def outcomes(self, members: Members) -> Outcomes:
        chance = self.inclusion(members)
        for taken in product((False, True), repeat=len(members)):
            probability = float(np.where(taken, chance, 1 - chance).prod())
            if probability > 0:
                yield tuple(np.flatnonzero(taken).tolist()), probability


@dataclass(frozen=True, slots=True)
class Weighted:
    """`n` members of each pool by successive draws without replacement, each proportional to weight among those left.

    Drawn as the first n of exponential clocks with the weights as rates, which has the same distribution (the Gumbel
    trick). Members of weight 0 are drawn only after all others, in uniform order, and with `fill` alone.

    >>> weighted = Weighted(1).inclusion(Members.alone(3, weight=np.array([1.0, 1.0, 2.0])))
    >>> weighted.round(12).tolist()
    [0.25, 0.25, 0.5]
    """

    n: Size
    fill: bool = False

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        key = cell_keys(seed, purpose, members.user, members.item)
        uniform = cell_uniforms(seed, purpose, members.user, members.item)
        with np.errstate(divide="ignore", invalid="ignore"):
            clock = np.where(members.weights > 0, -np.log1p(-uniform) / members.weights, np.inf)
        drawn = _first(members, (key, clock), self.n)
        return drawn if self.fill else drawn[members.weights[drawn] > 0]

    def inclusion(self, members: Members) -> Floats:
        pool, count = members.pools()
        found = np.empty(len(members))
        order = np.argsort(pool, kind="stable")
        weights = np.split(members.weights[order], np.cumsum(count)[:-1])
        size = np.array([size_of(self.n, each) for each in count.tolist()], dtype=np.int64)
        found[order] = inclusion_of_pools(weights, size).value
        return found if self.fill else np.where(members.weights > 0, found, 0.0)

    def outcomes(self, members: Members) -> Outcomes:
        weight = members.weights
        n = size_of(self.n, len(members))
        chance: dict[tuple[int, ...], float] = defaultdict(float, {(): 1.0})
        for _ in range(n):
            following: dict[tuple[int, ...], float] = defaultdict(float)
            for taken, probability in chance.items():
                left = [i for i in range(len(weight)) if i not in taken]
                total = float(weight[left].sum())
                if total == 0 and not self.fill:
                    following[taken] += probability
                    continue
                for i in left:
                    step = weight[i] / total if total > 0 else 1 / len(left)
                    if step > 0:
                        following[tuple(sorted((*taken, i)))] += probability * float(step)
            chance = following
        yield from chance.items()


@dataclass(frozen=True, slots=True)
class Stratified:
    """The design `within` each stratum of each pool, independently.

    >>> halves = Members.alone(4, stratum=np.array([0, 0, 0, 1]))
    >>> Stratified(Uniform(1)).inclusion(halves).round(3).tolist()
    [0.333, 0.333, 0.333, 1.0]
    """

    within: Design

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        parts = [
            rows[self.within.draw(part, seed=seed, purpose=f"{purpose} stratum {at}")]
            for at, rows, part in _strata(members)
        ]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))

    def inclusion(self, members: Members) -> Floats:
        found = np.empty(len(members))
        for _, rows, part in _strata(members):
            found[rows] = self.within.inclusion(part)
        return found

    def outcomes(self, members: Members) -> Outcomes:
        strata = [
            [(rows[list(taken)].tolist(), probability) for taken, probability in self.within.outcomes(part)]
            for _, rows, part in _strata(members)
        ]
        for together in product(*strata):
            taken = sorted(row for rows, _ in together for row in rows)
            yield tuple(taken), math.prod(probability for _, probability in together)


def _strata(members: Members) -> Iterator[tuple[int, Ints, Members]]:
    """The number, the rows and the members of each stratum."""
    if members.stratum is None:
        raise InputError("a stratified sample of members without strata; expected a stratum for each row.")
    for stratum in np.unique(members.stratum).tolist():
        rows = np.flatnonzero(members.stratum == stratum).astype(np.int64)
        yield stratum, rows, replace(members.select(rows), stratum=None)


def _first(members: Members, keys: tuple[Floats | Keys, ...], n: Size) -> Ints:
    """The rows that come first in their pools, in the order of the last key, then the one before."""
    pool, count = members.pools()
    size = np.array([size_of(n, each) for each in count.tolist()], dtype=np.int64)
    return np.flatnonzero(places(pool, keys) < size[pool]).astype(np.int64)
