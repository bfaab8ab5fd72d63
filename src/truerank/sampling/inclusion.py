"""The one source of inclusion probabilities: of n weighted draws from many pools, forced positives included.

How likely is each row shown when a user is shown n rows, and a positive where none was among them?

    π_i = π⁰_i + P(no positive shown) q_i / Σ_{j positive} q_j     for positives, π⁰_i for others

π⁰ are the inclusion probabilities of n weighted draws. All positives of a user together ring like one clock whose
weight is their sum, so P(no positive shown) is the chance that this one member is not among the first n of itself and
the non-positives. Where all positives have weight 0, they come last in uniform order and the shares are equal.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.sampling.clocks import EXACT_STEPS, exact_steps, inclusion_of_first, inclusion_probabilities

TOTAL_STEPS = 30 * EXACT_STEPS  # about ten seconds
CALL = 2e5  # what one integral costs besides its steps


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The probability of each row to be shown, and for which pools it is an approximation (Rosén's)."""

    value: Floats
    approximate: Bools


@dataclass(frozen=True, slots=True)
class PoolShape:
    """How many are drawn from how many members that can be drawn, and whether a formula or the integral tells."""

    n: int
    able: int
    equal: bool
    members: int

    @classmethod
    def of(cls, weight: Floats, n: int) -> PoolShape:
        able = weight[weight > 0]
        equal = len(able) == 0 or bool((able == able[0]).all())
        return cls(min(n, len(weight)), len(able), equal, len(weight))

    def steps(self, *, first: bool = False) -> int:
        """What the integral costs, or that of the first member alone; nothing where no integral is needed."""
        if self.equal or self.n == 0 or self.n >= self.able:
            return 0
        return math.ceil(exact_steps(self.able, self.n, first=first) + CALL)


def shown_propensities(start: Ints, weight: Floats, positive: Bools, *, size: Ints) -> Inclusion:
    """For rows in pools, pool p from start[p] to start[p + 1] - 1: size[p] of them are shown, and a positive at least.

    Pools with the same weights and size share one computation.

    >>> three = np.array([0, 3]), np.array([1.0, 1.0, 2.0])
    >>> shown_propensities(*three, np.array([True, False, False]), size=np.array([1])).value.round(6).tolist()
    [1.0, 0.25, 0.5]
    """
    ranges = [slice(a, b) for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)]
    plain = inclusion_of_pools([weight[rows] for rows in ranges], size)
    value = plain.value.copy()
    rough = plain.approximate.copy()
    forced = np.array([at for at, rows in enumerate(ranges) if positive[rows].any()], dtype=np.int64)
    lacking, guessed = none_shown([(weight[ranges[at]], positive[ranges[at]]) for at in forced], size[forced])
    rough[forced] |= guessed
    for at, chance in zip(forced.tolist(), lacking.tolist(), strict=True):
        rows = np.flatnonzero(positive[ranges[at]]) + start[at]
        share = weight[rows] if weight[rows].any() else np.ones(len(rows))
        value[rows] += chance * share / share.sum()
    return Inclusion(np.minimum(value, 1.0), rough)


def none_shown(pools: list[tuple[Floats, Bools]], size: Ints) -> tuple[Floats, Bools]:
    """P(no positive among the n drawn) for each pool (weights, which are positive), and whether it is approximate.

    >>> none_shown([(np.array([1.0, 1.0, 2.0]), np.array([True, True, False]))], np.array([1]))[0].round(6).tolist()
    [0.5]
    """
    chance, rough = np.zeros(len(pools)), np.zeros(len(pools), dtype=bool)
    merged: dict[int, Floats] = {}
    for at, ((weight, positive), n) in enumerate(zip(pools, size.tolist(), strict=True)):
        able = weight > 0
        n_able = int(able.sum())
        if not able[positive].any():
            # every positive waits behind all that have weight, in uniform order with the others that have none
            chance[at] = _none_of(len(weight) - n_able, int(positive.sum()), n - n_able)
        elif (weight[able] == weight[able][0]).all():
            chance[at] = _none_of(n_able, int((positive & able).sum()), n)
        else:
            merged[at] = np.concatenate([[weight[positive].sum()], weight[~positive]])
    together = list(merged)
    found = inclusion_of_each([*merged.values()].__getitem__, size[together], first=True)
    for at, (inclusion, guessed) in zip(together, found, strict=True):
        chance[at], rough[at] = 1 - inclusion[0], guessed
    return chance, rough


