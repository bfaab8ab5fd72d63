"""Reciprocal rank of the first relevant item."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import BaseMetric
from truerank.core.options import Denominator
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.discounts import Positives, with_positives


@record
class ReciprocalRank(BaseMetric):
    """1 / rank of the best-ranked relevant item, 0 beyond the cut-off where one is given.

    Undefined for a user without a relevant item. Over tie orders: in the best tie group of t candidates, p of them
    relevant, the first relevant one stands at place j with probability C(t - j, p - 1) / C(t, p).

    >>> str(ReciprocalRank()), str(ReciprocalRank(10))
    ('RR', 'RR@10')
    """

    k: Count | None = None
    name: ClassVar[str] = "RR"
    aliases: ClassVar[tuple[str, ...]] = ("MRR",)
    on_full_labels: ClassVar[str] = "users with a relevant item"
    partial: ClassVar[str] = "a relevant item that was not judged may come first, and no unbiased form exists; use DCG"

    def by_rank(self, rank: Floats) -> Floats:
        return np.where(rank <= (np.inf if self.k is None else self.k), 1.0 / rank, 0.0)

    def by_hit(self, hit: Floats) -> Floats:
        return np.where(hit == 1, 1.0, 0.0)

    def divide(self, positives: Positives) -> Floats:
        return with_positives(positives, np.ones(len(positives.count)))

    def values(self, positives: Positives) -> Floats:
        result = np.zeros(len(positives.count))
        groups = positives.groups()
        cutoff = np.inf if self.k is None else self.k
        for index in np.flatnonzero(groups.first):
            above, size = groups.above[index], groups.size[index]
            if groups.positives[index] >= size:
                result[groups.unit[index]] = 1.0 / (above + 1) if above + 1 <= cutoff else 0.0
                continue
            place = np.arange(1.0, size - groups.positives[index] + 2)
            chance = _first(size, groups.positives[index], len(place))
            rank = above + place
            result[groups.unit[index]] = float(np.sum(np.where(rank <= cutoff, chance / rank, 0.0)))
        return with_positives(positives, result)


def _first(size: float, positives: float, n: int) -> Floats:
    """The probability that the first of `positives` among `size` in random order stands at place 1 ... n.

    P(1) = p / t and P(j + 1) = P(j) (t - j - p + 1) / (t - j).

    >>> _first(3, 1, 3).round(6).tolist()
    [0.333333, 0.333333, 0.333333]
    """
    place = np.arange(1.0, n)
    return (positives / size) * np.concatenate([[1.0], np.cumprod((size - place - positives + 1) / (size - place))])


@record
class MeanRR(BaseMetric):
    """The mean over a user's relevant items of 1 / rank. Unlike RR it looks at all of them, not at the first.

    Additive, so that partial labels can give it. Undefined for a user without a relevant item.

    >>> import numpy as np
    >>> MeanRR().rank_discount(np.array([1.0, 4.0])).tolist()
    [1.0, 0.25]
    """

    name: ClassVar[str] = "MeanRR"
    on_full_labels: ClassVar[str] = "users with a relevant item"
    denominator: ClassVar[Denominator] = Denominator.POSITIVES

    def rank_discount(self, rank: Floats) -> Floats:
        return 1.0 / rank
