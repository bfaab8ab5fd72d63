"""Gini's coefficient of exposure."""

from __future__ import annotations

from typing import ClassVar

from truerank.core.counted import Inequality
from truerank.core.metric import ListMetric, ListNeed
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.listed import ListFacts


@record
class Gini(ListMetric):
    """How unequally the places of all top K lists go to the items: Σ_{i<j} |c_i - c_j| / (n Σ c) over all n items.

    c_i is the number of lists that hold item i, 0 for items in none: 0 if all are listed equally often, (n - K) / n if
    everybody gets the same K. RecBole's GiniIndex over the whole catalogue. Few users list few items, so it is a number
    for as many users.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> test = pl.DataFrame({"user": [1, 2], "item": ["c", "d"]})
    >>> tr.evaluate({"m": lists}, test, exposure="holdout", metrics=["Gini@2"]).estimates[0].value  # of 2, 1, 0, 0
    0.5833333333333334
    """

    k: Count
    name: ClassVar[str] = "Gini"
    needs: ClassVar[frozenset[ListNeed]] = frozenset({ListNeed.CATALOGUE})

    @property
    def on_lists(self) -> str:
        return f"inequality of how often items are in the top {self.k} of as many users as these; 0: all equally often"

    def form(self, facts: ListFacts) -> Inequality:
        return Inequality(facts.n_items)