def _none_of(members: int, positives: int, drawn: int) -> float:
    """P(no positive among uniform draws) = C(members - positives, drawn) / C(members, drawn)."""
    taken = np.arange(positives)
    return float(np.prod(np.maximum(members - max(drawn, 0) - taken, 0) / (members - taken)))


def inclusion_of_pools(weights: list[Floats], size: Ints) -> Inclusion:
    """The inclusion probabilities of weighted draws from several pools, one after the other.

    >>> inclusion_of_pools([np.array([1.0, 3.0]), np.array([5.0, 5.0])], np.array([1, 1])).value.round(6).tolist()
    [0.25, 0.75, 0.5, 0.5]
    """
    found = list(inclusion_of_each(weights.__getitem__, size))
    value = np.concatenate([np.zeros(0), *(inclusion for inclusion, _ in found)])
    return Inclusion(value, np.array([rough for _, rough in found], dtype=bool))


def inclusion_of_each(
    weight_of: Callable[[int], Floats], size: Ints, *, first: bool = False
) -> Iterator[tuple[Floats, bool]]:
    """The same pool by pool, or of the `first` member of each alone, and whether it is approximate.

    Pools with the same weights and size share one computation. Which ones are exact is decided for all pools together,
    so their weights are asked for twice and need not be held.
    """
    name, pools = [], dict[tuple[bytes, int], PoolShape]()
    for at, n in enumerate(size.tolist()):
        weight = weight_of(at)
        name.append(_name(weight, n))
        pools.setdefault(name[-1], PoolShape.of(weight, n))
    exactly = dict(zip(pools, _exactly([*pools.values()], first=first).tolist(), strict=True))
    found, left = dict[tuple[bytes, int], Floats](), Counter(name)
    for at, key in enumerate(name):
        if key not in found:
            found[key] = _inclusion(weight_of(at), pools[key], exact=exactly[key], first=first)
        left[key] -= 1
        yield (found[key] if left[key] else found.pop(key)), not exactly[key]


def _exactly(pools: list[PoolShape], *, first: bool) -> Bools:
    """Which pools are worth the integral: from the smallest, where the approximation is roughest, up to all that fit.

    Pools of as many members are treated alike, whatever their order.
    """
    able = np.array([pool.able for pool in pools], dtype=np.int64)
    steps = np.array([pool.steps(first=first) for pool in pools], dtype=np.float64)
    affordable = steps <= EXACT_STEPS
    total = np.cumsum(np.bincount(able, weights=np.where(affordable, steps, 0.0)))
    return np.asarray((steps == 0) | (affordable & (total[able] <= TOTAL_STEPS)))


def _inclusion(weight: Floats, pool: PoolShape, *, exact: bool, first: bool) -> Floats:
    if first and exact and pool.steps() and weight[0] > 0:
        return np.array([inclusion_of_first(weight[weight > 0], pool.n)])
    if not pool.equal or pool.able == 0 or pool.n >= pool.able:
        found = inclusion_probabilities(weight, pool.n, most_steps=np.inf if exact else 0.0)
    else:
        found = np.where(weight > 0, pool.n / pool.able, 0.0)
    return found[:1] if first else found


def _name(weight: Floats, n: int) -> tuple[bytes, int]:
    return hashlib.blake2b(np.ascontiguousarray(weight).tobytes(), digest_size=16).digest(), n
