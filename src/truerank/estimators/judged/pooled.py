"""Recall over all relevant pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import Smooth
from truerank.estimators.sums import LABEL_FREE, UNIFORM, additive, only_recall, sample_of
from truerank.metrics.worth import expected_worth


@dataclass(frozen=True, slots=True)
class Pooled(Estimator):
    """Recall over all relevant pairs: Σ (N / N-bar) m / Σ (N / N-bar) n estimates ΣM / ΣN⁺.

    Consistent for any N and N-bar >= 1. With N-bar / N the same for all users it is Σm / Σn. Under Bernoulli
    exposure (a declared rate) the weight is 1 / rate.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [Pooled()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    about: ClassVar[About] = About(
        name="pooled",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM, Exposed.DESIGNED}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        design=True,
        needs_size=True,
        stands=True,
        left_out="have no judged item",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "pooling divides by the number of relevant items")

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return f"{asked.metric} pooled over all relevant user-item pairs, so users with many relevant items count more"

    def term(self, chunk: JudgedChunk, view: RankView, question: Asked, learned: Learned, *, keep_rows: bool) -> Smooth:
        metric = additive(question.metric)
        log = chunk.labels
        sample = sample_of(chunk, view.ranks, learned)
        hit = log.label * expected_worth(metric, view.ranks)
        rows = sample.rows(log, hit, log.label) if keep_rows else None
        num, den = (sample.sums(log, values) for values in (hit, log.label))
        return sample.ratio(num, den, rows=rows)
