"""Serendipity: relevant items that popularity alone would not have recommended."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import ListMetric, ListNeed
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.listed import ListedItems, mean_of


@record
class Serendipity(ListMetric):
    """The mean over a user's top K of max(p - p_any, 0) for relevant items, 0 for others, as RecTools has it.

    p = (n + 1 - rank) / n says how high the item stands for this user, p_any = (n + 1 - place) / n how high for
    anybody: `place` is 1 for the items that most users of the training log have, 2 for those with the next smaller
    number, ...; for an item that nobody has p_any = 0. n is the size of the catalogue. The only one of the metrics of
    lists that looks at labels, and of which more is better.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1], "item": ["b", "c"], "rank": [1, 2]})
    >>> train = pl.DataFrame({"user": [2, 3, 3], "item": ["a", "a", "b"]})
    >>> test = pl.DataFrame({"user": [1, 1], "item": ["b", "c"]})
    >>> how = {"exposure": "holdout", "exclude": train, "n_items": 4, "metrics": ["Serendipity@2"]}
    >>> tr.evaluate({"m": lists}, test, **how).estimates[0].value  # (4/4 - 3/4 + 3/4 - 0) / 2
    0.5
    """

    k: Count
    name: ClassVar[str] = "Serendipity"
    directed: ClassVar[bool] = True
    needs: ClassVar[frozenset[ListNeed]] = frozenset({ListNeed.CATALOGUE, ListNeed.POPULARITY, ListNeed.LABELS})

    @property
    def on_lists(self) -> str:
        return f"mean over users of how much higher relevant items of the top {self.k} stand than popularity puts them"

    def sums(self, lists: ListedItems) -> tuple[Floats, Floats]:
        n, top = lists.facts.n_items, lists.lists
        place = lists.facts.counts().place[top.item]
        own = (n + 1 - top.rank) / n
        anybody = np.where(place > 0, (n + 1 - place) / n, 0.0)
        return mean_of(lists.means(np.where(lists.relevant, np.maximum(own - anybody, 0.0), 0.0)))
