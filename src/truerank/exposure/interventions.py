"""Intervened test sets: rows drawn from a biased log so that what is left looks as if it had been exposed at random.

Carraro and Bridge 2020 (the WTD paper). `truerank.intervene` draws one such test set; `with_inclusion` gives every row
its probability to be drawn, with which one evaluation replaces the average over many drawn test sets. A new strategy is
one new class here that derives from `Strategy`; the catalogue and the command line find it.

FULL and REG are the baselines of the paper (section 5.3): no intervention, and one that does not look. Two ways flatten
popularity (Bellogín, Castells and Cantador 2017): both take as many rows from rare as from popular items, uniformly
within what is alike. Where rare items have too few rows the test set is smaller than requested: "quite small", says the
WTD paper, if the popularity curve is steep. SKEW draws rows of popular items less often (Liang, Charlin and Blei 2016),
WTD towards the posteriors of randomly exposed data (sections 4.2 and 4.3).
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import ClassVar, Self

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.language import Kind, as_value
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.core.validation import checked_arguments
from truerank.core.values import Count, NotNegative, PaperValue
from truerank.core.wording import option
from truerank.exposure.counts import DrawingRule, Floor, Margins, Zero, counts_in, pair_order, ratio_of
from truerank.sampling.pools import Share

FLOOR = Floor()


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


class Strategy(PaperValue):
    """A frozen value that says how likely each row of a biased log enters the intervened test set.

    `margins` are the counts it reads in the training log, `needs_random` says whether it also needs a randomly shown
    slice.
    """

    __slots__ = ()

    margins: ClassVar[tuple[str, ...]] = ()
    needs_random: ClassVar[bool] = False

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        """How rows are drawn, by the counts of users and items."""
        raise NotImplementedError

    def weights(self, log: Log, *, train: Log | None = None, random: Log | None = None, seed: int = 0) -> Floats:
        """The weight of each row of a log."""
        return drawing_rule(log, self, train=train, random=random, seed=seed).weights(log)


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

    def rule(self, counts: InterventionCounts) -> DrawingRule:
        items = counts.log.items
        popularity = counts_in(items, counts.train, margin="item", size=len(items)).count
        unseen = np.ones(len(items))
        if self.unseen is Unseen.RANDOM:
            key = items.keys()
            unseen = np.maximum(cell_uniforms(counts.seed, "skew unseen", np.zeros_like(key), key), 2.0**-54)
        of_item = np.where(popularity > 0, np.maximum(popularity, 1.0) ** -self.item_power, unseen)
        return DrawingRule(counts.n, of_item=of_item)


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


# ------------------------------------------------------------------------------------------------------- drawing rules


@checked_arguments()
def with_inclusion(
    log: Log,
    strategy: Strategy | str,
    *,
    train: Log | None = None,
    random: Log | None = None,
    fraction: float = 0.5,
    seed: int = 0,
) -> Log:
    """The same log with the probability of each row to be drawn by `intervene`, for `estimators.intervened`.

    Exact for uniform draws and for small pools, by Rosén's equation beyond (`sampling.designs`). The seed matters
    only where weights are themselves drawn (the released form of SKEW).

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> with_inclusion(log, RegularIntervention(), fraction=0.25).inclusion.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    rule = drawing_rule(log, strategy, train=train, random=random, fraction=fraction, seed=seed)
    return replace(log, inclusion=frozen(rule.inclusion(log)))


def index_of_dispersion(count: Ints) -> float:
    """Variance / mean of the numbers of rows of items: about 1 at random, more where some items are favoured.

    >>> index_of_dispersion(np.array([3, 1]))
    0.5
    """
    return float(count.var() / count.mean())


def unseen_notes(log: Margins, strategy: Strategy, train: Margins | None) -> list[str]:
    """How many users and items of the log the training log does not have, where the strategy counts them there."""
    notes: list[str] = []
    if train is None:
        return notes
    for margin in strategy.margins:
        rows = log.rows(margin)[~_occurring(log, train, margin)]
        missing = int(np.count_nonzero(rows))
        if missing:
            notes.append(
                f"{missing:,} {margin}s of {log.source} ({int(rows.sum()):,} rows) are unseen in "
                f"{train.source}; their weights follow the rule for zero counts."
            )
    return notes


def drawing_rule(
    log: Log | Margins,
    strategy: Strategy | str,
    *,
    train: Log | Margins | None = None,
    random: Log | Margins | None = None,
    fraction: float = 0.5,
    seed: int = 0,
) -> DrawingRule:
    """How the rows of a log are drawn: from the counts of users and items alone."""
    if isinstance(log, Log):
        pair_order(log)
    rows = Margins.of(log)
    training, uniform = (None if table is None else Margins.of(table) for table in (train, random))
    chosen: Strategy = as_value(strategy, STRATEGIES)
    if not 0 < fraction <= 1:
        raise InputError(f"a fraction of {fraction:g}; expected a number in (0, 1], such as 0.5.")
    if not len(rows):
        raise InputError(f"{rows.source}: no rows; expected rows of users and items to draw from.")
    in_training = f"counts rows in the training log; give it: {option('train TRAIN')}."
    at_random = f"compares with a random slice; give it: {option('random MAR')}, or use wtd_h, which needs none."
    # both margins must be in the training log; one of them in the slice, where the other has a rule for zero counts
    needs = [(training, in_training, (margin,)) for margin in chosen.margins]
    for counts, purpose, margins in [*needs, *[(uniform, at_random, chosen.margins)] * chosen.needs_random]:
        if counts is None:
            raise InputError(f"{chosen.name} {purpose}")
        if not len(counts):
            raise InputError(f"{counts.source}: no rows; {chosen.name} counts rows there.")
        if not any(_occurring(rows, counts, margin).any() for margin in margins):
            ours, theirs = (", ".join(part.ids(margins[-1]).texts()[:3]) for part in (rows, counts))
            raise InputError(
                f"{rows.source} and {counts.source} have no {' and no '.join(margins)} in common: {margins[-1]}s such "
                f"as {ours} against {theirs}. Check the id columns."
            )
    n = Share(fraction).of(len(rows))
    return chosen.rule(InterventionCounts(rows, rows if training is None else training, uniform, n, seed))


def _occurring(log: Margins, beside: Margins, margin: str) -> Bools:
    """Which users or items of a log have rows in another."""
    return counts_in(log.ids(margin), beside, margin=margin, size=0).count > 0
