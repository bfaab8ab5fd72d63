"""Sampling designs: how to draw from pools, and how likely each member is drawn.

Over the one draw (`sampling.pools`) and the one source of inclusion probabilities (`sampling.inclusion`), which loggers
and candidate samplers use for samples of many sizes at once. Draws are keyed by seed, purpose, pool and member: they do
not depend on the order of rows, and a larger sample contains the smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_uniforms
from truerank.core.errors import InputError
from truerank.sampling.inclusion import inclusion_of_pools
from truerank.sampling.pools import Members, PoolOrder, Size, sizes_of


class SamplingDesign(Protocol):
    """A random subset of each pool, drawn independently of other pools."""

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        """Which rows are drawn, ascending."""
        ...

    def inclusion(self, members: Members) -> Floats:
        """The probability of each row to be drawn."""
        ...


@dataclass(frozen=True, slots=True)
class UniformDesign:
    """`n` members of each pool without replacement, all subsets equally likely; all of a smaller pool.

    >>> UniformDesign(2).inclusion(Members.alone(4)).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """

    n: Size

    def draw(self, members: Members, *, seed: int, purpose: str) -> Ints:
        order = PoolOrder.drawn(replace(members, weight=None), seed=seed, purpose=purpose)
        return np.flatnonzero(order.first(self.n))

    def inclusion(self, members: Members) -> Floats:
        pool, count = members.pools()
        return np.asarray(sizes_of(self.n, count) / np.maximum(count, 1))[pool]


@dataclass(frozen=True, slots=True)
class BernoulliDesign:
    """Each member by itself, with probability `rate` x weight (weight 1 where there are none).

    >>> BernoulliDesign(0.5).inclusion(Members.alone(2, weight=np.array([1.0, 0.5]))).tolist()
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
