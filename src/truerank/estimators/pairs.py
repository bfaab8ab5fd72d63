"""Metrics of pairs of relevant items, expanded by how likely a pair is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.forms import Ratio
from truerank.core.metric import Metric
from truerank.core.record import record
from truerank.core.terms import Smooth, smooth
from truerank.estimators.refusals import DISTINCT_RANKS, not_additive, only_labelled
from truerank.estimators.rows import UNIFORM, Sample
from truerank.metrics.discounts import OfPairs, Positives
from truerank.metrics.pairwise import AveragePrecision


@record
class PairRatio(Ratio):
    """Σ numerator / Σ denominator, and how many users have two labelled hits in their list."""

    columns = (*Ratio.columns, "with_pair")

    def users_with_pair(self, totals: Floats) -> int:
        return int(totals[2])


@record
class ExpandedPairs(Estimator):
    """Sums over judged items times N / N-bar, and over pairs of them times N (N - 1) / (N-bar (N-bar - 1)).

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

    info = EstimatorInfo(
        name="pairs",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=DISTINCT_RANKS,
        needs_size=True,
        left_out="have fewer than two labelled items",
    )

    def refusal(self, context: Metric) -> str | None:
        if isinstance(context, OfPairs):
            return context.no_sums
        return only_labelled(context) or f"{context} is not made of pairs of relevant items, as AUC is; use AUC."

    def estimand(self, request: Request, unit: str = "user") -> str:
        return str(request.metric.pooled)

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        metric = request.metric
        if not isinstance(metric, OfPairs):
            raise TypeError(not_additive(metric))
        sample = units.once(
            "sample", lambda: Sample.uniform(units.chunk, units.ranks, rate=units.learned.facts.get("rate"))
        )
        positives = units.once("positives", lambda: Positives.of(units.log, units.ranks, gain=units.log.label))
        pair = pair_expansion(sample)
        defined = sample.defined & ~np.isnan(pair)
        pair, single, sums = np.where(defined, pair, 0.0), sample.expansion, metric.pair_sums(positives)
        columns = [single * sums.single + pair * sums.pair,
                   sums.known + single * sums.below_single + pair * sums.below_pair]  # fmt: skip
        form = Ratio()
        if isinstance(metric, AveragePrecision):
            form, columns = PairRatio(), [*columns, (sums.pair > 0).astype(np.float64)]
        exact = replace(sample, defined=defined).exact
        return smooth(form, columns, defined, sample.clusters, exact=exact)


def pair_expansion(sample: Sample) -> Floats:
    """How many pairs of candidates a judged pair stands for; NaN where a user has too few judged items for one."""
    if sample.rate is not None:
        return np.full(len(sample.n_labelled), sample.rate**-2.0)
    n, judged = sample.n_candidates, sample.n_labelled
    expansion = np.divide(n * (n - 1), judged * (judged - 1), out=np.full(len(n), np.nan), where=judged > 1)
    return np.where((n == 1) & (judged == 1), 1.0, expansion)
