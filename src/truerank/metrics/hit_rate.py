"""Hit rate."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import BaseMetric
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.discounts import Positives


@record
class HitRate(BaseMetric):
    """1 if at least one relevant item is in the top K, else 0. A user without a relevant item has hit rate 0.

    Over tie orders: the best tie group holds p relevant among t candidates, of which c lie within the cut-off, so
    the expected value is 1 - C(t - p, c) / C(t, c) (McSherry and Najork 2008).

    >>> str(HitRate(10))
    'HitRate@10'
    """

    k: Count
    name: ClassVar[str] = "HitRate"
    aliases: ClassVar[tuple[str, ...]] = ("HR", "Hit", "Hits", "Success")
    partial: ClassVar[str] = (
        "one relevant item among those not judged would change it, and no unbiased form exists; use Recall or Precision"
    )

    def by_rank(self, rank: Floats) -> Floats:
        return (rank <= self.k).astype(np.float64)

    def by_hit(self, hit: Floats) -> Floats:
        return np.where(hit == 1, 1.0, 0.0)

    def divide(self, positives: Positives) -> Floats:
        return np.ones(len(positives.count))

    def values(self, positives: Positives) -> Floats:
        result = np.zeros(len(positives.count))
        groups = positives.groups()
        inside = np.clip(self.k - groups.above, 0, groups.size)
        for index in np.flatnonzero(groups.first & (inside > 0)):
            # all of the group inside, or its relevant items share one rank: a sure hit
            sure = inside[index] == groups.size[index] or groups.positives[index] >= groups.size[index]
            result[groups.unit[index]] = (
                1.0 if sure else 1.0 - _miss(groups.size[index], groups.positives[index], inside[index])
            )
        return result


def _miss(size: float, positives: float, inside: float) -> float:
    """C(size - positives, inside) / C(size, inside), as a product of the smaller number of factors.

    >>> _miss(4, 1, 2)
    0.5
    """
    few, many = sorted((positives, inside))
    step = np.arange(few)
    return float(np.prod(np.maximum(size - many - step, 0.0) / (size - step)))
