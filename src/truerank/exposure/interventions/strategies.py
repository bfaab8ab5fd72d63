"""Strategies of intervened test sets: no intervention, older ways to flatten popularity, SKEW, WTD and WTD_H.

FULL and REG are the baselines of the WTD paper (Carraro and Bridge 2020, section 5.3): no intervention, and one that
does not look. Two ways flatten popularity (Bellogín, Castells and Cantador 2017): both take as many rows from rare as
from popular items, uniformly within what is alike. Where rare items have too few rows the test set is smaller than
requested: "quite small", says the WTD paper, if the popularity curve is steep. SKEW draws rows of popular items less
often (Liang, Charlin and Blei 2016), WTD towards the posteriors of randomly shown data (sections 4.2 and 4.3).
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Self

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Keys
from truerank.core.language import Kind
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.rng import cell_keys, cell_uniforms
from truerank.core.values import Count, NotNegative, Value
from truerank.exposure.counts import Floor, Margins, Zero, counts_in, ratio_of
from truerank.sampling.designs import SamplingDesign, UniformDesign, WeightedDesign
from truerank.sampling.pools import Members, row_keys

PAIR = "pair"
PURPOSE = "intervene"  # one for all strategies: with equal weights they draw the same rows, and differ by weights alone
FLOOR = Floor()


@record(eq=False)
class DrawingRule:
    """How rows are drawn, as far as users and items tell: `n` of each pool, uniformly or by the weights of both.

    `pool` is the pool of each item, -1 where its rows are never drawn; None where all rows are one pool. It serves for
    all rows at once and for those of any chunk.
    """

    n: int
    pool: Ints | None = None
    of_user: Floats | None = None
    of_item: Floats | None = None

    @property
    def weighs(self) -> bool:
        return self.of_item is not None

    @property
    def n_pools(self) -> int:
        return 1 if self.pool is None else int(self.pool.max(initial=-1)) + 1

    def sizes(self, log: Margins) -> Ints:
        """How many rows each pool has."""
        pool = np.zeros(len(log.items), dtype=np.int64) if self.pool is None else self.pool
        count = np.bincount(pool + 1, weights=log.by_item, minlength=self.n_pools + 1)
        return count[1:].astype(np.int64)

    def weights(self, log: Log, unit: Ints | None = None) -> Floats:
        """Of each row; `unit` are the places of the log's users, where it has some of them alone."""
        if self.of_item is None:
            return np.ones(len(log))
        of_item = self.of_item[log.item]
        if self.of_user is None:
            return of_item
        return np.asarray(self.of_user[log.user if unit is None else unit[log.user]] * of_item)

    def members(self, log: Log, key: Keys, *, largest: float, unit: Ints | None = None) -> tuple[Ints, Members]:
        """The rows that can be drawn, as members of pools, by keys of pairs; `largest` is the largest of all weights.

        The scale of weights is free; far from 1 they could leave the range of numbers.
        """
        if self.weighs:
            return np.arange(len(log)), Members.together(key, weight=self.weights(log, unit) / largest)
        if self.pool is None:
            return np.arange(len(log)), Members.together(key)
        pool = self.pool[log.item]
        rows = np.flatnonzero(pool >= 0)
        return rows, Members(pool[rows].astype(np.uint64), key[rows])

    def draw(self, log: Log, *, seed: int) -> Ints:
        """The rows of a log in memory that are drawn, ascending."""
        rows, members, design = self.design(log)
        return rows[design.draw(members, seed=seed, purpose=PURPOSE)]

    def inclusion(self, log: Log) -> Floats:
        """The probability of each row of a log in memory to be drawn."""
        rows, members, design = self.design(log)
        probability = np.zeros(len(log))
        probability[rows] = design.inclusion(members)
        return probability

    def design(self, log: Log) -> tuple[Ints, Members, SamplingDesign]:
        """The rows that can be drawn, as members of pools, and the design that draws from them."""
        largest = float(self.weights(log).max(initial=0.0))
        check_largest(largest, log.source)
        members = self.members(log, cell_keys(0, PAIR, *row_keys(log)), largest=largest)
        return *members, WeightedDesign(self.n) if self.weighs else UniformDesign(self.n)


