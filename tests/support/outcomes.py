"""Every outcome of a sampling design on a tiny pool, with its probability: what exact proofs sum over."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.sampling.designs import BernoulliDesign, SamplingDesign, UniformDesign, WeightedDesign
from truerank.sampling.pools import Members, sizes_of
from truerank.sampling.unequal import DrawBy, odds_for, size_of_sample

Outcomes = Iterator[tuple[tuple[int, ...], float]]


def alone(n: int, *, weight: Floats | None = None) -> Members:
    """One pool of n members."""
    return Members.together(np.arange(n, dtype=np.uint64), weight=weight)


def outcomes(design: SamplingDesign | DrawBy, members: Members) -> Outcomes:
    """Every subset of rows with its probability; for one tiny pool."""
    if isinstance(design, UniformDesign):
        return _uniform(design, members)
    if isinstance(design, BernoulliDesign):
        return _bernoulli(design, members)
    if isinstance(design, WeightedDesign):
        return _weighted(design, members)
    if design is DrawBy.CONDITIONAL_POISSON:
        return _conditional_poisson(members.weights)
    return _in_every_order(members.weights, pivotal_outcomes if design is DrawBy.PIVOTAL else systematic_outcomes)


def _uniform(design: UniformDesign, members: Members) -> Outcomes:
    size = len(members)
    n = int(sizes_of(design.n, np.array([size]))[0])
    return ((rows, 1 / math.comb(size, n)) for rows in combinations(range(size), n))


def _bernoulli(design: BernoulliDesign, members: Members) -> Outcomes:
    chance = design.inclusion(members)
    for taken in product((False, True), repeat=len(members)):
        probability = float(np.where(taken, chance, 1 - chance).prod())
        if probability > 0:
            yield tuple(np.flatnonzero(taken).tolist()), probability


def _weighted(design: WeightedDesign, members: Members) -> Outcomes:
    weight = members.weights
    n = int(sizes_of(design.n, np.array([len(members)]))[0])
    chance: dict[tuple[int, ...], float] = defaultdict(float, {(): 1.0})
    for _ in range(n):
        following: dict[tuple[int, ...], float] = defaultdict(float)
        for taken, probability in chance.items():
            left = [i for i in range(len(weight)) if i not in taken]
            total = float(weight[left].sum())
            if total == 0 and not design.fill:
                following[taken] += probability
                continue
            for i in left:
                step = weight[i] / total if total > 0 else 1 / len(left)
                if step > 0:
                    following[tuple(sorted((*taken, i)))] += probability * float(step)
        chance = following
    yield from chance.items()


def _conditional_poisson(chance: Floats) -> Outcomes:
    sure, able = np.flatnonzero(chance == 1).tolist(), np.flatnonzero((chance > 0) & (chance < 1))
    odds, n = odds_for(chance[able]), round(float(chance[able].sum()))
    every = list(combinations(range(len(able)), n))
    weight = [math.prod(odds[list(rows)].tolist()) for rows in every]
    for rows, each in zip(every, weight, strict=True):
        yield tuple(sorted((*sure, *able[list(rows)].tolist()))), each / math.fsum(weight)


def _in_every_order(chance: Floats, outcomes: Callable[[Floats], Outcomes]) -> Outcomes:
    """Every outcome of every order of the members that are neither sure nor impossible."""
    size_of_sample(chance)
    sure = tuple(np.flatnonzero(chance == 1).tolist())
    able = np.flatnonzero((chance > 0) & (chance < 1)).tolist()
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for order in permutations(able):
        ways = outcomes(chance[list(order)]) if order else iter([((), 1.0)])
        for rows, probability in ways:
            found[tuple(sorted((*sure, *(order[row] for row in rows))))] += probability
    every = math.factorial(len(able))
    yield from ((rows, probability / every) for rows, probability in found.items())


def systematic_outcomes(chance: Floats) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every sample of a pool in this order with its probability: between two starts at which it changes.

    >>> sorted(systematic_outcomes(np.array([0.5, 0.25, 0.25])))
    [((0,), 0.5), ((1,), 0.25), ((2,), 0.25)]
    """
    end, n = np.cumsum(chance), round(float(chance.sum()))
    end[np.flatnonzero(end >= end[-1])] = n
    cuts = np.unique(np.concatenate([[0.0], np.mod(end[:-1], 1.0), [1.0]]))
    for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        rows = np.searchsorted(end, (low + high) / 2 + np.arange(n), side="right")
        yield tuple(rows.tolist()), high - low


def pivotal_outcomes(chance: Floats) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every sample with its probability, duel by duel, as the method is defined.

    >>> sorted(pivotal_outcomes(np.array([0.5, 0.5])))
    [((0,), 0.5), ((1,), 0.5)]
    """

    def duel(holder: int, held: float, at: int, taken: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
        if at == len(chance):
            yield tuple(sorted((*taken, holder) if held > 0.5 else taken)), 1.0
            return
        own = float(chance[at])
        reached = held + own
        if reached < 1 - 1e-12:
            ways = [((holder, reached, taken), held / reached), ((at, reached, taken), own / reached)]
        else:
            stays = (1 - own) / (2 - reached) if reached < 2 else 1.0
            left = max(reached - 1, 0.0)
            ways = [((at, left, (*taken, holder)), stays), ((holder, left, (*taken, at)), 1 - stays)]
        for (who, value, gone), probability in ways:
            if probability > 0:
                for rows, further in duel(who, value, at + 1, gone):
                    yield rows, probability * further

    yield from duel(0, float(chance[0]), 1, ())


def assert_follows(shown: Bools, expected: Outcomes) -> None:
    """A chi-square test of how often each subset of at most five rows was drawn [draws x rows]; the seed is fixed, and
    the bound is beyond the 99.99 % quantile. Rare outcomes are taken together, or their squares would be no chi-square.
    """
    size = shown.shape[1]
    mean = np.zeros(2**size)
    for rows, chance in expected:
        mean[sum(2**row for row in rows)] += chance * len(shown)
    counted = np.bincount(shown @ 2 ** np.arange(size), minlength=2**size)
    assert counted[mean == 0].sum() == 0
    common = mean >= 5
    rare = ~common & (mean > 0)
    parts = [*((counted - mean)[common] ** 2 / mean[common])]
    if mean[rare].sum() >= 5:
        parts.append((counted[rare].sum() - mean[rare].sum()) ** 2 / mean[rare].sum())
    assert sum(parts) < 75  # at most 31 degrees of freedom; 99.99 % of chi-square(31) is below 68
