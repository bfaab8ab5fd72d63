"""Candidate sets of a log: each user's positives, and negatives that a sampler chooses among the other items.

The negatives of all samplers and sizes come from one exponential time for each (user, item): a larger set contains the
smaller one, all models are ranked among the same items, and samplers with equal weights draw equal sets. These are the
draws of `sampling.designs.WeightedDesign`, taken from whole blocks of users and items, which is faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, ClassVar, Self

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.language import Kind, as_value
from truerank.core.log import Log, Pairs
from truerank.core.record import record
from truerank.core.validation import checked_arguments
from truerank.core.values import Value
from truerank.exposure.counts import shares_of_items
from truerank.ranking.candidates import located_pairs
from truerank.sampling.clocks import checked_weights
from truerank.sampling.designs import Inclusion, inclusion_of_each
from truerank.sampling.pools import NEVER, first_to_ring, ring_times, rings

PURPOSE = "candidates"
CELLS_AT_ONCE = 2**21


class Among(StrEnum):
    """Where negatives come from: all items of the pool, or the user's own rows that are not positive."""

    POOL = "pool"
    EXPOSED = "exposed"


class OwnPositives(StrEnum):
    """Whether a user's positives can be drawn as negatives: never, or as the code of the sampler paper does."""

    EXCLUDED = "excluded"
    DRAWN = "drawn"


@record
class ItemCounts:
    """What is known of the items of a pool: rows and positives in the log, shares of training and of random data.

    `items` and `users` say which items these are and whose weights are asked for: for weights that differ by user.
    """

    rows: Ints
    positives: Ints
    train: Floats | None = None
    random: Floats | None = None
    items: Ids | None = None
    users: Ids | None = None


class Sampler(Value):
    """A frozen value such as Skew(100); its text form `Skew@100` parses back.

    A new one inherits from this class: negatives come from the pool, without the user's positives, unless it differs.
    """

    among: ClassVar[Among] = Among.POOL
    as_released: ClassVar[Mapping[str, Any]] = {}

    __slots__ = ()

    @classmethod
    def released(cls, n: int) -> Self:
        """With the options of the sampler paper's code."""
        return cls(n, **cls.as_released)  # type: ignore[call-arg]

    @property
    def needs(self) -> tuple[str, ...]:
        """What weights are made of beside positives: `rows` of the log, shares of `random` or of `train`ing data."""
        return ()

    @property
    def positives(self) -> OwnPositives:
        """Whether a user's positives can be drawn as negatives."""
        return OwnPositives.EXCLUDED

    def wanted(self, exposed: Ints) -> Ints | None:
        """How many negatives each user gets, from the number of the user's rows that are not positive; None for all.

        `n` for everyone, unless a sampler differs.
        """
        return np.full(len(exposed), self.n, dtype=np.int64)  # type: ignore[attr-defined]

    def weights(self, counts: ItemCounts) -> Floats:
        """v_i of each item of the pool, not normalised; or v_ui, a row for each of `counts.users`. 1 for all unless a
        sampler differs.
        """
        return np.ones(len(counts.rows))


SAMPLERS: Kind[Sampler] = Kind("sampler", __package__, Sampler)


@record
class CandidatePool:
    """A log seen by samplers: the pool, each user's positives and other rows as positions in it, and its counts.

    The pool is the items that have a row in the log, unless it is given: a rarely exposed item can be absent from a
    sparse log, and is no candidate then.
    """

    users: Ids
    items: Ids
    positive: Pairs
    exposed: Pairs
    excluded: Pairs
    counts: ItemCounts
    source: str

    @classmethod
    def of(
        cls,
        log: Log,
        *,
        pool: Ids | None = None,
        train: Log | None = None,
        random: Log | None = None,
        exclude: Log | None = None,
    ) -> CandidatePool:
        """`train` and `random` are for samplers that compare the log with them; `pool` fixes the candidates."""
        label = log.label
        if pool is None:
            pool = Ids(log.items.values.filter(np.bincount(log.item, minlength=len(log.items)) > 0))
        place = pool.locate(log.items, where=f"{log.source}, column 'item', against the pool")
        _check_pool(log, place)
        item = place[log.item]
        n_users = len(log.users)
        positive = Pairs.of(log.user[label == 1], item[label == 1], n_units=n_users)
        exposed = Pairs.of(log.user[label == 0], item[label == 0], n_units=n_users)
        if len(positive.item) + len(exposed.item) < len(log):
            raise InputError(f"{log.source}: some pairs occur more than once. Keep one row per pair.")
        counts = ItemCounts(
            rows=np.bincount(item, minlength=len(pool)),
            positives=np.bincount(item[label == 1], minlength=len(pool)),
            train=None if train is None else shares_of_items(train, pool),
            random=None if random is None else shares_of_items(random, pool),
            items=pool,
        )
        return cls(log.users, pool, positive, exposed, _excluded(log, pool, exclude), counts, log.source)


