"""What a judge says of lists, taken at its word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned, Learner
from truerank.core.metric import Additive, Metric
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import Smooth, known_total, smooth
from truerank.estimators.assistance import ForeseenLists
from truerank.estimators.assisted import foreseen_by, with_predicted_units
from truerank.estimators.post_stratified import TwoStrata
from truerank.estimators.predictions import Assistance, chosen
from truerank.estimators.refusals import DISTINCT_RANKS, additive, estimand, only_sums_or_recall
from truerank.estimators.rows import Rows


@dataclass(frozen=True, slots=True)
class JudgeAlone(Estimator):
    """The metric with a judge's labels or probabilities in place of labels: Σ w ŷ over all places, mean over users.

    Places of which the judge says nothing have the mean of the others. Biased as the judge is, by an amount that only
    labels can tell: to be shown beside `assisted`, not to be relied on.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> judge = pl.DataFrame({"user": [7] * 2, "item": [1, 2], "label": [1, 0]})
    >>> how = {"exposure": "random", "metrics": ["Precision@2"], "judge": judge, "estimators": [JudgeAlone()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value
    0.5
    """

    about: ClassVar[About] = About(
        name="judge-alone",
        exposures=frozenset({Exposed.RANDOM, Exposed.DESIGNED, Exposed.BIASED}),
        assumptions=("the judge is right on average, which nothing here checks",),
        ties=DISTINCT_RANKS,
        needs_size=True,
        predicts=True,
        left_out="have no labelled item, and the judge says nothing of their list",
        caution="the judge alone, whose errors nothing corrects: for comparison with assisted",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return f"{estimand(asked.metric)}, if the judge were right"

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        chosen(context.predictions, Assistance.JUDGE)
        return ()

    def terms(
        self, chunk: JudgedChunk, view: RankView, *, asked: Sequence[Asked], learned: Learned, keep_rows: bool = False
    ) -> list[Smooth]:
        metrics = [additive(question.metric) for question in asked]
        judge = chosen(learned.facts["predictions"], Assistance.JUDGE)
        listed = foreseen_by(judge, chunk, view, metrics, learned)
        return [self._terms(chunk, view, metric, lists, learned) for metric, lists in zip(metrics, listed, strict=True)]

    @staticmethod
    def _terms(chunk: JudgedChunk, view: RankView, metric: Additive, lists: ForeseenLists, learned: Learned) -> Smooth:
        rows = Rows.of(chunk, view.ranks, metric, learned)
        rows = with_predicted_units(rows, lists, view.ranks, Assistance.JUDGE, learned)
        defined, (total, covered, predicted) = rows.sample.defined, lists.inside.sums
        if not rows.is_recall:
            return known_total(predicted, covered, total, defined=defined, clusters=chunk.clusters)
        others, covered_others, predicted_others = lists.outside
        columns = (predicted, predicted + predicted_others, covered, predicted_others, covered_others, total, others)
        return smooth(TwoStrata(), columns, defined, chunk.clusters, exact=False, rows=None, weighting=None)
