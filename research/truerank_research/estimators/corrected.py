"""Mean recall over users, with a model in place of the users whom nothing is known of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.metric import Metric
from truerank.core.ranking import Ties
from truerank.core.values import Between0And1, check
from truerank.estimators.refusals import LABEL_FREE, only_recall
from truerank.estimators.rows import UNIFORM, Sample
from truerank.metrics.additive import Recall
from truerank_research.estimators import EXPERIMENTAL
from truerank_research.estimators.curved_recall import CurvedRecall, ends_of, sums_by_bin


@dataclass(frozen=True, slots=True)
class Corrected(Estimator):
    """Mean recall over users with a relevant item, corrected for whom `published` leaves out, by the rank curve.

    The mean of m / n over users with n >= 1 leans towards users with many relevant items. The rank curve
    (`core.rank_curve`) models how much users like and how recall goes with it; every user has a posterior recall, and
    counts by the chance of having a relevant item at all. Not unbiased: model-based, with its measured bias in
    research/estimators.md, and an interval that allows for bias (two fifths of the correction, at least 2 % of it).
    `like_nothing`, the share of users with no relevant item at all, cannot be told from the data without the model; it
    is taken as given. Experimental: its comparisons carry no verdict. With every label known it is the plain mean.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1], [4.0, 3, 2, 1]], users=[7, 8], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 4 + [8] * 4, "item": [1, 2, 3, 4] * 2, "label": [1, 0, 1, 0, 0, 1, 0, 0]})
    >>> how = {"exposure": "random", "metrics": ["Recall@2"], "estimators": [Corrected()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value
    0.75
    """

    like_nothing: Between0And1 | None = None

    info: ClassVar[EstimatorInfo] = EstimatorInfo(
        name="corrected",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(
            UNIFORM,
            "how relevance falls along the ranks, and how that differs between users, follows the rank curve",
        ),
        ties=LABEL_FREE - {Ties.STRICT},  # of shared ranks it is not known how many items there are
        needs_size=True,
        stands=True,
        fits=True,
        left_out="have no judged item",
        caution=f"{EXPERIMENTAL}: it rests on a model of users without a judged relevant item, and gives no verdicts",
    )

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, context: Metric) -> str | None:
        reason = only_recall(context, "it corrects for users without a judged relevant item, who have no recall")
        if reason is None and not isinstance(context, Recall):
            return f"its model counts hits in a list, and {context} weighs them by rank; use pooled."
        return reason

    def estimand(self, request: Request, unit: str = "user") -> str:
        return f"mean {request.metric} over {request.metric.on_full_labels}, by a model of users without a judged one"

    def term(self, units: ObservedUnits, request: Request) -> CurvedRecall:
        log, ranks, k = units.log, units.ranks, request.metric.k
        sample = Sample.uniform(units.chunk, ranks, rate=None)

        def by_bin(values: Floats) -> Floats:
            return sums_by_bin(ranks.above, ranks.tied, values, unit=log.unit, n=log.n_units, k=k)

        relevant = by_bin(log.label)
        if log.complete:  # pairs that are not listed are known negatives
            ends = ends_of(k)
            begin = np.concatenate([[0.0], ends[:-1]])
            listed = np.clip(ranks.n_recommended[:, None] - begin, 0.0, ends - begin)
            judged = np.column_stack([listed, ranks.n_candidates - ranks.n_recommended])
        else:
            judged = by_bin(np.ones(len(log)))
        return CurvedRecall(
            k,
            self.like_nothing or 0.0,
            relevant,
            judged,
            ranks.n_recommended.astype(np.float64),
            ranks.n_candidates.astype(np.float64),
            sample.defined,
            sample.clusters,
        )
