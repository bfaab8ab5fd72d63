"""Inverse propensity scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.estimator import About, Asked, Clipping, Estimator, Exposed, Learned, Learner
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import Smooth
from truerank.estimators.biased.weighing import ASSUMED, Weighed, check_clip, estimand, only_sums_or_recall
from truerank.estimators.sums import LABEL_FREE


@dataclass(frozen=True, slots=True)
class IPS(Estimator):
    """Inverse propensity scores: Σ over shown items of ω y w(rank), mean over users.

    Exactly unbiased for additive metrics with the design's own inclusion probabilities, all positive, and no clip.
    Recall is a ratio of two such sums, Σ ω y 1{rank <= K} / Σ ω y over all users: consistent for pooled recall, and the
    same as self-normalised. A finite `clip` cuts weights, for less variance at the price of a value that is too low.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["DCG@1", "Recall@1"], "estimators": [IPS()]}
    >>> [round(each.value, 3) for each in tr.evaluate(scores, log, **how).estimates]  # 1 / 0.5 and 2 / (2 + 4)
    [2.0, 0.333]
    """

    clip: float | None = None

    about: ClassVar[About] = About(
        name="ips",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=ASSUMED,
        ties=LABEL_FREE,
        weighs=True,
        needs_scale=True,
        stands=True,
        clipping=Clipping.CHOSEN,
        left_out="have no candidate",
    )

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return estimand(asked.metric)

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        return () if context.propensity is None else (context.propensity,)

    def terms(
        self,
        chunk: JudgedChunk,
        view: RankView,
        *,
        asked: Sequence[Asked],
        learned: Learned,
        keep_rows: bool = False,
    ) -> list[Smooth]:
        n_rows, n_units = len(chunk.labels), chunk.labels.n_units
        terms = []
        for _, _, weighed in Weighed.questions(chunk, view, asked=asked, learned=learned, clip=self.clip):
            rows = weighed.rows
            den = rows.den if rows.ratio else np.zeros(n_rows)
            fixed = np.zeros(n_units) if rows.ratio else np.ones(n_units)
            terms.append(weighed.terms(num=rows.num, den=den, fixed_den=fixed))
        return terms
