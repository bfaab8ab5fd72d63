"""The expanded sum of worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import Smooth
from truerank.estimators.sums import LABEL_FREE, UNIFORM, Parts, additive, only_sums, sample_of


@dataclass(frozen=True, slots=True)
class HorvitzThompson(Estimator):
    """The expanded sum of worth: (N / N-bar) Σ over judged items of gain x w(rank), mean over users.

    The gain is the label y unless the metric has graded gains.

    Exactly unbiased for additive metrics given N-bar >= 1; a user without a judged item is undefined. Under
    Bernoulli exposure (a declared rate) the weight is 1 / rate, and a user without a judged item contributes 0.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Precision@2"], "estimators": [HorvitzThompson()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    1.0
    """

    about: ClassVar[About] = About(
        name="horvitz-thompson",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM, Exposed.DESIGNED}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        design=True,
        needs_size=True,
        stands=True,
        left_out="have no judged item",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_sums(context)

    def term(self, chunk: JudgedChunk, view: RankView, question: Asked, learned: Learned, *, keep_rows: bool) -> Smooth:
        metric = additive(question.metric)
        log = chunk.labels
        parts = Parts.of(log, view.ranks, metric)
        sample = sample_of(chunk, view.ranks, learned, usable=parts.defined)
        rows = sample.rows(log, parts.value, np.zeros(len(log))) if keep_rows else None
        return sample.ratio(sample.sums(log, parts.value), np.ones(log.n_units), rows=rows)
