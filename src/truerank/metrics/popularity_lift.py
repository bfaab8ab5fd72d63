"""Popularity lift."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, sums_by
from truerank.core.metric import ListMetric, ListNeed
from truerank.core.options import PopularityBase
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.listed import ListedItems


@record
class PopularityLift(ListMetric):
    """How much more popular the top K is than what users chose: Σ_u mean popularity of L_u / Σ_u that of their history.

    Popularity is the number of users of the training log with the item. 1 is no lift; Abdollahpouri et al. (2020)
    report one less. `base=catalogue` divides by the mean popularity of all items instead: RecTools' AvgRecPopularity
    over that mean, where no pair of the log is repeated. Users without a history are left out, and counted.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2]})
    >>> train = pl.DataFrame({"user": [1, 2, 3, 4, 4], "item": ["c", "a", "a", "a", "b"]})
    >>> how = {"exposure": "holdout", "exclude": train}
    >>> how["metrics"] = ["PopularityLift@2", "PopularityLift@2(base=catalogue)"]
    >>> found = tr.evaluate({"m": lists}, pl.DataFrame({"user": [1], "item": ["a"]}), **how)
    >>> [each.value for each in found.estimates]  # (3 + 1) / 2 over 1, and over (3 + 1 + 1) / 3
    [2.0, 1.2]
    """

    k: Count
    base: PopularityBase = PopularityBase.HISTORY
    name: ClassVar[str] = "PopularityLift"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    @property
    def needs(self) -> frozenset[ListNeed]:
        whole = {ListNeed.CATALOGUE} if self.base is PopularityBase.CATALOGUE else set()
        return frozenset({ListNeed.POPULARITY, *whole})

    @property
    def on_lists(self) -> str:
        what = "users' own history" if self.base is PopularityBase.HISTORY else "all items"
        return f"mean popularity of the top {self.k} over that of {what}; 1: as popular"

    def sums(self, lists: ListedItems) -> tuple[Floats, Floats]:
        train = lists.facts.counts()
        popularity = train.users.astype(np.float64)
        above = lists.means(popularity[lists.lists.item])
        if self.base is PopularityBase.CATALOGUE:
            return above, np.where(np.isnan(above), math.nan, float(train.users.sum()) / lists.facts.n_items)
        history = lists.history
        if history is None:
            return above, np.full(len(above), math.nan)
        n = history.count
        owner = np.repeat(np.arange(len(n)), n)
        total = sums_by(owner, popularity[history.item], n=len(n))
        below = np.divide(total, n, out=np.full(len(n), math.nan), where=n > 0)
        return np.where(np.isnan(below), math.nan, above), np.where(np.isnan(above), math.nan, below)
