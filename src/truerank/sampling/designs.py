"""Sampling designs: how to draw from pools, and how likely each member is drawn.

Draws are keyed by seed, purpose, pool and member: they do not depend on the order of rows, and a larger sample contains
the smaller one. Inclusion probabilities of n weighted draws from many pools include forced positives:

How likely is each row shown when a user is shown n rows, and a positive where none was among them?

    π_i = π⁰_i + P(no positive shown) q_i / Σ_{j positive} q_j     for positives, π⁰_i for others

π⁰ are the inclusion probabilities of n weighted draws. All positives of a user together ring like one clock whose
weight is their sum, so P(no positive shown) is the chance that this one member is not among the first n of itself and
the non-positives. Where all positives have weight 0, they come last in uniform order and the shares are equal.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.sampling.clocks import EXACT_STEPS, exact_steps, inclusion_probabilities
from truerank.sampling.pools import Members, PoolOrder, Size, sizes_of

TOTAL_STEPS = 30 * EXACT_STEPS  # about ten seconds


@record
class Inclusion:
    """The probability of each row to be shown, and for which pools it is an approximation (Rosén's)."""

    value: Floats
    approximate: Bools


def shown_propensities(start: Ints, weight: Floats, positive: Bools, *, size: Ints) -> Inclusion:
    """For rows in pools, pool p from start[p] to start[p + 1] - 1: size[p] of them are shown, and a positive at least.

    Pools with the same weights and size share one computation.

    >>> three = np.array([0, 3]), np.array([1.0, 1.0, 2.0])
    >>> shown_propensities(*three, np.array([True, False, False]), size=np.array([1])).value.round(6).tolist()
    [1.0, 0.25, 0.5]
    """
    ranges = [slice(a, b) for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)]
    plain = inclusion_of_pools([weight[rows] for rows in ranges], size)
    value, rough = plain.value.copy(), plain.approximate.copy()
    forced = np.array([pool for pool, rows in enumerate(ranges) if positive[rows].any()], dtype=np.int64)
    lacking, guessed = none_shown([(weight[ranges[pool]], positive[ranges[pool]]) for pool in forced], size[forced])
    rough[forced] |= guessed
    for pool, probability in zip(forced.tolist(), lacking.tolist(), strict=True):
        rows = np.flatnonzero(positive[ranges[pool]]) + start[pool]
        share = weight[rows] if weight[rows].any() else np.ones(len(rows))
        value[rows] += probability * share / share.sum()
    return Inclusion(np.minimum(value, 1.0), rough)


def none_shown(pools: list[tuple[Floats, Bools]], size: Ints) -> tuple[Floats, Bools]:
    """P(no positive among the n drawn) for each pool (weights, which are positive), and whether it is approximate.

    >>> none_shown([(np.array([1.0, 1.0, 2.0]), np.array([True, True, False]))], np.array([1]))[0].round(6).tolist()
    [0.5]
    """
    probability, rough = np.zeros(len(pools)), np.zeros(len(pools), dtype=bool)
    merged: dict[int, Floats] = {}
    for number, ((weight, positive), n) in enumerate(zip(pools, size.tolist(), strict=True)):
        able = weight > 0
        n_able = int(able.sum())
        if not able[positive].any():
            # every positive waits behind all that have weight, in uniform order with the others that have none
            probability[number] = _none_of(len(weight) - n_able, int(positive.sum()), n - n_able)
        elif (weight[able] == weight[able][0]).all():
            probability[number] = _none_of(n_able, int((positive & able).sum()), n)
        else:
            merged[number] = np.concatenate([[weight[positive].sum()], weight[~positive]])
    together = list(merged)
    results = inclusion_of_each([*merged.values()].__getitem__, size[together])
    for number, (inclusion, guessed) in zip(together, results, strict=True):
        probability[number], rough[number] = 1 - inclusion[0], guessed
    return probability, rough


def _none_of(members: int, positives: int, drawn: int) -> float:
    """P(no positive among uniform draws) = C(members - positives, drawn) / C(members, drawn)."""
    taken = np.arange(positives)
    return float(np.prod(np.maximum(members - max(drawn, 0) - taken, 0) / (members - taken)))