def weights_of(sampler: Sampler, counts: ItemCounts, *, users: Ids) -> Floats:
    """The weights of one sampler for these users: v_i, [items], or v_ui, [users x items]."""
    weight = checked_weights(sampler.weights(replace(counts, users=users)))
    n_users, n_items = len(users), len(counts.rows)
    if weight.shape not in ((n_items,), (n_users, n_items)):
        raise InputError(
            f"{sampler}: weights of shape {weight.shape}; expected one for each of {n_items:,} items, or a row of them "
            f"for each of {n_users:,} users."
        )
    return weight


@record
class SampledNegatives:
    """The negatives of each user in the order in which they were drawn: user u has item[start[u]:start[u + 1]]."""

    logged: CandidatePool
    sampler: Sampler
    start: Ints
    item: Ints

    @property
    def count(self) -> Ints:
        """The number of negatives of each user."""
        return np.diff(self.start)

    @property
    def user(self) -> Ints:
        """The user of each negative."""
        return Pairs(self.start, self.item).unit

    @property
    def repeated(self) -> Bools:
        """Which negatives are positives of their user: none, unless positives can be drawn."""
        return self.logged.positive.hold(self.user, self.item)

    def labels(self, *, inclusion: bool = False) -> Log:
        """OwnPositives with label 1 and negatives with label 0: what to give `evaluate`, as labels and as candidates.

        A positive that was also drawn as a negative stays a positive and is listed once. `inclusion` adds the
        probability of each negative to be drawn as `propensity`, 1 for positives.
        """
        single, positive = ~self.repeated, self.logged.positive
        n = len(positive.item)
        user = np.concatenate([positive.unit, self.user[single]])
        item = np.concatenate([positive.item, self.item[single]])
        label = (np.arange(len(user)) < n).astype(np.float64)
        propensity = np.concatenate([np.ones(n), self.inclusion().value[single]]) if inclusion else None
        order = np.lexsort((item, user))
        return Log(
            self.logged.users,
            self.logged.items,
            unit=frozen(user[order]),
            item=frozen(item[order]),
            rewards={"label": frozen(label[order])},
            propensity=None if propensity is None else frozen(propensity[order]),
            source=f"{self.logged.source}, {self.sampler}",
        )

    def inclusion(self) -> Inclusion:
        """The probability of each negative to be drawn (and for which users it is an approximation)."""
        logged, sampler = self.logged, self.sampler
        n_users = len(logged.users)
        wanted = sampler.wanted(logged.exposed.count)
        if wanted is None or sampler.among is Among.EXPOSED:
            return Inclusion(np.ones(len(self.item)), np.zeros(n_users, dtype=bool))
        shared = weights_of(sampler, logged.counts, users=Ids(logged.users.values[:1]))

        never = never_drawn(logged, sampler)

        def weight_of(user: int) -> Floats:
            """The weight of each item of the pool for a user, 0 where it cannot be drawn."""
            here = Ids(logged.users.values[user : user + 1])
            weight = shared.copy() if shared.ndim == 1 else weights_of(sampler, logged.counts, users=here)[0]
            for pairs in never:
                weight[pairs.of_unit(user)] = 0.0
            return weight

        value, approximate = np.empty(len(self.item)), np.zeros(n_users, dtype=bool)
        for u, (probability, rough) in enumerate(inclusion_of_each(weight_of, wanted)):
            drawn = slice(int(self.start[u]), int(self.start[u + 1]))
            value[drawn], approximate[u] = probability[self.item[drawn]], rough
        return Inclusion(value, approximate)


