"""How likely each row is shown when a user is shown n rows, and a positive where none was among them.

    π_i = π⁰_i + P(no positive shown) q_i / Σ_{j positive} q_j     for positives, π⁰_i for others

π⁰ are the inclusion probabilities of n weighted draws. All positives of a user together ring like one clock whose
weight is their sum, so P(no positive shown) is the chance that this one member is not among the first n of itself and
the non-positives. Where all positives have weight 0, they come last in uniform order and the shares are equal.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Bools, Floats, Ints
from truerank.exposure.clocks import EXACT_STEPS, exact_steps, inclusion_of_first, inclusion_probabilities

TOTAL_STEPS = 10 * EXACT_STEPS  # about five seconds
CALL = 1e5  # what taking one member into a distribution costs besides its multiplications
SMALL = 50  # members up to which the approximation is too rough: always exact, some milliseconds for each pool


@dataclass(frozen=True, slots=True)
class Propensities:
    """The probability of each row to be shown, and for which pools it is an approximation (Rosén's)."""

    value: Floats
    approximate: Bools


@dataclass(frozen=True, slots=True)
class Pool:
    """How many are drawn from how many members that can be drawn, and whether a formula or the integral tells."""

    n: int
    able: int
    equal: bool
    members: int

    @classmethod
    def of(cls, weight: Floats, n: int) -> Pool:
        able = weight[weight > 0]
        equal = len(able) == 0 or bool((able == able[0]).all())
        return cls(min(n, len(weight)), len(able), equal, len(weight))

    def steps(self, *, first: bool = False) -> float:
        """What the integral costs, or that of the first member alone; nothing where no integral is needed."""
        if self.equal or self.n == 0 or self.n >= self.able:
            return 0.0
        return exact_steps(self.able, self.n, first=first) + CALL * self.able * (1 if first else math.log2(self.able))


def shown_propensities(start: Ints, weight: Floats, positive: Bools, *, size: Ints) -> Propensities:
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
    return Propensities(np.minimum(value, 1.0), rough)


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
    found = [Pool.of(weight, int(size[at])) for at, weight in merged.items()]
    exactly = _exactly(found, [pool.steps(first=True) for pool in found])
    for (at, weight), pool, exact in zip(merged.items(), found, exactly, strict=True):
        integral = exact and pool.steps() > 0
        first = inclusion_of_first(weight[weight > 0], pool.n) if integral else _inclusion(weight, pool, exact=exact)[0]
        chance[at] = 1 - first
        rough[at] = not exact
    return chance, rough


def _none_of(members: int, positives: int, drawn: int) -> float:
    """P(no positive among uniform draws) = C(members - positives, drawn) / C(members, drawn)."""
    taken = np.arange(positives)
    return float(np.prod(np.maximum(members - max(drawn, 0) - taken, 0) / (members - taken)))


def inclusion_of_pools(weights: list[Floats], size: Ints) -> Propensities:
    """The inclusion probabilities of weighted draws from several pools, one after the other.

    >>> inclusion_of_pools([np.array([1.0, 3.0]), np.array([5.0, 5.0])], np.array([1, 1])).value.round(6).tolist()
    [0.25, 0.75, 0.5, 0.5]
    """
    name = [_name(weight, int(n)) for weight, n in zip(weights, size.tolist(), strict=True)]
    distinct = {key: at for at, key in reversed(list(enumerate(name)))}
    pools = {key: Pool.of(weights[at], int(size[at])) for key, at in distinct.items()}
    exactly = _exactly(list(pools.values()), [pool.steps() for pool in pools.values()])
    found = {
        key: _inclusion(weights[distinct[key]], pool, exact=exact)
        for (key, pool), exact in zip(pools.items(), exactly, strict=True)
    }
    rough = {key for (key, pool), exact in zip(pools.items(), exactly, strict=True) if not exact}
    return Propensities(
        np.concatenate([np.zeros(0), *(found[key] for key in name)]), np.array([key in rough for key in name], bool)
    )


def _exactly(pools: list[Pool], steps: list[float]) -> list[bool]:
    """Which pools are worth the integral: small ones, and all that can be had for it if the whole stays affordable."""
    large = sum(each for each, pool in zip(steps, pools, strict=True) if pool.able > SMALL)
    return [
        each == 0 or pool.able <= SMALL or (each <= EXACT_STEPS and large <= TOTAL_STEPS)
        for each, pool in zip(steps, pools, strict=True)
    ]


def _inclusion(weight: Floats, pool: Pool, *, exact: bool) -> Floats:
    if not pool.equal or pool.able == 0 or pool.n >= pool.able:
        return inclusion_probabilities(weight, pool.n, most_steps=np.inf if exact else 0.0)
    return np.where(weight > 0, pool.n / pool.able, 0.0)


def _name(weight: Floats, n: int) -> tuple[bytes, int]:
    return hashlib.blake2b(np.ascontiguousarray(weight).tobytes(), digest_size=16).digest(), n
