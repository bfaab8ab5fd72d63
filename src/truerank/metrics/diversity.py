"""Intra-list diversity."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.errors import RefusedError
from truerank.core.metric import ListMetric, ListNeed
from truerank.core.options import Distance
from truerank.core.record import record
from truerank.core.values import Count
from truerank.core.wording import option
from truerank.metrics.listed import ListedItems, mean_of

PAIRS_AT_ONCE = 2**18


@record
class Diversity(ListMetric):
    """Intra-list diversity: the mean distance between two items of a user's top K, over all pairs of them.

    The distance is the number of features that differ (`hamming`, RecTools' IntraListDiversity), or 1 - cosine of the
    two rows of features; an item without any feature is at distance 1 from all others. A list of fewer than two items
    has no pair and is left out, where RecTools has 0.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1, 1], "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    >>> features = pl.DataFrame({"item": ["a", "b", "c"], "drama": [1, 1, 0], "new": [0, 1, 1]})
    >>> how = {"exposure": "holdout", "item_features": features}
    >>> how["metrics"] = ["Diversity@3", "Diversity@2(distance=cosine)"]
    >>> found = tr.evaluate({"m": lists}, pl.DataFrame({"user": [1], "item": ["a"]}), **how)
    >>> [round(each.value, 4) for each in found.estimates]  # (1 + 2 + 1) / 3, and 1 - 1 / √2
    [1.3333, 0.2929]
    """

    k: Count
    distance: Distance = Distance.HAMMING
    name: ClassVar[str] = "Diversity"
    on_full_labels: ClassVar[str] = "users with two recommended items"
    needs: ClassVar[frozenset[ListNeed]] = frozenset({ListNeed.FEATURES})
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    @property
    def on_lists(self) -> str:
        what = "features that differ" if self.distance is Distance.HAMMING else "1 - cosine of features"
        return f"mean over users of the mean distance ({what}) between two items of the top {self.k}"

    def sums(self, lists: ListedItems) -> tuple[Floats, Floats]:
        if lists.facts.features is None:
            raise RefusedError(f"items have no features; give them with {option('item_features FILE')}.")
        rows = _rows(lists.facts.features, self.distance)
        start, n = lists.lists.start, lists.lists.length
        pairs = n * (n - 1) // 2
        total = np.zeros(len(n))
        for length in np.unique(n[n > 1]).tolist():  # lists of one length have the same pairs of places
            first, second = np.triu_indices(length, 1)
            units = np.flatnonzero(n == length)
            step = max(1, PAIRS_AT_ONCE // len(first))
            for index in range(0, len(units), step):
                of = units[index : index + step]
                item = lists.lists.item[start[of][:, None] + np.arange(length)]
                apart = _apart(rows, item[:, first].ravel(), item[:, second].ravel(), self.distance)
                total[of] = sums_by(np.repeat(np.arange(len(of)), len(first)), apart, n=len(of))
        return mean_of(np.divide(total, pairs, out=np.full(len(n), math.nan), where=pairs > 0))


def _rows(features: Floats, distance: Distance) -> Floats:
    """Features as they are compared: for cosines of length 1, but those without any."""
    if distance is Distance.HAMMING:
        return features
    length = np.sqrt(np.square(features).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(features, length, out=np.zeros_like(features), where=length > 0))


def _apart(rows: Floats, first: Ints, second: Ints, distance: Distance) -> Floats:
    if distance is Distance.HAMMING:
        return np.asarray((rows[first] != rows[second]).sum(axis=1), dtype=np.float64)
    return np.asarray(1.0 - (rows[first] * rows[second]).sum(axis=1))
