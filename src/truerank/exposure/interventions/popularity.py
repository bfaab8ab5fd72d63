"""The two older ways to flatten popularity that the WTD paper names: Bellogín, Castells and Cantador 2017.

Both take as many rows from rare as from popular items, uniformly within what is alike. Where rare items have too few
rows the test set is smaller than asked for: "quite small", says the WTD paper, if the popularity curve is steep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.values import Count, check, text_of
from truerank.exposure.counts import Margins, counts_in
from truerank.exposure.interventions.design import DrawingRule
from truerank.sampling.pools import Share


@dataclass(frozen=True, slots=True)
class PopularityStratifiedIntervention:
    """The same number of rows from each of `strata` groups of items alike in popularity.

    The items of the log are put in order of their rows in the training log and cut into strata of equal numbers of
    items; size / strata rows are drawn from each, uniformly, all rows of a stratum that has fewer. Popularity is
    levelled between strata, not within them. The WTD paper says only that test items are "sampled from a
    popularity-based partition of the data": ten strata and equal numbers are our reading.
    """

    strata: Count = 10
    name: ClassVar[str] = "popularity-stratified"
    margins: ClassVar[tuple[str, ...]] = ("item",)
    needs_random: ClassVar[bool] = False

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()

    def rule(self, log: Margins, *, train: Margins, random: Margins | None, fraction: float, seed: int) -> DrawingRule:
        stratum = self.strata_of(log, train=train)
        there = log.by_item > 0
        n_strata = len(np.unique(stratum[there]))  # fewer than asked for where there are fewer items
        return DrawingRule(Share(fraction).of(len(log)) // max(n_strata, 1), pool=stratum)

    def strata_of(self, log: Margins, *, train: Margins) -> Ints:
        """The stratum of each item of the log, 0 for the least popular; equally popular items in the order of ids."""
        popularity = counts_in(log.items, train, margin="item", size=len(log.items)).count
        there = np.flatnonzero(log.by_item)
        stratum = np.zeros(len(log.items), dtype=np.int64)
        order = there[np.argsort(popularity[there], kind="stable")]
        stratum[order] = np.arange(len(order)) * self.strata // max(len(order), 1)
        return stratum


@dataclass(frozen=True, slots=True)
class EqualPerItemIntervention:
    """The same number of rows for each item, uniformly among its rows; items with fewer rows are left out.

    The number is size / items of the log, rounded down, or `per_item`: what each item would have to give for a test
    set of the size asked for.

    >>> import polars as pl, truerank as tr
    >>> from truerank.exposure.counts import Margins
    >>> log = Margins.of(tr.read(pl.DataFrame({"user": [1, 2, 3, 4, 1, 2, 1], "item": [7, 7, 7, 7, 8, 8, 9]})))
    >>> [EqualPerItemIntervention().number(log, fraction=part) for part in (0.5, 0.9)]  # of 3 items
    [1, 2]
    """

    per_item: Count | None = None
    name: ClassVar[str] = "equal-per-item"
    margins: ClassVar[tuple[str, ...]] = ()
    needs_random: ClassVar[bool] = False

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()

    def rule(self, log: Margins, *, train: Margins, random: Margins | None, fraction: float, seed: int) -> DrawingRule:
        number = self.number(log, fraction=fraction)
        return DrawingRule(number, pool=np.where(log.by_item >= number, np.arange(len(log.items)), -1))

    def number(self, log: Margins, *, fraction: float) -> int:
        """How many rows each item gives."""
        size, n_items = Share(fraction).of(len(log)), int(np.count_nonzero(log.by_item))
        number = size // max(n_items, 1) if self.per_item is None else self.per_item
        if number == 0:
            raise InputError(
                f"{log.source}: {size:,} rows are fewer than one for each of {n_items:,} items; "
                "expected a larger fraction, or another strategy."
            )
        return number
