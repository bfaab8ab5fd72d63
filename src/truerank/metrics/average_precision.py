"""Average precision."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from truerank.core.arrays import Floats, sums_by
from truerank.core.metric import BaseMetric
from truerank.core.options import Denominator
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.discounts import PairSums, Positives, divisor, with_positives


@record
class AveragePrecision(BaseMetric):
    """Σ over relevant items with rank r <= K of #{relevant with rank <= r} / r, divided by min(K, relevant).

    Other denominators: all relevant items, as trec_eval; K. Undefined for a user without a relevant item. Over tie
    orders (McSherry and Najork 2008): a relevant item at place j of a group of t candidates, p of them relevant, after
    a better ones with b relevant, has on average b + 1 + (j - 1)(p - 1) / (t - 1) relevant items up to it, and place j
    is relevant with probability p / t; the sum over j needs only harmonic numbers.

    >>> str(AveragePrecision(10)), str(AveragePrecision(10, Denominator.POSITIVES))
    ('AP@10', 'AP@10(denominator=positives)')
    """

    k: Count
    denominator: Literal[Denominator.SMALLER, Denominator.POSITIVES, Denominator.CUTOFF] = Denominator.SMALLER
    name: ClassVar[str] = "AP"
    aliases: ClassVar[tuple[str, ...]] = ("MAP",)
    on_full_labels: ClassVar[str] = "users with a relevant item"
    partial: ClassVar[str] = (
        "it rests on pairs of relevant items and on their number; pairs estimates it without bias where it is divided "
        "by K, denominator=cutoff, and pooled over relevant items with denominator=positives; or use DCG or Precision"
    )

    def by_rank(self, rank: Floats) -> Floats:
        return np.where(rank <= self.k, 1.0 / rank, 0.0)

    def by_hit(self, hit: Floats) -> Floats:
        return hit

    def divide(self, positives: Positives) -> Floats:
        return with_positives(positives, divisor(self.denominator, self.k, positives))

    @property
    def no_sums(self) -> str | None:
        if self.denominator is not Denominator.SMALLER:
            return None
        return (
            "it divides by the smaller of K and the number of all relevant items of a user, which has no unbiased "
            "form; use AP with denominator=cutoff or denominator=positives."
        )

    @property
    def pooled(self) -> str:
        if self.denominator is Denominator.CUTOFF:
            return f"mean {self} over {self.on_full_labels}, and over others as 0"
        return (
            f"{self} pooled over all relevant user-item pairs (the sum of precisions at relevant items over their "
            "number), so users with many relevant items count more"
        )

    def pair_sums(self, positives: Positives) -> PairSums:
        """Σ 1 / r over relevant items up to K, and Σ 1 / r over pairs of them of which one is better."""
        g, (reciprocal, inside, others) = positives.groups(), self._places(positives)
        entry = g.positives / g.size
        single, pair = (
            entry * reciprocal,
            entry * (g.before * reciprocal + others * (inside - (g.above + 1) * reciprocal)),
        )
        n = len(positives.count)
        singles, pairs = (sums_by(g.unit, values, n=n) for values in (single, pair))
        cut, none = self.denominator is Denominator.CUTOFF, np.zeros(n)
        return PairSums(
            singles, pairs, np.full(n, float(self.k)) if cut else none, none if cut else positives.count, none
        )

    def _places(self, positives: Positives) -> tuple[Floats, Floats, Floats]:
        """Of each group of equal scores: Σ 1 / r over its places up to K, their number, and the share of its others."""
        g = positives.groups()
        last = np.minimum(g.above + g.size, self.k).astype(np.int64)
        first = np.minimum(g.above, self.k).astype(np.int64)
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1.0, last.max(initial=0) + 1))])
        reciprocal, inside = harmonic[last] - harmonic[first], (last - first).astype(np.float64)
        others = np.divide(g.positives - 1, g.size - 1, out=np.zeros(len(g.size)), where=g.size > 1)
        return reciprocal, inside, others

    def values(self, positives: Positives) -> Floats:
        g, (reciprocal, inside, others) = positives.groups(), self._places(positives)
        shared = (g.before + 1) * reciprocal + others * (inside - (g.above + 1) * reciprocal)
        single = np.where(inside > 0, g.positives * ((g.before + g.positives) * (1.0 / (g.above + 1))), 0.0)
        total = sums_by(
            g.unit, np.where(g.share_one_rank, single, g.positives / g.size * shared), n=len(positives.count)
        )
        return total / self.divide(positives)