def check_largest(largest: float, source: str) -> None:
    """Refuse rows of which none can be drawn."""
    if not largest > 0:
        raise InputError(
            f"{source}: no row has a positive weight, so nothing can be drawn; give a floor above 0 for users and "
            "items without a row in the random slice."
        )


@record(eq=False)
class InterventionCounts:
    """What a strategy looks at: rows of the log, of training data and of a random slice, each there if it is needed.

    `n` rows are requested.
    """

    log: Margins
    train: Margins
    random: Margins | None
    n: int
    seed: int


class Strategy(Value):
    """A frozen value that says how likely each row of a biased log enters the intervened test set.

    `margins` are the counts it reads in the training log, `needs_random` says whether it also needs a randomly shown
    slice. `published` is what the paper says, `released` what its code does.
    """

    __slots__ = ()

    margins: ClassVar[tuple[str, ...]] = ()
    needs_random: ClassVar[bool] = False

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        """How rows are drawn, by the counts of users and items."""
        raise NotImplementedError


STRATEGIES: Kind[Strategy] = Kind("strategy", __name__, Strategy, among=lambda cls: cls is not Strategy)


@record
class FullIntervention(Strategy):
    """FULL: every row, whatever the fraction."""

    name: ClassVar[str] = "full"

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        return DrawingRule(len(counts.log))


@record
class RegularIntervention(Strategy):
    """REG: a uniform sample of the rows, which keeps the bias they have."""

    name: ClassVar[str] = "reg"

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        return DrawingRule(counts.n)


