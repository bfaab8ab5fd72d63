"""Predictions of every label, from a judge, a recommender or the log, corrected by the labels that there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.estimator import About, Asked, Exposed, Learned, Learner
from truerank.core.metric import Additive, Metric
from truerank.core.ranking import JudgedChunk, RankView, Ties
from truerank.core.terms import Smooth
from truerank.core.values import CountFrom0, NotNegative, check, text_of
from truerank.estimators.assistance import AssistedMean, AssistedShare, ForeseenLists, foreseen_lists, sampled
from truerank.estimators.biased.weighing import estimand, is_recall, only_sums_or_recall
from truerank.estimators.predictions import Assistance, ListRows, Prediction, chosen
from truerank.estimators.standing import STANDS, Standing
from truerank.estimators.sums import LABEL_FREE, Parts, additive
from truerank.metrics.worth import expected_worth, gains_of


@dataclass(frozen=True, slots=True)
class Assisted:
    """Σ w (â + b̂ ŷ) over all places + Σ α w (y - â - b̂ ŷ) over judged ones; â, b̂ fitted to the judged rows of lists.

    ŷ is what a judge, the scores of a recommender, or rates in the log itself say (`by`; by default the first of these
    that is given). α is N / N-bar, or 1 / propensity. Whether ŷ is right or not, the value is
    consistent, and for large samples no less precise than horvitz-thompson and hajek: a useless ŷ gets a slope of 0.
    With (â, b̂) fixed beforehand it is exactly unbiased; fitted to the same rows its bias is of order 1 / rows. A slope
    that rows hardly tell from 0 is drawn towards 0: b̂ is that of least squares times max(0, 1 - doubt / t²), t the
    slope over its standard error (`doubt` of 0: least squares alone). Where fewer than `fewest` judged rows are
    expected in lists, or ŷ is constant, it is hajek, for recall post-stratified.
    Recall is the ratio of two such sums, in lists and beside them. ŷ must not depend on the row it predicts: fix a
    judge before labels are seen.

    >>> import polars as pl, truerank as tr
    >>> items = list(range(1, 9))
    >>> scores = {"m": tr.scores.dense([[8.0, 7, 6, 5, 4, 3, 2, 1]], users=[7], items=items)}
    >>> labels = pl.DataFrame({"user": [7] * 4, "item": [1, 2, 5, 6], "label": [1, 0, 0, 0]})
    >>> judge = pl.DataFrame({"user": [7] * 8, "item": items, "probability": [1.0, 0, 1, 1, 0, 0, 0, 0]})
    >>> how = {"exposure": "random", "metrics": ["Precision@4"], "judge": judge}
    >>> how["estimators"] = [Assisted(fewest=0, doubt=0)]
    >>> tr.evaluate(scores, labels, **how).estimates[0].value  # the judge is right in both judged places: 3 of 4
    0.75
    """

    by: Assistance | None = None
    fewest: CountFrom0 = 30
    doubt: NotNegative = 4.0

    about: ClassVar[About] = About(
        name="assisted",
        exposures=frozenset({Exposed.RANDOM, Exposed.DESIGNED, Exposed.BIASED}),
        assumptions=(STANDS, "no prediction depends on the label of the row that it is for"),
        ties=LABEL_FREE - {Ties.STRICT},  # the worth of a list is known if each rank is taken once
        design=True,
        needs_size=True,
        weighs=True,
        needs_scale=True,
        stands=True,
        predicts=True,
        left_out="have no judged item",
    )

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self, where="assisted")

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return estimand(asked.metric)

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        """The propensities, how many judged rows lists have, and rates where these predict."""
        prediction = chosen(context.predictions, self.by)
        learners: dict[Learner, None] = {} if context.propensity is None else {context.propensity: None}
        for question in context.asked:
            learners.setdefault(ListRows(additive(question.metric)))
            learner = prediction.learner(question.metric)
            if learner is not None:
                learners.setdefault(learner)
        return tuple(learners)

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
        prediction = chosen(learned.facts["predictions"], self.by)
        listed = foreseen_by(prediction, chunk, view, metrics, learned)
        return [
            self._terms(chunk, view, metric, lists, learned=learned, keep_rows=keep_rows)
            for metric, lists in zip(metrics, listed, strict=True)
        ]

    def _terms(
        self,
        chunk: JudgedChunk,
        view: RankView,
        metric: Additive,
        lists: ForeseenLists,
        *,
        learned: Learned,
        keep_rows: bool,
    ) -> Smooth:
        log, ranks = chunk.labels, view.ranks
        inside, outside = learned[ListRows(metric)]
        if is_recall(metric):
            standing = Standing.of(chunk, ranks, learned, usable=np.ones(log.n_units, dtype=bool))
            worth = expected_worth(metric, ranks)
            label, weight, ahead = log.label, standing.weight, lists.at_rows
            top, rest = sampled(label, worth, ahead, weight), sampled(label, 1.0 - worth, ahead, weight)
            plain = min(inside, outside if outside > 0 else inside) < self.fewest
            rows = [top[0], label, *top[1:], *rest]
            known = [*lists.inside, *lists.outside]
            return standing.terms(
                AssistedShare(plain, self.doubt, (inside, outside)),
                rows,
                known,
                labelled={},
                worth=label,
                keep_rows=keep_rows,
            )
        parts = Parts.of(log, ranks, metric)
        standing = Standing.of(chunk, ranks, learned, usable=parts.defined)
        rows = sampled(gains_of(metric, log), parts.worth, lists.at_rows, standing.weight)
        known = [*lists.inside, np.ones(log.n_units)]
        form = AssistedMean(plain=inside < self.fewest, doubt=self.doubt, rows=inside)
        return standing.terms(form, rows, known, labelled={}, worth=parts.worth, keep_rows=keep_rows)


def foreseen_by(
    prediction: Prediction, chunk: JudgedChunk, view: RankView, metrics: Sequence[Additive], learned: Learned
) -> list[ForeseenLists]:
    """What is predicted of the lists of each metric, made once for all estimators that ask."""
    keys = [(prediction, metric) for metric in metrics]
    new = [key for key in dict.fromkeys(keys) if key not in view.listed]
    if new:
        learners = {metric: prediction.learner(metric) for _, metric in new}
        predicted = {
            learner: prediction.predicted(chunk, None if learner is None else learned[learner])
            for learner in dict.fromkeys(learners.values())
        }
        found = foreseen_lists(chunk, view, [(metric, predicted[learners[metric]]) for _, metric in new])
        view.listed.update(zip(new, found, strict=True))
    return [view.listed[key] for key in keys]
