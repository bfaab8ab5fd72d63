"""What a judge says of lists, taken at its word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Bools
from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned, Learner
from truerank.core.metric import Additive, Metric
from truerank.core.ranking import JudgedChunk, RankView, Ties
from truerank.core.terms import Smooth, known_total, smooth
from truerank.estimators.biased.weighing import estimand, is_recall, only_sums_or_recall
from truerank.estimators.judged.assisted import foreseen_by, with_predicted_units
from truerank.estimators.judged.post_stratified import TwoStrata
from truerank.estimators.predictions import Assistance, chosen
from truerank.estimators.standing import Standing
from truerank.estimators.sums import LABEL_FREE, Parts, additive


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
        ties=LABEL_FREE - {Ties.STRICT},
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
        self,
        chunk: JudgedChunk,
        view: RankView,
        *,
        asked: Sequence[Asked],
        learned: Learned,
        keep_rows: bool = False,
    ) -> list[Smooth]:
        metrics = [additive(question.metric) for question in asked]
        judge = chosen(learned.facts["predictions"], Assistance.JUDGE)
        listed = foreseen_by(judge, chunk, view, metrics, learned)
        return [self._terms(chunk, view, metric, lists, learned) for metric, lists in zip(metrics, listed, strict=True)]

    def _terms(self, chunk: JudgedChunk, view: RankView, metric: Additive, lists: Any, learned: Learned) -> Smooth:
        log, (places, covered, said) = chunk.labels, lists.inside.sums
        if not is_recall(metric):
            usable = Parts.of(log, view.ranks, metric).defined
            defined = self._defined(chunk, view, lists, learned, usable)
            return known_total(said, covered, places, defined=defined, clusters=chunk.clusters)
        defined = self._defined(chunk, view, lists, learned, np.ones(log.n_units, dtype=bool))
        others, covered_others, said_others = lists.outside
        columns = (said, said + said_others, covered, said_others, covered_others, places, others)
        return smooth(TwoStrata(), columns, defined, chunk.clusters, exact=False, rows=None, weighting=None)

    @staticmethod
    def _defined(chunk: JudgedChunk, view: RankView, lists: Any, learned: Learned, usable: Bools) -> Bools:
        """Units with a labelled row, and those of whose list the judge says something."""
        standing = Standing.of(chunk, view.ranks, learned, usable=usable)
        return with_predicted_units(standing, lists, view.ranks, Assistance.JUDGE, learned, usable=usable).defined
