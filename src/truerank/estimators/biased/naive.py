"""A biased log taken for a random sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import Smooth
from truerank.estimators.biased.weighing import is_recall, only_sums_or_recall
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.sums import LABEL_FREE


@dataclass(frozen=True, slots=True)
class Naive(Estimator):
    """What one gets by taking a biased log for a uniform sample; for comparison, to see how far off that is.

    Pooled recall Σm / Σn, or (N / N-bar) Σ y w for sums. Where exposure is correlated with rank, it is biased: its
    expectation is Σ π-weighted, and a model that ranks high what was shown anyway looks better than it is.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["Recall@1"], "estimators": [Naive()]}
    >>> tr.evaluate(scores, log, **how).estimates[0].value
    0.5
    """

    about: ClassVar[About] = About(
        name="naive",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=("the shown items are a uniform sample of the candidates: here they are not",),
        ties=LABEL_FREE,
        needs_size=True,
        left_out="have no judged item",
        caution="takes the log for a random sample: shown to compare with, not to decide by",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        metric = asked.metric
        return f"{metric} as if the shown items were a random sample; not {metric} itself where exposure is unequal"

    def term(self, chunk: JudgedChunk, view: RankView, question: Asked, learned: Learned, *, keep_rows: bool) -> Smooth:
        as_uniform = Pooled() if is_recall(question.metric) else HorvitzThompson()
        return as_uniform.term(chunk, view, question, learned, keep_rows=False)