@checked_arguments()
def sample_candidates(
    log: Log,
    sampler: Sampler | str,
    *,
    seed: int,
    pool: Ids | None = None,
    train: Log | None = None,
    random: Log | None = None,
    exclude: Log | None = None,
) -> SampledNegatives:
    """Sample the candidate set of each user: the user's positives, and negatives that a sampler draws from the pool.

    Negatives are drawn without replacement, proportional to the weights of the sampler. Items without a positive row
    are negatives: most are unlabelled, and count as 0. Users without positives get negatives like others.

    Parameters
    ----------
    log
        Labels.
    sampler
        A sampler or its text, such as "Random@100".
    seed
        The same seed gives the same results.
    pool
        The items to draw from; by default those of the log.
    train
        Training log, for samplers that count it.
    random
        Randomly exposed rows, for WTD samplers.
    exclude
        Pairs that are never drawn, such as training interactions; rows of the log stay.

    Returns
    -------
    SampledNegatives
        `sampled.labels()` are labels of all candidates.

    Examples
    --------
    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> log = read(pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 3], "label": [1, 0, 1]}))
    >>> sampled = sample_candidates(log, "Random@5", seed=0)
    >>> sampled.labels().item.tolist(), sampled.labels().label.tolist()
    ([0, 1, 2, 0, 1, 2], [1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    """
    logged = CandidatePool.of(log, pool=pool, train=train, random=random, exclude=exclude)
    return draw(logged, as_value(sampler, SAMPLERS), seed=seed)


def never_drawn(logged: CandidatePool, sampler: Sampler) -> list[Pairs]:
    """What no draw of the sampler can give."""
    return [logged.excluded] if sampler.positives is OwnPositives.DRAWN else [logged.excluded, logged.positive]


def draw(logged: CandidatePool, sampler: Sampler, *, seed: int) -> SampledNegatives:
    """What a sampler draws from a log."""
    n_users, n_items = len(logged.users), len(logged.items)
    if sampler.among is Among.EXPOSED:
        return SampledNegatives(logged, sampler, logged.exposed.start, logged.exposed.item)
    wanted = sampler.wanted(logged.exposed.count)
    sizes = np.full(n_users, n_items) if wanted is None else np.minimum(wanted, n_items)
    user_key, item_key = logged.users.keys(), logged.items.keys()
    items, counts = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
    step = max(1, CELLS_AT_ONCE // max(n_items, 1))
    for low in range(0, n_users, step):
        high = min(low + step, n_users)
        weight = weights_of(sampler, logged.counts, users=Ids(logged.users.values[low:high]))
        time = ring_times(seed, PURPOSE, user_key[low:high, None], item_key[None, :])
        clock = np.where(weight > 0, rings(time, weight), NEVER)
        for pairs in never_drawn(logged, sampler):
            here = pairs.of_units(low, high)
            clock[here.unit, here.item] = NEVER
        item, count = first_to_ring(clock, sizes[low:high])
        items.append(item)
        counts.append(count)
    start = np.cumsum(np.concatenate(counts))
    return SampledNegatives(logged, sampler, frozen(start), frozen(np.concatenate(items)))


def _excluded(log: Log, pool: Ids, exclude: Log | None) -> Pairs:
    """The pairs to exclude, of users of the log and items of the pool, without the rows of the log itself."""
    pairs, of_log = located_pairs(exclude, log.users, pool), pool.locate(log.items)[log.item]
    outside = ~Pairs.of(log.user, of_log, n_units=len(log.users)).hold(pairs.unit, pairs.item)
    return Pairs.of(pairs.unit[outside], pairs.item[outside], n_units=len(log.users))


def _check_pool(log: Log, place: Ints) -> None:
    outside = np.flatnonzero((place < 0) & (np.bincount(log.item, minlength=len(log.items)) > 0))
    if len(outside):
        raise InputError(
            f"{log.source}: {len(outside):,} items are not in the pool ({some(log.items.texts(outside[:4]), most=3)}); "
            "expected every item of the log to be a candidate. Add them to the pool or remove their rows."
        )
