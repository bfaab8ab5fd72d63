"""Turn a fully observed world into a biased log that knows its true propensities.

A logger says how much more often one item is shown than another. Each user is shown that many of the user's items by
successive draws, each proportional to weight among those left; or each item by itself, with a known probability. Where
no positive was shown, one is added: the first in the order of draws, which is a draw proportional to weight among the
user's positives and independent of the rest (the clock that rings first among several is independent of when it rings).
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Self

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen, sums_by
from truerank.core.errors import InputError
from truerank.core.language import as_value
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.validation import checked_arguments
from truerank.datasets.split import split_per_user
from truerank.exposure.counts import pair_order
from truerank.exposure.logging_policies import LOGGERS, LoggingPolicy
from truerank.sampling.clocks import checked_weights
from truerank.sampling.designs import BernoulliDesign, Inclusion, UniformDesign, shown_propensities
from truerank.sampling.pools import Members, PoolOrder, Share, sizes_of
from truerank.sampling.unequal import fill

PURPOSE = "exposure"


@record
class Order:
    """The order in which a logger shows each user's rows: exposure of every size, from one draw.

    `world` is sorted by user and item, a pool for each user; `weight` is that of each row.
    """

    world: Log
    weight: Floats
    drawn: PoolOrder

    @classmethod
    def of(cls, world: Log, weight: Floats, *, seed: int) -> Order:
        """Draw the order; `weight` has one number for each item of the world."""
        world = sorted_world(world)
        weight = checked_weights(weight)
        if weight.shape != (len(world.items),):
            raise InputError(f"weights of shape {weight.shape} for {len(world.items):,} items; expected one for each.")
        of_row = frozen(weight[world.item])
        members = Members.of(world, weight=of_row, in_order=True)
        return cls(world, of_row, PoolOrder.drawn(members, seed=seed, purpose=PURPOSE))

    @property
    def count(self) -> Ints:
        """The number of rows of each user."""
        return self.drawn.count

    @property
    def first(self) -> Ints:
        """The place of each user's first positive in the order, the number of rows where there is none."""
        return self.drawn.earliest(self.world.label == 1)

    def sizes(self, *, sparsity: float | None = None, size: int | None = None) -> Ints:
        """How many rows each user is shown: floor((1 - sparsity) rows), or `size`, all of a user who has fewer."""
        return exposure_sizes(self.count, sparsity=sparsity, size=size)

    def shown(self, size: Ints, *, keep_positive: bool = True) -> Bools:
        """Which rows are shown when each user is shown that many."""
        return self.drawn.first(size, one_of=self.world.label == 1 if keep_positive else None)

    def propensities(self, size: Ints, *, keep_positive: bool = True) -> Inclusion:
        """How likely each row of the world is shown."""
        positive = (self.world.label == 1) & keep_positive
        start = np.concatenate([[0], np.cumsum(self.count)]).astype(np.int64)
        return shown_propensities(start, self.weight, positive, size=size)


@checked_arguments()
def expose(
    world: Log,
    logger: LoggingPolicy | str,
    *,
    sparsity: float | None = None,
    size: int | None = None,
    keep_positive: bool = True,
    train: Log | None = None,
    propensities: bool = True,
    seed: int,
) -> Log:
    """The rows of a world that a logger shows, with the probability of each to be shown.

    A user with n rows is shown floor((1 - sparsity) n) of them, or `size`: weighted draws without replacement, items of
    weight 0 after all others. `keep_positive` adds a positive where none was shown (a user without positives in the
    world gets nothing), which raises the propensities of positives: π_i = π⁰_i + P(no positive shown) q_i / Σ q_j over
    the user's positives. Probabilities are exact for equal weights and, within seconds of work, for others; else by
    Rosén's approximation (`Order.propensities` says for whom). `propensities=False` leaves them out.

    A smaller log is part of a larger one of the same seed. With equal weights and `keep_positive=False` this is
    missing at random: `size` uniformly random items per user.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> world = read(pl.DataFrame({"user": [1] * 4, "item": [1, 2, 3, 4], "label": [1, 0, 0, 0]}))
    >>> log = expose(world, "uniform", size=1, seed=0)  # item 1 alone with probability 1/4, else with one of the others
    >>> log.propensity[log.label == 1].tolist(), set(log.propensity[log.label == 0].tolist()) <= {0.25}
    ([1.0], True)
    """
    order = Order.of(world, as_value(logger, LOGGERS).weights(world, train=train), seed=seed)
    sizes = order.sizes(sparsity=sparsity, size=size)
    shown = order.shown(sizes, keep_positive=keep_positive)
    probability = order.propensities(sizes, keep_positive=keep_positive).value if propensities else None
    return _log(order.world, shown, probability)


