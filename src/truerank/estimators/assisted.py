"""Predictions of every label, from a judge, a recommender or the log, corrected by the labels that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, Learner, ObservedUnits, Request
from truerank.core.forms import Form, KnownTotal, Ratio
from truerank.core.metric import Additive, Metric
from truerank.core.ranking import RankView
from truerank.core.record import record
from truerank.core.terms import Smooth, smooth
from truerank.core.values import CountFrom0, NotNegative, check
from truerank.estimators.assistance import AssistedMean, AssistedShare, sampled
from truerank.estimators.listed_predictions import (
    PredictedLists,
    PredictionBalance,
    StratumBalance,
    counted_equal,
    predicted_lists,
)
from truerank.estimators.predictions import Assistance, GainModel, ItemRates, Prediction, chosen
from truerank.estimators.ratios import PostStratified, TwoStrata
from truerank.estimators.refusals import DISTINCT_RANKS, additive, estimand, only_sums_or_recall
from truerank.estimators.rows import LOGGED, WEIGHTED, Rows, check_clip, per_unit
from truerank.estimators.weighted import IPS


class PredictedEstimator(Estimator):
    """An estimator that takes predictions of every label: those of `prediction`, fitted by its `learner`."""

    __slots__ = ()

    def prediction(self, predictions: Mapping[Assistance, Prediction]) -> GainModel | Prediction:
        """What predicts, of those that are given."""
        raise NotImplementedError

    def learner(self, prediction: Any, request: Request, propensity: Learner | None) -> Learner | None:
        """What must be learned to predict the gains of a question."""
        learner: Learner | None = prediction.learner(request.metric)
        return learner

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)

    def estimand(self, request: Request, unit: str = "user") -> str:
        return estimand(request.metric)

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        """The propensities, and what predictions of every question need."""
        prediction = self.prediction(context.predictions)
        models = [self.learner(prediction, request, context.propensity) for request in context.requests]
        return tuple(dict.fromkeys(learner for learner in (context.propensity, *models) if learner is not None))

    def lists(self, units: ObservedUnits, request: Request) -> PredictedLists:
        """What is predicted of rows and of lists, found for all questions at once."""
        facts = units.learned.facts
        prediction = self.prediction(facts.get("predictions", {}))
        return units.once("lists", lambda: predicted_lists(
            self.info.name, prediction, lambda asked: self.learner(prediction, asked, facts.get("propensity")), units
        ))[request]  # fmt: skip


@record
class DoublyRobust(PredictedEstimator):
    """Σ over all candidates of w ŷ + Σ over shown items of ω w (y - ŷ), mean over users.

    Exactly unbiased for additive metrics if the propensities are the design's own, whatever the reward model ŷ says, as
    long as ŷ was not fitted on the evaluated row; and if ŷ is right, whatever the propensities. Otherwise it is
    unbiased only if Σ w (1 - E[O] / π) (y - ŷ) = 0. Recall is the ratio of two such sums, with 1{rank <= K} and with 1
    for w: pooled recall, consistent; undefined where the second sum is not above 0. With few rows it may lie outside
    0 to 1, which is said.

    >>> import polars as pl, truerank as tr
    >>> from truerank.estimators.predictions import GivenRewards
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> guess = GivenRewards(tr.scores.dense([[0.5, 0.5, 0.0, 0.0]], users=[7], items=[1, 2, 3, 4]))
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["DCG@1"], "estimators": [DoublyRobust(guess)]}
    >>> tr.evaluate(scores, log, **how).estimates[0].value  # 0.5 + (1 - 0.5) / 0.5
    1.5
    """

    reward: GainModel = field(default_factory=ItemRates)
    clip: float | None = None

    info = replace(
        IPS.info,
        name="doubly-robust",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=(*LOGGED, "the reward model was not fitted on the rows it is corrected by"),
        needs_size=True,
        predicts=True,
    )

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def prediction(self, predictions: Mapping[Assistance, Prediction]) -> GainModel:
        return self.reward

    def learner(self, prediction: GainModel, request: Request, propensity: Learner | None) -> Learner | None:
        return prediction.learner(request.metric, clip=self._clip(request), propensity=propensity)

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        lists, metric, clip = self.lists(units, request), additive(request.metric), self._clip(request)
        rows = Rows.of(units.chunk, units.ranks, metric, units.learned, exposed=Exposed.BIASED)
        rows = rows.limited(clip)
        error = rows.weight * (rows.gain - lists.at_rows)
        inside = lists.inside[2] + per_unit(rows.log, error * rows.discount)
        every = lists.candidates[2] + per_unit(rows.log, error)
        return rows.smooth(Ratio(), [inside, every if rows.is_recall else np.ones(rows.log.n_units)])

    def _clip(self, question: Request) -> float:
        return question.clip if self.clip is None else self.clip


class JudgedLists(PredictedEstimator):
    """Units without a labelled row count too where a judge labelled some of their list.

    Unless the interval is for exactly these users: which of them have labelled rows then is not random.
    """

    __slots__ = ()

    def rows(self, units: ObservedUnits, request: Request) -> tuple[Rows, PredictedLists, Assistance]:
        """The rows of a question, what is predicted of them and of lists, and by what."""
        lists, ranks, facts = self.lists(units, request), units.ranks, units.learned.facts
        rows, kind = (
            Rows.of(units.chunk, ranks, additive(request.metric), units.learned, keeps=units.keep_rows),
            chosen(facts["predictions"], getattr(self, "by", Assistance.JUDGE)).kind,
        )
        if kind is Assistance.JUDGE and not facts.get("exactly_these", False):
            judged = ranks.scored & (ranks.n_candidates > 0) & (lists.inside[1] > 0) & rows.usable
            rows = replace(rows, sample=replace(rows.sample, defined=rows.sample.defined | judged))
        return rows, lists, kind


@record
class Assisted(JudgedLists):
    """Σ w (â + b̂ ŷ) over all places + Σ α w (y - â - b̂ ŷ) over judged ones; â, b̂ fitted to the judged rows of lists.

    ŷ is what a judge, the scores of a recommender, or rates in the log itself say (`by`; by default the first of these
    that is given). α is N / N-bar, or 1 / propensity. Whether ŷ is right or not, the value is consistent, and for large
    samples no less precise than horvitz-thompson and hajek: a useless ŷ gets a slope of 0. A few extreme ŷ would make
    the slope unsteady, so scores count by their rank within the user; a judge should give labels or probabilities.
    With (â, b̂) fixed beforehand it is exactly unbiased; fitted to the same rows its bias is of order 1 / rows. A slope
    that rows hardly tell from 0 is drawn towards 0: b̂ is that of least squares times max(0, 1 - doubt / t²), t the
    slope over its standard error (`doubt` of 0: least squares alone). Where the lists have fewer than `fewest` labelled
    rows, or ŷ is constant, it is hajek, for recall post-stratified.
    Recall is the ratio of two such sums, in lists and beside them. Users without a labelled row count by what the judge
    says of their lists. ŷ must not depend on the row it predicts: fix a judge before labels are seen.

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

    info = replace(
        PostStratified.info,
        name="assisted",
        exposures=frozenset({Exposed.RANDOM, Exposed.DESIGNED, Exposed.BIASED}),
        assumptions=(WEIGHTED, "no prediction depends on the label of the row that it is for"),
        needs_scale=True,
        predicts=True,
        left_out="have no labelled item, and the judge says nothing of their list",
    )

    def __post_init__(self) -> None:
        check(self, where="assisted")

    def prediction(self, predictions: Mapping[Assistance, Prediction]) -> Prediction:
        return chosen(predictions, self.by)

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        metric, (rows, lists, kind) = request.metric, self.rows(units, request)
        check_predictions(units.view, (kind, metric), rows, lists)
        values = sampled(rows.gain, rows.discount, lists.at_rows, rows.weight)
        totals: list[Floats] = [*lists.inside[:3], np.ones(rows.log.n_units)]
        form: Form = AssistedMean(self.fewest, self.doubt, graded=metric.graded)
        if rows.is_recall:
            beside = sampled(rows.gain, 1.0 - rows.discount, lists.at_rows, rows.weight)
            values = [values[0], rows.gain, *values[1:], *beside]
            totals = [*lists.inside[:3], *lists.outside]
            form = AssistedShare(self.fewest, self.doubt)
        sums = [per_unit(rows.log, rows.weight * value) for value in values]
        return rows.smooth(form, [*sums, *totals], values)