@record
class PopularityStratifiedIntervention(Strategy):
    """The same number of rows from each of `strata` groups of items alike in popularity.

    The items of the log are put in order of their rows in the training log and cut into strata of equal numbers of
    items; size / strata rows are drawn from each, uniformly, all rows of a stratum that has fewer. Popularity is
    levelled between strata, not within them. The WTD paper says only that test items are "sampled from a
    popularity-based partition of the data": ten strata and equal numbers are our reading.
    """

    strata: Count = 10
    name: ClassVar[str] = "popularity-stratified"
    margins: ClassVar[tuple[str, ...]] = ("item",)

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        log = counts.log
        popularity = counts_in(log.items, counts.train, margin="item", size=len(log.items)).count
        there = np.flatnonzero(log.by_item)
        # 0 for the least popular; equally popular items in the order of ids
        stratum = np.zeros(len(log.items), dtype=np.int64)
        order = there[np.argsort(popularity[there], kind="stable")]
        stratum[order] = np.arange(len(order)) * self.strata // max(len(order), 1)
        n_strata = len(np.unique(stratum[there]))  # fewer than requested where there are fewer items
        return DrawingRule(counts.n // max(n_strata, 1), pool=stratum)


@record
class EqualPerItemIntervention(Strategy):
    """The same number of rows for each item, uniformly among its rows; items with fewer rows are left out.

    The number is size / items of the log, rounded down, or `per_item`: what each item would have to give for a test
    set of the size asked for.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 3, 4, 1, 2, 1], "item": [7, 7, 7, 7, 8, 8, 9]}))
    >>> [len(tr.intervene(log, "equal-per-item", fraction=part, seed=0)) for part in (0.5, 0.9)]  # 1 of 3, 2 of 2 items
    [3, 4]
    """

    per_item: Count | None = None
    name: ClassVar[str] = "equal-per-item"

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        by_item = counts.log.by_item
        n_items = int(np.count_nonzero(by_item))
        number = counts.n // max(n_items, 1) if self.per_item is None else self.per_item
        if number == 0:
            raise InputError(
                f"{counts.log.source}: {counts.n:,} rows are fewer than one for each of {n_items:,} items; "
                "expected a larger fraction, or another strategy."
            )
        return DrawingRule(number, pool=np.where(by_item >= number, np.arange(len(by_item)), -1))


class Unseen(StrEnum):
    """The weight of an item without a row in the training log.

    ONCE    1, as if it had been seen once (default; the paper is silent)
    RANDOM  a uniform number in (0, 1), drawn by seed and item (the paper's code)
    """

    ONCE = "once"
    RANDOM = "random"


@record
class SkewIntervention(Strategy):
    """P_S(u, i) ∝ 1 / pop(i)^`item_power`, pop(i) the rows of item i in the training log.

    >>> import polars as pl, truerank as tr
    >>> train = tr.read(pl.DataFrame({"user": [1, 2, 3, 1], "item": [7, 7, 7, 8]}))
    >>> log = tr.read(pl.DataFrame({"user": [4, 4, 4], "item": [7, 8, 9]}))
    >>> SkewIntervention().weights(log, train=train, seed=0).round(3).tolist()
    [0.333, 1.0, 1.0]
    """

    item_power: NotNegative = 1.0
    unseen: Unseen = Unseen.ONCE
    name: ClassVar[str] = "skew"
    margins: ClassVar[tuple[str, ...]] = ("item",)

    @classmethod
    def released(cls) -> Self:
        return cls(unseen=Unseen.RANDOM)

    def weights(self, log: Log, *, train: Log, seed: int) -> Floats:
        """The weight of each row."""
        return self.of_items(Margins.of(log), train=Margins.of(train), seed=seed)[log.item]

    def of_items(self, log: Margins, *, train: Margins, seed: int) -> Floats:
        popularity = counts_in(log.items, train, margin="item", size=len(log.items)).count
        if self.unseen is Unseen.ONCE:
            unseen = np.ones(len(popularity))
        else:
            key = log.items.keys()
            unseen = np.maximum(cell_uniforms(seed, "skew unseen", np.zeros_like(key), key), 2.0**-54)
        return np.where(popularity > 0, np.maximum(popularity, 1.0) ** -self.item_power, unseen)

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        return DrawingRule(counts.n, of_item=self.of_items(counts.log, train=counts.train, seed=counts.seed))


@record
class WTDIntervention(Strategy):
    """P_S(u, i) ∝ w_u^`user_power` w_i^`item_power`, w = P_mar / P_mnar of the user and of the item (eqs. 13 and 14).

    P_mnar is the share of rows in the training log, P_mar the share in a randomly shown slice; `zero` says what a share
    of 0 becomes. The paper squares the item's weight, on the grounds of preliminary experiments; its code does not.

    >>> import polars as pl, truerank as tr
    >>> train = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> shown = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 8, 8]}))
    >>> WTDIntervention().weights(train, train=train, random=shown).round(3).tolist()  # w of items: 2/3 and 2
    [0.444, 0.444, 0.444, 4.0]
    """

    user_power: NotNegative = 1.0
    item_power: NotNegative = 2.0
    zero: Zero = FLOOR
    name: ClassVar[str] = "wtd"
    margins: ClassVar[tuple[str, ...]] = ("user", "item")
    needs_random: ClassVar[bool] = True

    @classmethod
    def released(cls) -> Self:
        return cls(item_power=1.0)

    def weights(self, log: Log, *, train: Log, random: Log | None = None) -> Floats:
        """The weight of each row."""
        shown = None if random is None else Margins.of(random)
        return self.rule(InterventionCounts(Margins.of(log), Margins.of(train), shown, n=len(log), seed=0)).weights(log)

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        random = counts.random if self.needs_random else None
        user, item = (
            ratio_of(counts.log, margin, train=counts.train, random=random, zero=self.zero) for margin in self.margins
        )
        return DrawingRule(counts.n, of_user=user**self.user_power, of_item=item**self.item_power)


@record
class WTDHIntervention(WTDIntervention):
    """WTD with the posteriors that random data is expected to have: 1 / users and 1 / items. Needs no random data.

    >>> import polars as pl, truerank as tr
    >>> train = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> WTDHIntervention(item_power=1).weights(train, train=train).round(3).tolist()  # 1/2 over 3/4 and 1/4
    [0.667, 0.667, 0.667, 2.0]
    """

    name: ClassVar[str] = "wtd_h"
    needs_random: ClassVar[bool] = False
