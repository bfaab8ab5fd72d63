"""Metrics of pairs of relevant items, expanded by how likely a pair is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, Learned, Request
from truerank.core.forms import Ratio
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.record import record
from truerank.core.terms import Smooth, smooth
from truerank.estimators.refusals import DISTINCT_RANKS, not_additive, only_labelled
from truerank.estimators.rows import UNIFORM, Sample
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.worth import OfPairs, Positives


@record
class PairRatio(Ratio):
    """Σ numerator / Σ denominator, and how many users have two labelled hits in their list."""

    columns: ClassVar[tuple[str, ...]] = (*Ratio.columns, "with_pair")

    def users_with_pair(self, totals: Floats) -> int:
        return int(totals[2])


@record
class ExpandedPairs(Estimator):
    """Σ over judged items, each worth N / N-bar, and over pairs of them, each worth N (N - 1) / (N-bar (N-bar - 1)).

    Numerator and denominator of AP and AUC are such sums, so both are exactly unbiased for users with two judged items
    or more: AP divided by K (denominator=cutoff) is unbiased itself, as a mean over users; AP divided by the relevant
    items and AUC are ratios of totals, pooled over items or pairs of items, and consistent. Under Bernoulli exposure (a
    declared rate) the weights are 1 / rate and 1 / rate². AP rests on users with two labelled hits in their list: where
    none has, nothing shows what pairs add, and there is no interval.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["AP@3(denominator=cutoff)"], "estimators": [ExpandedPairs()]}
    >>> round(tr.evaluate(scores, labels, **how).estimates[0].value, 6)  # (2 (1 + 1/3) + 6 / 3) / 3
    1.555556
    """

    info: ClassVar[EstimatorInfo] = EstimatorInfo(
        name="pairs",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=DISTINCT_RANKS,
        needs_size=True,
        left_out="have fewer than two judged items",
    )

    def refusal(self, context: Metric) -> str | None:
        if isinstance(context, OfPairs):
            return context.no_sums
        return only_labelled(context) or f"{context} is not made of pairs of relevant items, as AUC is; use AUC."

    def estimand(self, request: Request, unit: str = "user") -> str:
        return str(request.metric.pooled)

    def terms(
        self,
        chunk: JudgedChunk,
        view: RankView,
        *,
        requests: Sequence[Request],
        learned: Learned,
        keep_rows: bool = False,
    ) -> list[Smooth]:
        sample = Sample.uniform(chunk, view.ranks, rate=learned.facts.get("rate"))
        positives = Positives.of(chunk.labels, view.ranks, gain=chunk.labels.label)
        pair = pair_expansion(sample)
        sample = replace(sample, defined=sample.defined & ~np.isnan(pair))
        pair = np.where(sample.defined, pair, 0.0)
        return [self._terms(sample, positives, request.metric, pair) for request in requests]

    @staticmethod
    def _terms(sample: Sample, positives: Positives, metric: Metric, pair: Floats) -> Smooth:
        if not isinstance(metric, OfPairs):
            raise TypeError(not_additive(metric))
        sums = metric.pair_sums(positives)
        num = sample.expansion * sums.single + pair * sums.pair
        den = sums.known + sample.expansion * sums.below_single + pair * sums.below_pair
        form, columns = Ratio(), [num, den]
        if isinstance(metric, AveragePrecision):
            form, columns = PairRatio(), [num, den, (sums.pair > 0).astype(np.float64)]
        return smooth(form, columns, sample.defined, sample.clusters, exact=sample.exact, rows=None, weighting=None)


def pair_expansion(sample: Sample) -> Floats:
    """How many pairs of candidates a judged pair stands for; NaN where a user has too few judged items for one."""
    if sample.rate is not None:
        return np.full(len(sample.n_labelled), sample.rate**-2.0)
    n, judged = sample.n_candidates, sample.n_labelled
    expansion = np.divide(n * (n - 1), judged * (judged - 1), out=np.full(len(n), np.nan), where=judged > 1)
    return np.where((n == 1) & (judged == 1), 1.0, expansion)