def check_predictions(view: RankView, key: tuple[Assistance, Additive], rows: Rows, lists: PredictedLists) -> None:
    """Keep whether labelled rows have the predictions of what they represent, in the first fit."""
    if ("balance", *key) not in view.listed:
        log = rows.log
        inside, every = (
            StratumBalance.of(log, part, lists.at_rows, stratum, weight=rows.weight, used=rows.sample.defined)
            for part, stratum in ((rows.discount, lists.inside), (np.ones(len(log)), lists.candidates))
        )
        equal = counted_equal(rows.gain, lists.at_rows)
        view.listed["balance", *key] = PredictionBalance(*key, inside, every, equal)


@record
class JudgeAlone(JudgedLists):
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

    info = EstimatorInfo(
        name="judge-alone",
        exposures=frozenset({Exposed.RANDOM, Exposed.DESIGNED, Exposed.BIASED}),
        assumptions=("the judge is right on average, which nothing here checks",),
        ties=DISTINCT_RANKS,
        needs_size=True,
        predicts=True,
        left_out="have no labelled item, and the judge says nothing of their list",
        caution="the judge alone, whose errors nothing corrects: for comparison with assisted",
    )

    def estimand(self, request: Request, unit: str = "user") -> str:
        return f"{estimand(request.metric)}, if the judge were right"

    def prediction(self, predictions: Mapping[Assistance, Prediction]) -> Prediction:
        return chosen(predictions, Assistance.JUDGE)

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        rows, lists, _ = self.rows(units, request)
        total, covered, predicted = lists.inside[:3]
        form: Form = KnownTotal()
        columns = [predicted, covered, total, np.ones(len(total))]
        if rows.is_recall:
            others, covered_others, predicted_others = lists.outside
            relevant = predicted + predicted_others
            form = TwoStrata()
            columns = [predicted, relevant, covered, predicted_others, covered_others, total, others]
        return smooth(form, columns, rows.sample.defined, units.chunk.clusters)
