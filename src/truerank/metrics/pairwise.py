"""Metrics of pairs of relevant items or of candidates: average precision and AUC."""

from __future__ import annotations

from typing import Literal

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
    name = "AP"
    aliases = ("MAP",)
    on_full_labels = "users with a relevant item"
    partial = (
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


@record
class AUC(BaseMetric):
    """The share of a user's pairs of a relevant and another candidate in which the relevant one scores higher.

    Ties count one half, which is their expected value; items that are never recommended are tied at the bottom. With n
    of N candidates relevant, at ranks r, it is (Σ (N - r) - n(n - 1)/2) / (n (N - n)). Undefined for a user whose
    candidates are all relevant, or none.

    >>> str(AUC())
    'AUC'
    """

    name = "AUC"
    on_full_labels = "users with both relevant and other candidates"
    partial = (
        "it compares relevant candidates with all others, and what was not judged may be either; pooled over users use "
        "pairs; among the labelled items alone it is unbiased for each user with both labelled: use traditional"
    )
    judged_only = "users weighted by their probability to have both relevant and other items labelled"

    @property
    def no_sums(self) -> str | None:
        return None

    @property
    def pooled(self) -> str:
        return (
            "AUC pooled over all pairs of a relevant and another candidate of the same user, so users with many such "
            "pairs count more"
        )

    def pair_sums(self, positives: Positives) -> PairSums:
        """Σ (N - r) and -n (n - 1) / 2; below (N - 1) n and -n (n - 1), which make n (N - n)."""
        n, candidates = positives.count, positives.ranks.n_candidates
        pairs = n * (n - 1)
        return PairSums(self._below(positives), -pairs / 2, np.zeros(len(n)), (candidates - 1) * n, -pairs)

    def _below(self, positives: Positives) -> Floats:
        """Σ (N - r) over relevant items."""
        ranks, unit = positives.ranks, positives.unit
        # no policy orders what is never recommended: such items share the places after the list
        bottom = (ranks.n_recommended + ranks.n_candidates + 1) / 2
        rank = np.where(np.isfinite(ranks.above), ranks.above + 1 + ranks.tied / 2, bottom[unit])
        return positives.sums(ranks.n_candidates[unit] - rank)

    def values(self, positives: Positives) -> Floats:
        n, candidates, below = positives.count, positives.ranks.n_candidates, self._below(positives)
        # of two relevant items one is below the other, unless the strict rule puts both at one rank
        groups = positives.groups()
        apart = np.where(groups.share_one_rank, groups.positives * (groups.positives - 1) / 2, 0.0)
        won = below - (n * (n - 1) / 2 - sums_by(groups.unit, apart, n=len(n)))
        pairs = n * (candidates - n)
        return np.asarray(np.divide(won, pairs, out=np.full(len(n), np.nan), where=pairs > 0))
