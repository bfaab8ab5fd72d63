"""Catalogue coverage."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.counted import Covered
from truerank.core.metric import ListMetric, ListNeed
from truerank.core.options import CoveredItems
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.listed import ListFacts


@record
class CatalogueCoverage(ListMetric):
    """The share of the catalogue that is in the top K of at least one user: #{∪_u L_u} / n_items.

    RecTools' CatalogCoverage(normalize=True). `among=train` asks of the items of the training log alone (RePlay). More
    users cover more, so it is a number for as many users.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rank": [1, 2, 1, 2]})
    >>> test = pl.DataFrame({"user": [1, 2], "item": ["d", "a"]})
    >>> found = tr.evaluate({"m": lists}, test, exposure="holdout", metrics=["Coverage@1", "Coverage@2"])
    >>> [each.value for each in found.estimates]
    [0.25, 0.75]
    """

    k: Count
    among: CoveredItems = CoveredItems.CATALOGUE
    name: ClassVar[str] = "Coverage"

    @property
    def needs(self) -> frozenset[ListNeed]:
        train = self.among is CoveredItems.TRAIN
        return frozenset({ListNeed.POPULARITY if train else ListNeed.CATALOGUE})

    @property
    def on_lists(self) -> str:
        what = "the items of the training log" if self.among is CoveredItems.TRAIN else "the catalogue"
        return f"share of {what} in the top {self.k} of as many users as these"

    def form(self, facts: ListFacts) -> Covered:
        if self.among is CoveredItems.CATALOGUE:
            return Covered(facts.n_items)
        seen = facts.counts().users > 0
        return Covered(float(np.count_nonzero(seen)), seen)
