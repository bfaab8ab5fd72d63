"""Turn a fully observed dataset into a biased log with its true propensities.

A logging policy gives how much more often one item is exposed than another. A number of each user's items is exposed by
successive draws, each proportional to weight among those left; or each item by itself, with a known probability. Where
no positive was exposed, one is added: the first in the order of draws, which is a draw proportional to weight among the
user's positives and independent of the rest (the clock that rings first among several is independent of when it rings).
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import ClassVar, Self

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.language import as_value
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.validation import ANYTHING, checked_arguments
from truerank.core.values import Between0And1, PaperValue
from truerank.datasets.split import split_per_user
from truerank.exposure.counts import pair_order
from truerank.exposure.logging_policies import LOGGERS, LoggingPolicy
from truerank.sampling.clocks import checked_weights
from truerank.sampling.designs import BernoulliDesign, UniformDesign, shown_propensities
from truerank.sampling.pools import Members, PoolOrder, Share, sizes_of

PURPOSE = "exposure"


@checked_arguments(policy=ANYTHING)
def expose(
    dataset: Log,
    policy: LoggingPolicy | str | Floats,
    *,
    sparsity: float | None = None,
    size: int | None = None,
    keep_positive: bool = True,
    train: Log | None = None,
    propensities: bool = True,
    seed: int,
) -> Log:
    """The rows of a dataset that a logging policy exposes, with the probability of each to be exposed.

    `policy` can be the weights themselves, one for each item. Of n rows of a user floor((1 - sparsity) n) are exposed,
    or `size`: weighted draws without replacement, items of weight 0 after all others. `keep_positive` adds a positive
    where none was drawn (users without positives in the dataset get nothing), which raises the propensities of
    positives: π_i = π⁰_i + P(no positive drawn) q_i / Σ q_j over the user's positives. Probabilities are exact for
    equal weights and, within seconds of work, for others; else by Rosén's approximation. `propensities=False` leaves
    them out.

    A smaller log is part of a larger one of the same seed. With equal weights and `keep_positive=False` this is
    missing at random: `size` uniformly random items per user.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> dataset = read(pl.DataFrame({"user": [1] * 4, "item": [1, 2, 3, 4], "label": [1, 0, 0, 0]}))
    >>> log = expose(dataset, "uniform", size=1, seed=0)  # item 1 alone, or with one of the others
    >>> log.propensity[log.label == 1].tolist(), set(log.propensity[log.label == 0].tolist()) <= {0.25}
    ([1.0], True)
    """
    if not isinstance(policy, np.ndarray):
        policy = np.asarray(as_value(policy, LOGGERS).weights(dataset, train=train))
    weight = checked_weights(policy)
    dataset = sorted_world(dataset)
    if weight.shape != (len(dataset.items),):
        raise InputError(f"weights of shape {weight.shape} for {len(dataset.items):,} items; expected one for each.")
    of_row, positive = weight[dataset.item], (dataset.label == 1) & keep_positive
    order = PoolOrder.drawn(Members.of(dataset, weight=of_row, in_order=True), seed=seed, purpose=PURPOSE)
    sizes = exposure_sizes(order.count, sparsity=sparsity, size=size)
    probability = None
    if propensities:
        start = np.concatenate([[0], np.cumsum(order.count)]).astype(np.int64)
        probability = frozen(shown_propensities(start, of_row, positive, size=sizes).value)
    exposed = np.flatnonzero(order.first(sizes, one_of=positive))
    return replace(dataset, propensity=probability, complete=False).select(exposed)


def expose_independently(dataset: Log, probability: Floats, *, seed: int) -> Log:
    """The rows of a dataset when each is exposed by itself with a known probability p (Bernoulli exposure).

    This is the exposure that the theory of inverse propensities assumes.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> dataset = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [1, 0]}))
    >>> expose_independently(dataset, np.array([1.0, 0.0]), seed=0).propensity.tolist()
    [1.0]
    """
    probability = np.array(probability, dtype=np.float64)
    if probability.shape != (len(dataset),):
        raise InputError(
            f"probabilities of shape {probability.shape} for {len(dataset):,} rows; expected one for each."
        )
    bad = np.flatnonzero(~((probability >= 0) & (probability <= 1)))
    if len(bad):
        raise InputError(
            f"the probability of row {bad[0]:,} is {probability[bad[0]]:g}; expected a number from 0 to 1."
        )
    dataset = sorted_world(replace(dataset, propensity=frozen(probability)))
    members = Members.of(dataset, weight=dataset.propensity, in_order=True)
    drawn = BernoulliDesign().draw(members, seed=seed, purpose=f"{PURPOSE} independently")
    return replace(dataset, complete=False).select(drawn)


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


def sorted_world(dataset: Log) -> Log:
    """The rows sorted by user and item; refused where a pair occurs twice."""
    order = pair_order(dataset)
    return dataset if order is None else dataset.select(order)


class HoldOutUnit(StrEnum):
    """What is set aside: cells of each user, or whole items."""

    CELLS = "cells"
    ITEMS = "items"


@record
class WorldHoldOut(PaperValue):
    """The hold-out before anything is logged: `fraction` of each user's pairs, or of the items, rounded down.

    It is for samplers that need random data.

    The sampler paper holds out "a random 10 %" of the dataset from every logging policy. Its code holds out 10 % of the
    items, so that what is logged and what is held out have no item in common, and nothing for uniform exposure.
    """

    fraction: Between0And1 = 0.1
    unit: HoldOutUnit = HoldOutUnit.CELLS
    from_uniform: bool = True
    name: ClassVar[str] = "hold-out"

    @classmethod
    def released(cls) -> Self:
        return cls(unit=HoldOutUnit.ITEMS, from_uniform=False)

    def split(self, dataset: Log, *, policy: LoggingPolicy, seed: int) -> tuple[Log, Log | None]:
        """What is left for the logging policy, and what is held out: None where nothing is.

        >>> import polars as pl
        >>> from truerank.io.read import read
        >>> from truerank.exposure.logging_policies import UniformLogger
        >>> dataset = read(pl.DataFrame({"user": [1] * 10, "item": list(range(10)), "label": [1] + [0] * 9}))
        >>> [len(part) for part in WorldHoldOut().split(dataset, policy=UniformLogger(), seed=1)]
        [9, 1]
        >>> WorldHoldOut.released().split(dataset, policy=UniformLogger.released(), seed=1)[1] is None
        True
        """
        if not self.applies_to(policy):
            return dataset, None
        if self.unit is HoldOutUnit.CELLS:
            return split_per_user(dataset, self.fraction, seed=seed)
        held = self.items_held(dataset.items, seed=seed)
        return dataset.select(~held[dataset.item]), dataset.select(held[dataset.item])

    def applies_to(self, policy: LoggingPolicy) -> bool:
        """Whether something is set aside before this policy logs."""
        return self.from_uniform or policy.name != "uniform"

    def items_held(self, items: Ids, *, seed: int) -> Bools:
        """Which items are set aside as a whole; none where cells are."""
        held = np.zeros(len(items), dtype=bool)
        if self.unit is HoldOutUnit.ITEMS:
            members = Members.together(items.keys())
            held[UniformDesign(Share(self.fraction)).draw(members, seed=seed, purpose="hold out items")] = True
        return held
