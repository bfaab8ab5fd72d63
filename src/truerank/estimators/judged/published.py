"""The URE paper's own estimate of recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import Smooth, ratio
from truerank.estimators.sums import LABEL_FREE, UNIFORM, additive, only_recall, per_unit
from truerank.metrics.worth import expected_worth


@dataclass(frozen=True, slots=True)
class Published(Estimator):
    """The URE paper's estimate (definition 5.1): m / n for each user, mean over users with n >= 1.

    m / n is exactly unbiased for a user's recall given n >= 1. The mean is not unbiased for mean recall: it converges
    to Σ π Recall / Σ π with π = 1 - C(N - N⁺, N-bar) / C(N, N-bar), the chance that a user has a judged relevant
    item. Users with few relevant items are left out more often.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [Published()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    about: ClassVar[About] = About(
        name="published",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        stands=True,
        left_out="have no judged relevant item; they tend to have few relevant items, so this mean leans towards users "
        "with many (compare pooled)",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "the URE paper defines its estimate for Recall")

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return (
            f"mean {asked.metric} over users weighted by their chance to have a judged relevant item, "
            "so users with many relevant items count more"
        )

    def term(self, chunk: JudgedChunk, view: RankView, question: Asked, learned: Learned, *, keep_rows: bool) -> Smooth:
        metric = additive(question.metric)
        log, ranks = chunk.labels, view.ranks
        hit = per_unit(log, log.label * expected_worth(metric, ranks))
        n = per_unit(log, log.label)
        defined = ranks.scored & (n > 0)
        share = np.divide(hit, n, out=np.zeros(len(n)), where=defined)
        return ratio(share, defined.astype(np.float64), defined=defined, clusters=chunk.clusters)
