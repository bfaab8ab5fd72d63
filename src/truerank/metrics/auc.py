"""Area under the ROC curve, per user."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, sums_by
from truerank.core.metric import BaseMetric
from truerank.core.record import record
from truerank.metrics.discounts import PairSums, Positives


@record
class AUC(BaseMetric):
    """The share of a user's pairs of a relevant and another candidate in which the relevant one scores higher.

    Ties count one half, which is their expected value; items that are never recommended are tied at the bottom. With n
    of N candidates relevant, at ranks r, it is (Σ (N - r) - n(n - 1)/2) / (n (N - n)). Undefined for a user whose
    candidates are all relevant, or none.

    >>> str(AUC())
    'AUC'
    """

    name: ClassVar[str] = "AUC"
    on_full_labels: ClassVar[str] = "users with both relevant and other candidates"
    partial: ClassVar[str] = (
        "it compares relevant candidates with all others, and what was not judged may be either; pooled over users use "
        "pairs; among the labelled items alone it is unbiased for each user with both labelled: use traditional"
    )
    judged_only: ClassVar[str] = "users weighted by their probability to have both relevant and other items labelled"

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