def expose_independently(world: Log, probability: Floats, *, keep_positive: bool = False, seed: int) -> Log:
    """The rows of a world when each is shown by itself with a known probability p (Bernoulli exposure).

    This is the exposure that the theory of inverse propensities assumes. `keep_positive` adds a positive where none
    was shown, drawn proportionally to p: π_i = p_i + Π(1 - p_j) p_i / Σ p_j over the user's positives.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> world = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [1, 0]}))
    >>> expose_independently(world, np.array([1.0, 0.0]), seed=0).propensity.tolist()
    [1.0]
    """
    chance = np.array(probability, dtype=np.float64)
    if chance.shape != (len(world),):
        raise InputError(f"probabilities of shape {chance.shape} for {len(world):,} rows; expected one for each.")
    bad = np.flatnonzero(~((chance >= 0) & (chance <= 1)))
    if len(bad):
        raise InputError(f"the probability of row {bad[0]:,} is {chance[bad[0]]:g}; expected a number from 0 to 1.")
    order = pair_order(world)
    world, chance = (world, chance) if order is None else (world.select(order), chance[order])
    members = Members.of(world, weight=chance, in_order=True)
    shown = np.zeros(len(world), dtype=bool)
    shown[BernoulliDesign().draw(members, seed=seed, purpose=f"{PURPOSE} independently")] = True
    if not keep_positive:
        return _log(world, shown, chance)
    positive = np.flatnonzero((world.label == 1) & (chance > 0))
    user, n_users = world.user[positive], len(world.users)
    first = PoolOrder.drawn(members.select(positive), seed=seed, purpose=f"{PURPOSE} of one positive").first(1)
    lacking = sums_by(user, shown[positive], n=n_users) == 0
    shown[positive[first & lacking[user]]] = True
    none, total = np.ones(n_users), sums_by(user, chance[positive], n=n_users)
    np.multiply.at(none, user, 1 - chance[positive])
    raised = chance.copy()
    raised[positive] += none[user] * chance[positive] / total[user]
    return _log(world, shown, np.minimum(raised, 1.0))


def proportional_probabilities(
    world: Log,
    logger: LoggingPolicy | str,
    *,
    sparsity: float | None = None,
    size: int | None = None,
    train: Log | None = None,
) -> Floats:
    """p = min(1, c_u q_i) for each row of a world, c_u so that a user is shown as many as asked for on average.

    What `expose_independently` takes. A user whose items of positive weight are too few is shown all of them.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> from truerank.exposure.logging_policies import DurationLogger
    >>> world = read(pl.DataFrame({"user": [1] * 3, "item": [1, 2, 3], "label": [1, 0, 0]}))
    >>> alike = DurationLogger(scale=float("inf"), duration=(3, 2, 1))
    >>> proportional_probabilities(world, alike, size=1).round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """
    weight = checked_weights(as_value(logger, LOGGERS).weights(world, train=train))[world.item]
    count = np.bincount(world.user, minlength=len(world.users))
    sizes = exposure_sizes(count, sparsity=sparsity, size=size).tolist()
    probability = np.zeros(len(world))
    for rows, n in zip(np.split(np.argsort(world.user, kind="stable"), np.cumsum(count)[:-1]), sizes, strict=True):
        probability[rows] = fill(probability[rows], weight[rows], n)
    return probability


def exposure_sizes(count: Ints, *, sparsity: float | None = None, size: int | None = None) -> Ints:
    """How many of `count` rows are shown.

    >>> exposure_sizes(np.array([30, 9]), sparsity=0.9).tolist(), exposure_sizes(np.array([30, 9]), size=10).tolist()
    ([3, 0], [10, 9])
    """
    if (sparsity is None) == (size is None):
        raise InputError("a log needs a sparsity or a size per user, one of the two: sparsity=0.9 or size=80.")
    if sparsity is not None:
        if not 0 <= sparsity <= 1:
            raise InputError(f"sparsity {sparsity:g}; expected a number from 0 (everything is shown) to 1.")
        return sizes_of(Share(1 - sparsity), count)
    if size is None or size < 0:
        raise InputError(f"a size of {size} per user; expected a whole number from 0.")
    return sizes_of(size, count)


def sorted_world(world: Log) -> Log:
    """The rows sorted by user and item; refused where a pair occurs twice."""
    order = pair_order(world)
    return world if order is None else world.select(order)


def _log(world: Log, shown: Bools, propensity: Floats | None) -> Log:
    whole = replace(world, propensity=None if propensity is None else frozen(propensity), complete=False)
    return whole.select(np.flatnonzero(shown).astype(np.int64))


class HoldOutUnit(StrEnum):
    """What is set aside: cells of each user, or whole items."""

    CELLS = "cells"
    ITEMS = "items"


@record
class WorldHoldOut:
    """What is set aside before anything is logged: `fraction` of each user's cells, or of the items, rounded down.

    It is for samplers that need random data.

    The sampler paper holds out "a random 10 %" of the world from every logger. Its code holds out 10 % of the items, so
    that what is logged and what is held out have no item in common, and nothing for the uniform logger.
    """

    fraction: float = 0.1
    unit: HoldOutUnit = HoldOutUnit.CELLS
    from_uniform: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", HoldOutUnit(self.unit))
        if not 0 < self.fraction < 1:
            raise InputError(f"a hold-out of {self.fraction:g}; expected a share between 0 and 1.")

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls(unit=HoldOutUnit.ITEMS, from_uniform=False)

    def split(self, world: Log, *, logger: LoggingPolicy, seed: int) -> tuple[Log, Log | None]:
        """What is left for the logger, and what is held out: None where nothing is.

        >>> import polars as pl
        >>> from truerank.io.read import read
        >>> from truerank.exposure.logging_policies import UniformLogger
        >>> world = read(pl.DataFrame({"user": [1] * 10, "item": list(range(10)), "label": [1] + [0] * 9}))
        >>> [len(part) for part in WorldHoldOut().split(world, logger=UniformLogger(), seed=1)]
        [9, 1]
        >>> WorldHoldOut.released().split(world, logger=UniformLogger.released(), seed=1)[1] is None
        True
        """
        if logger.name == "uniform" and not self.from_uniform:
            return world, None
        if self.unit is HoldOutUnit.CELLS:
            return split_per_user(world, self.fraction, seed=seed)
        items = Members.together(world.items.keys())
        held = np.zeros(len(items), dtype=bool)
        held[UniformDesign(Share(self.fraction)).draw(items, seed=seed, purpose="hold out items")] = True
        return world.select(~held[world.item]), world.select(held[world.item])
