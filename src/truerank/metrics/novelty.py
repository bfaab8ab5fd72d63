"""Novelty: how few users know what is recommended."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import ListMetric, ListNeed
from truerank.core.options import Denominator, InformationUnit
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.listed import ListedItems, mean_of


@record
class Novelty(ListMetric):
    """The mean self-information of a user's top K: -log2(users of the training log with the item / all its users).

    RecTools' MeanInvUserFreq. An item that nobody has counts as if one user had it. `unit=share` divides by log2 of the
    number of users, so that 1 is an item of one user. The mean is over the items of the list, which may be fewer than
    K; `denominator=cutoff` divides by K (both together are RePlay's Surprisal).

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2]})
    >>> train = pl.DataFrame({"user": [1, 2, 3, 4, 4], "item": ["c", "a", "a", "c", "b"]})
    >>> how = {"exposure": "holdout", "exclude": train, "metrics": ["Novelty@2", "Novelty@2(unit=share)"]}
    >>> found = tr.evaluate({"m": lists}, pl.DataFrame({"user": [1], "item": ["a"]}), **how)
    >>> [each.value for each in found.estimates]  # -log2(2 / 4) = 1 and -log2(1 / 4) = 2
    [1.5, 0.75]
    """

    k: Count
    unit: InformationUnit = InformationUnit.BITS
    denominator: Literal[Denominator.LIST, Denominator.CUTOFF] = Denominator.LIST
    name: ClassVar[str] = "Novelty"
    needs: ClassVar[frozenset[ListNeed]] = frozenset({ListNeed.POPULARITY})

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        return 0.0, 1.0 if self.unit is InformationUnit.SHARE else np.inf

    @property
    def on_lists(self) -> str:
        return f"mean self-information of the top {self.k} over users: how few users of the training log have the items"

    def sums(self, lists: ListedItems) -> tuple[Floats, Floats]:
        train = lists.facts.counts()
        users = np.maximum(train.users, 1)[lists.lists.item]
        information = -np.log2(users / train.n_users)
        if self.unit is InformationUnit.SHARE:
            most = np.log2(train.n_users)
            information = information / most if most > 0 else np.zeros(len(information))
        mean = lists.means(information)
        if self.denominator is Denominator.CUTOFF:
            mean = mean * lists.lists.length / self.k
        return mean_of(mean)
