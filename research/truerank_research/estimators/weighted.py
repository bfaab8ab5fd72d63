"""The published mean with users weighted by how seldom they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.metric import Metric
from truerank.core.terms import Smooth, ratio
from truerank.estimators.refusals import LABEL_FREE, additive, only_recall
from truerank.estimators.rows import UNIFORM, Sample, per_unit
from truerank.metrics.discounts import expected_discount
from truerank_research.estimators import EXPERIMENTAL


@dataclass(frozen=True, slots=True)
class WeightedUsers(Estimator):
    """Σ (m / n) / π over Σ 1 / π, users with n >= 1, π = 1 - C(N - N⁺, N-bar) / C(N, N-bar) the chance to be kept.

    With N⁺ known this would be unbiased for sum and number of users. Nobody knows N⁺: n N / N-bar stands for it, and
    since n >= 1 it is at least N / N-bar, so π is too large for users with few relevant items, who stay too light. For
    comparison: it takes away a part of the bias of `published` and says nothing of how much (research/estimators.md).

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [WeightedUsers()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value
    0.5
    """

    info: ClassVar[EstimatorInfo] = EstimatorInfo(
        name="weighted",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM, "a user has as many relevant items as the labelled ones represent"),
        ties=LABEL_FREE,
        needs_size=True,
        stands=True,
        left_out="have no judged relevant item",
        caution=f"{EXPERIMENTAL}: for comparison: the probability to be kept is guessed from the same few labelled "
        "items, so a part of the bias of published stays; use corrected",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "it weighs the published mean of Recall")

    def estimand(self, request: Request, unit: str = "user") -> str:
        return f"mean {request.metric} over users weighted by their probability to have a labelled relevant item"

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        log = units.log
        sample = Sample.uniform(units.chunk, units.ranks, rate=units.learned.facts.get("rate"))
        hits = per_unit(log, log.label * expected_discount(additive(request.metric), units.ranks))
        n = per_unit(log, log.label)
        defined = sample.defined & (n > 0)
        number = np.minimum(sample.expansion * n, sample.n_candidates)
        if sample.rate is not None:
            chance = 1 - (1 - sample.rate) ** number
        else:
            chance = kept_chance(number, n_candidates=sample.n_candidates, n_judged=sample.n_labelled)
        weight = np.divide(1.0, chance, out=np.zeros(len(n)), where=defined)
        share = np.divide(hits, n, out=np.zeros(len(n)), where=defined)
        return ratio(share * weight, weight, defined=defined, clusters=sample.clusters)


def kept_chance(number: Floats | Ints, *, n_candidates: Floats, n_judged: Floats) -> Floats:
    """π = 1 - C(N - N⁺, N-bar) / C(N, N-bar) for numbers N⁺ that need not be whole.

    Of 4 items with 1 relevant, 2 are judged: 1 - 3 / 6.

    >>> four, two = np.full(3, 4.0), np.full(3, 2.0)
    >>> kept_chance(np.array([1, 0, 3]), n_candidates=four, n_judged=two).round(6).tolist()
    [0.5, 0.0, 1.0]
    """
    from truerank.core.special import gammaln

    rest = np.maximum(n_candidates - number, 0.0)
    enough = rest >= n_judged
    inside = np.where(enough, rest, n_judged)
    left = gammaln(inside + 1) - gammaln(inside - n_judged + 1)
    log = left - gammaln(n_candidates + 1) + gammaln(n_candidates - n_judged + 1)
    chance = np.where(enough, -np.expm1(log), 1.0)
    return np.asarray(np.where(np.asarray(number) > 0, chance, 0.0))  # exactly: rounding would leave 1e-15
