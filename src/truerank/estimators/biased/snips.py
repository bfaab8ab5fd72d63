"""Self-normalised inverse propensity scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.estimator import About, Asked, Clipping, Estimator, Exposed, Learned, Learner
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView, Ties
from truerank.core.terms import Smooth
from truerank.estimators.biased.weighing import ASSUMED, Weighed, check_clip, estimand, only_sums_or_recall
from truerank.estimators.sums import LABEL_FREE


@dataclass(frozen=True, slots=True)
class SNIPS(Estimator):
    """Self-normalised inverse propensity scores: Σ ω y w / Σ ω w over shown items of all users, times the mean of Σ w.

    The worth of a whole list, Σ_{r <= K} w(r), is known; the ratio corrects for how much of it the weighted rows happen
    to add up to. Consistent, and steadier than IPS where propensities vary much or few items of the top K were shown. A
    constant label gives a value without error. For Recall: Σ ω y 1{rank <= K} / Σ ω y, pooled over users.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 2], "label": [1, 0], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["Precision@2"], "estimators": [SNIPS()]}
    >>> round(tr.evaluate(scores, log, **how).estimates[0].value, 3)  # 2 / (2 + 4)
    0.333
    """

    clip: float | None = None

    about: ClassVar[About] = About(
        name="snips",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=ASSUMED,
        ties=LABEL_FREE - {Ties.STRICT},  # the worth of a list is known if ranks are distinct
        weighs=True,
        stands=True,
        clipping=Clipping.GIVEN,
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
        nothing = np.zeros(chunk.labels.n_units)
        return [
            weighed.terms(
                num=weighed.rows.num,
                den=weighed.rows.den,
                fixed_den=nothing,
                total=None if weighed.rows.ratio else weighed.rows.total,
            )
            for _, _, weighed in Weighed.questions(chunk, view, asked=asked, learned=learned, clip=self.clip)
        ]
