"""Normalised discounted cumulative gain."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, sums_by
from truerank.core.options import Discount, Gain, Ideal
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.dcg import DCG
from truerank.metrics.discounts import GradedMetric, Positives, expected_discount, with_positives


@record
class NDCG(GradedMetric):
    """DCG@K divided by the DCG@K of the ideal list: the user's own items in their best order.

    `Ideal.CUTOFF` divides by a list of K items as good as the user's best, also where the user has fewer. Undefined for
    a user without a relevant item. Over tie orders only the numerator varies, so its expected value is the expected
    DCG divided by the ideal.

    >>> str(NDCG(10)), str(NDCG(10, Gain.EXPONENTIAL, Ideal.CUTOFF))
    ('nDCG@10', 'nDCG@10(gain=exponential,ideal=cutoff)')
    """

    k: Count
    gain: Gain = Gain.BINARY
    ideal: Ideal = Ideal.POSITIVES
    discount: Discount = Discount.SMOOTH
    name: ClassVar[str] = "nDCG"
    on_full_labels: ClassVar[str] = "users with a relevant item"
    partial: ClassVar[str] = (
        "its normaliser needs the number of all relevant items of each user, and no unbiased form exists; "
        "post-normalised divides mean DCG by that of an ideal list; or use DCG"
    )

    @property
    def _dcg(self) -> DCG:
        return DCG(self.k, discount=self.discount)

    def by_rank(self, rank: Floats) -> Floats:
        return self._dcg.rank_discount(rank)

    def by_hit(self, hit: Floats) -> Floats:
        return np.ones(len(hit))

    def divide(self, positives: Positives) -> Floats:
        """The DCG of the ideal list."""
        dcg = self._dcg
        if self.ideal is Ideal.CUTOFF:
            best = np.zeros(len(positives.count))
            np.maximum.at(best, positives.unit, positives.gain)
            return with_positives(positives, best * np.sum(dcg.rank_discount(np.arange(1.0, self.k + 1))))
        if not self.graded:
            most = int(min(positives.count.max(initial=0), self.k))
            running = np.concatenate([[np.nan], np.cumsum(dcg.rank_discount(np.arange(1.0, most + 1)))])
            return running[np.minimum(positives.count, most).astype(np.int64)]
        best_first, place = positives.best_first()
        discount = positives.gain[best_first] * dcg.rank_discount(place + 1.0)
        return with_positives(positives, sums_by(positives.unit[best_first], discount, n=len(positives.count)))

    def values(self, positives: Positives) -> Floats:
        result = positives.sums(positives.gain * expected_discount(self._dcg, positives.ranks))
        return result / self.divide(positives)