def inclusion_of_pools(weights: list[Floats], size: Ints) -> Inclusion:
    """The inclusion probabilities of weighted draws from several pools, one after the other.

    >>> inclusion_of_pools([np.array([1.0, 3.0]), np.array([5.0, 5.0])], np.array([1, 1])).value.round(6).tolist()
    [0.25, 0.75, 0.5, 0.5]
    """
    pools = list(inclusion_of_each(weights.__getitem__, size))
    value = np.concatenate([np.zeros(0), *(inclusion for inclusion, _ in pools)])
    return Inclusion(value, np.array([rough for _, rough in pools], dtype=bool))


def inclusion_of_each(weight_of: Callable[[int], Floats], size: Ints) -> Iterator[tuple[Floats, bool]]:
    """The same pool by pool, and whether it is approximate.

    Pools with the same weights and size share one computation; the different ones have equal shares of the time that
    integrals may take in all. Weights are computed twice and need not be held.
    """
    keys = []
    for number, n in enumerate(size.tolist()):
        weight = np.ascontiguousarray(weight_of(number))
        keys.append((hashlib.blake2b(weight.tobytes(), digest_size=16).digest(), n))
    left, results = Counter(keys), dict[tuple[bytes, int], tuple[Floats, bool]]()
    most_steps = min(EXACT_STEPS, TOTAL_STEPS / max(len(left), 1))
    for number, key in enumerate(keys):
        if key not in results:
            weight, n = weight_of(number), key[1]
            inclusion = inclusion_probabilities(weight, n, most_steps=most_steps)
            results[key] = inclusion, exact_steps(weight, n) > most_steps
        left[key] -= 1
        yield results[key] if left[key] else results.pop(key)


class SamplingDesign(Protocol):
    """A random subset of each pool, drawn independently of other pools."""

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        """Which rows are drawn, ascending."""
        ...

    def inclusion(self, members: Members) -> Floats:
        """The probability of each row to be drawn."""
        ...


@record
class UniformDesign:
    """`n` members of each pool without replacement, all subsets equally likely; all of a smaller pool.

    >>> UniformDesign(2).inclusion(Members.together(np.arange(4))).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """

    n: Size

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        order = PoolOrder.drawn(replace(members, weight=None), seed=seed, purpose=purpose)
        return np.flatnonzero(order.first(self.n))

    def inclusion(self, members: Members) -> Floats:
        pool, count = members.pools()
        return np.asarray(sizes_of(self.n, count) / np.maximum(count, 1))[pool]


@record
class BernoulliDesign:
    """Each member by itself, with probability `rate` x weight (weight 1 where there are none).

    >>> BernoulliDesign(0.5).inclusion(Members.together(np.arange(2), weight=np.array([1.0, 0.5]))).tolist()
    [0.5, 0.25]
    """

    rate: float = 1.0

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        return np.flatnonzero(cell_uniforms(seed, purpose, members.user, members.item) < self.inclusion(members))

    def inclusion(self, members: Members) -> Floats:
        probability = self.rate * members.weights
        bad = np.flatnonzero(probability > 1)
        if len(bad):
            raise InputError(
                f"rate x weight of row {bad[0]:,} is {probability[bad[0]]:g}; expected a probability. Lower the rate."
            )
        return probability


@record
class WeightedDesign:
    """`n` members of each pool by successive draws without replacement, each proportional to weight among those left.

    Drawn as the first n of exponential clocks with the weights as rates, which has the same distribution (the Gumbel
    trick). Members of weight 0 are drawn only after all others, in uniform order, and with `fill` alone.

    >>> three = Members.together(np.arange(3), weight=np.array([1.0, 1.0, 2.0]))
    >>> WeightedDesign(1).inclusion(three).round(12).tolist()
    [0.25, 0.25, 0.5]
    """

    n: Size
    fill: bool = False

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        drawn = PoolOrder.drawn(members, seed=seed, purpose=purpose).first(self.n)
        return np.flatnonzero(drawn if self.fill else drawn & (members.weights > 0))

    def inclusion(self, members: Members) -> Floats:
        pool, count = members.pools()
        probability = np.empty(len(members))
        order = np.argsort(pool, kind="stable")
        weights = np.split(members.weights[order], np.cumsum(count)[:-1])
        probability[order] = inclusion_of_pools(weights, sizes_of(self.n, count)).value
        return probability if self.fill else np.where(members.weights > 0, probability, 0.0)
