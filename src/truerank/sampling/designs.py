"""Sampling designs: how to draw from pools, how likely each member is drawn, and every outcome on tiny pools.

Over the one draw (`sampling.pools`) and the one source of inclusion probabilities (`sampling.inclusion`), which loggers
and candidate samplers use for samples of many sizes at once. Draws are keyed by seed, purpose, pool and member: they do
not depend on the order of rows, and a larger sample contains the smaller one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, permutations, product
from typing import Protocol

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_keys, cell_uniforms, generator
from truerank.core.errors import InputError
from truerank.sampling.inclusion import inclusion_of_pools
from truerank.sampling.pools import Members, PoolOrder, Size, size_of, sizes_of
from truerank.sampling.unequal import (
    conditional_joint,
    conditional_poisson,
    odds_for,
    pivotal,
    pivotal_outcomes,
    size_of_sample,
    systematic,
    systematic_outcomes,
    without_sure,
)

Outcomes = Iterator[tuple[tuple[int, ...], float]]


class SamplingDesign(Protocol):
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
class UniformDesign:
    """`n` members of each pool without replacement, all subsets equally likely; all of a smaller pool.

    >>> UniformDesign(2).inclusion(Members.alone(4)).tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> [members for members, _ in UniformDesign(2).outcomes(Members.alone(3))]
    [(0, 1), (0, 2), (1, 2)]
    """

    n: Size

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        order = PoolOrder.drawn(replace(members, weight=None), seed=seed, purpose=purpose)
        return np.flatnonzero(order.first(self.n))

    def inclusion(self, members: Members) -> Floats:
        pool, count = members.pools()
        return np.asarray(sizes_of(self.n, count) / np.maximum(count, 1))[pool]

    def outcomes(self, members: Members) -> Outcomes:
        size = len(members)
        n = size_of(self.n, size)
        return ((rows, 1 / math.comb(size, n)) for rows in combinations(range(size), n))


@dataclass(frozen=True, slots=True)
class BernoulliDesign:
    """Each member by itself, with probability `rate` x weight (weight 1 where there are none).

    >>> sorted(BernoulliDesign(0.5).outcomes(Members.alone(1)))
    [((), 0.5), ((0,), 0.5)]
    >>> BernoulliDesign(0.5).inclusion(Members.alone(2, weight=np.array([1.0, 0.5]))).tolist()
    [0.5, 0.25]
    """

    rate: float = 1.0

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        return np.flatnonzero(cell_uniforms(seed, purpose, members.user, members.item) < self.inclusion(members))

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
class WeightedDesign:
    """`n` members of each pool by successive draws without replacement, each proportional to weight among those left.

    Drawn as the first n of exponential clocks with the weights as rates, which has the same distribution (the Gumbel
    trick). Members of weight 0 are drawn only after all others, in uniform order, and with `fill` alone.

    >>> weighted = WeightedDesign(1).inclusion(Members.alone(3, weight=np.array([1.0, 1.0, 2.0])))
    >>> weighted.round(12).tolist()
    [0.25, 0.25, 0.5]
    """

    n: Size
    fill: bool = False

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        drawn = PoolOrder.drawn(members, seed=seed, purpose=purpose).first(self.n)
        return np.flatnonzero(drawn if self.fill else drawn & (members.weights > 0))

    def inclusion(self, members: Members) -> Floats:
        pool, count = members.pools()
        found = np.empty(len(members))
        order = np.argsort(pool, kind="stable")
        weights = np.split(members.weights[order], np.cumsum(count)[:-1])
        found[order] = inclusion_of_pools(weights, sizes_of(self.n, count)).value
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
class StratifiedDesign:
    """The design `within` each stratum of each pool, independently.

    >>> halves = Members.alone(4, stratum=np.array([0, 0, 0, 1]))
    >>> StratifiedDesign(UniformDesign(1)).inclusion(halves).round(3).tolist()
    [0.333, 0.333, 0.333, 1.0]
    """

    within: SamplingDesign

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


# ------------------------------------------------------------------------------------------------- chances as they are


class ChancesDesign(SamplingDesign, Protocol):
    """A design of fixed size for which weights are the chances themselves: Σ over a pool is how many are drawn."""

    def pick(self, chance: Floats, rng: np.random.Generator) -> Ints:
        """Which members of one pool are drawn, ascending; the order of members is random already."""
        ...


@dataclass(frozen=True, slots=True)
class SystematicDesign:
    """Members of each pool in random order, laid end to end: those in which start, start + 1, ... lie (Madow 1949).

    >>> halves = Members.alone(4, weight=np.full(4, 0.5))
    >>> SystematicDesign().inclusion(halves).tolist(), len(SystematicDesign().draw(halves, seed=1, purpose="show"))
    ([0.5, 0.5, 0.5, 0.5], 2)
    """

    def pick(self, chance: Floats, rng: np.random.Generator) -> Ints:
        return without_sure(chance, rng, systematic)

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        return _drawn(self, members, seed=seed, purpose=purpose)

    def inclusion(self, members: Members) -> Floats:
        return _chances(members)

    def outcomes(self, members: Members) -> Outcomes:
        return _in_every_order(members, systematic_outcomes)


@dataclass(frozen=True, slots=True)
class PivotalDesign:
    """Members of each pool meet in random order, and of two one takes the other's chance (Deville and Tillé 1998).

    >>> sorted(PivotalDesign().outcomes(Members.alone(2, weight=np.array([0.75, 0.25]))))
    [((0,), 0.75), ((1,), 0.25)]
    """

    def pick(self, chance: Floats, rng: np.random.Generator) -> Ints:
        return without_sure(chance, rng, pivotal)

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        return _drawn(self, members, seed=seed, purpose=purpose)

    def inclusion(self, members: Members) -> Floats:
        return _chances(members)

    def outcomes(self, members: Members) -> Outcomes:
        return _in_every_order(members, pivotal_outcomes)


@dataclass(frozen=True, slots=True)
class ConditionalPoissonDesign:
    """Independent draws, given that as many are drawn as chances sum to: the design of most entropy (Hájek 1964).

    Probabilities of two together are known (`joint`). Odds are found from chances by iteration, which takes time that
    grows with members x drawn: for pools of thousands.

    >>> fair = Members.alone(4, weight=np.array([9.0, 16.0, 21.0, 24.0]) / 35)
    >>> chance = dict(ConditionalPoissonDesign().outcomes(fair))
    >>> round(35 * chance[2, 3], 9)
    12.0
    """

    def pick(self, chance: Floats, rng: np.random.Generator) -> Ints:
        return without_sure(chance, rng, conditional_poisson)

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        return _drawn(self, members, seed=seed, purpose=purpose)

    def inclusion(self, members: Members) -> Floats:
        return _chances(members)

    def joint(self, members: Members) -> Floats:
        """The probability of two members of one pool to be drawn together, that of one alone on the diagonal."""
        chance = _chances(members)
        found = np.outer(chance, chance)
        able = np.flatnonzero((chance > 0) & (chance < 1))
        found[np.ix_(able, able)] = conditional_joint(odds_for(chance[able]), round(float(chance[able].sum())))
        found[np.arange(len(chance)), np.arange(len(chance))] = chance
        return found

    def outcomes(self, members: Members) -> Outcomes:
        chance = _chances(members)
        sure, able = np.flatnonzero(chance == 1).tolist(), np.flatnonzero((chance > 0) & (chance < 1))
        odds, n = odds_for(chance[able]), round(float(chance[able].sum()))
        every = list(combinations(range(len(able)), n))
        weight = [math.prod(odds[list(rows)].tolist()) for rows in every]
        for rows, each in zip(every, weight, strict=True):
            yield tuple(sorted((*sure, *able[list(rows)].tolist()))), each / math.fsum(weight)


class DrawBy(StrEnum):
    """How samples of fixed size are drawn with given chances."""

    SYSTEMATIC = "systematic"
    PIVOTAL = "pivotal"
    CONDITIONAL_POISSON = "conditional-poisson"

    @property
    def design(self) -> ChancesDesign:
        return _BY_NAME[self]


_BY_NAME: Mapping[DrawBy, ChancesDesign] = {
    DrawBy.SYSTEMATIC: SystematicDesign(),
    DrawBy.PIVOTAL: PivotalDesign(),
    DrawBy.CONDITIONAL_POISSON: ConditionalPoissonDesign(),
}


def _chances(members: Members) -> Floats:
    """The weights, which must be chances that sum to a whole number in every pool."""
    pool, count = members.pools()
    order = np.argsort(pool, kind="stable")
    for part in np.split(members.weights[order], np.cumsum(count)[:-1]):
        size_of_sample(part)
    return members.weights


def _drawn(design: ChancesDesign, members: Members, *, seed: int, purpose: str) -> Ints:
    """Pool by pool in the order of keyed numbers, so that the order of rows does not matter."""
    pool, count = members.pools()
    key = cell_keys(seed, purpose, members.user, members.item)
    order = np.lexsort((key, pool))
    found = []
    for rows in np.split(order, np.cumsum(count)[:-1]):
        if len(rows):
            rng = generator(seed, f"{purpose} of {members.user[rows[0]]}")
            found.append(rows[design.pick(members.weights[rows], rng)])
    return np.sort(np.concatenate([np.zeros(0, np.int64), *found])).astype(np.int64)


def _in_every_order(members: Members, outcomes: Callable[[Floats], Outcomes]) -> Outcomes:
    """Every outcome of every order of the members that are neither sure nor impossible."""
    chance = _chances(members)
    sure = tuple(np.flatnonzero(chance == 1).tolist())
    able = np.flatnonzero((chance > 0) & (chance < 1)).tolist()
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for order in permutations(able):
        ways = outcomes(chance[list(order)]) if order else iter([((), 1.0)])
        for rows, probability in ways:
            found[tuple(sorted((*sure, *(order[row] for row in rows))))] += probability
    every = math.factorial(len(able))
    yield from ((rows, probability / every) for rows, probability in found.items())
