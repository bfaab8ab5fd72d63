"""What is predicted of labels that nobody has: by a judge, a recommender's scores, another model, or rates in the log.

A prediction need not be right: an estimator corrects it by labelled rows, or fits it to them. A few extreme predictions
would make that fit unsteady: scores count by their rank within the user. A prediction must not be made from the
labelled row that it predicts. NaN stands where nothing is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from truerank.core import special
from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Counts, Groups, Learned, Learner
from truerank.core.language import Kind
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, Pool, Scores
from truerank.core.record import record
from truerank.core.values import CountFrom2, Positive, check
from truerank.core.wording import option
from truerank.estimators.cross_fitting import CrossFitted, FoldSums, equal_folds, mean_over_cells, shrunk_means
from truerank.estimators.rows import propensity_of
from truerank.ranking.kernel.rank import Aligned

Predicted = Callable[[Ints], Floats]  # units of a chunk -> the predicted gain of every item, [units x items]


class Assistance(StrEnum):
    """What predicts the labels that nobody has.

    JUDGE    labels or probabilities that a judge gave: a rater, a click model, a language model
    SCORES   the scores of a recommender
    LOG      rates in the log itself: of items, and of users as active as this one
    """

    JUDGE = "judge"
    SCORES = "scores"
    LOG = "log"

    @property
    def predictor(self) -> str:
        """In a sentence."""
        return {Assistance.JUDGE: "the judge", Assistance.SCORES: "the scores that assist", Assistance.LOG: "the log"}[
            self
        ]


@runtime_checkable
class Helped(Protocol):
    """An estimator that predictions help: those of `by`, or the best that are given."""

    @property
    def by(self) -> Assistance | None: ...


class Prediction:
    """Predicts gains, without a look at the row it predicts; made elsewhere, or fitted to labelled rows."""

    __slots__ = ()

    kind: ClassVar[Assistance]

    def learner(self, metric: Metric, *, clip: float = math.inf, propensity: Learner | None = None) -> Learner | None:
        """What it must learn from all users to predict the gains of a metric, None where it knows them."""
        return None

    def predicted(self, chunk: JudgedChunk, fitted: Any) -> Predicted:
        """What it says of the users of a chunk, by what its learner has `fitted`."""
        raise NotImplementedError


def _graded(metric: Metric) -> Metric | None:
    """The metric where it has gains of its own; others share what is learned of labels."""
    return metric if metric.graded else None


def _gains(metric: Metric | None, log: Log) -> Floats:
    return log.label if metric is None else metric.gains(log)


# --------------------------------------------------------------------------------------------------- a judge, or scores


@record(eq=False)  # arrays have no single truth of equality
class JudgeTable(Prediction):
    """What a judge says of pairs: labels or probabilities, of all pairs or of some.

    >>> from truerank.core.ids import Ids
    >>> rows = Log(Ids.of([7]), Ids.of([1]), np.array([0]), np.array([0]), {"label": np.array([1.0])})
    >>> laid = Log(Ids.of([7]), Ids.of([1, 2]), np.array([0]), np.array([1]), {"label": np.array([0.0])})
    >>> JudgeTable(rows).predicted(JudgedChunk(laid, {}), None)(np.array([0])).tolist()
    [[1.0, nan]]
    """

    rows: Log

    kind = Assistance.JUDGE

    def __post_init__(self) -> None:
        if not self.rows.rewards:
            raise InputError(
                f"{self.rows.source}: no value column; expected what the judge says of each pair, in a column label, "
                "probability, rating or value."
            )
        judged = self.rows
        cell = np.sort(judged.user * len(judged.items) + judged.item)
        twice = np.flatnonzero(cell[1:] == cell[:-1])
        if len(twice):
            user, item = divmod(int(cell[twice[0]]), len(judged.items))
            raise InputError(
                f"{judged.source}: {len(twice):,} pairs occur more than once, such as user "
                f"{judged.users.values[user]}, item {judged.items.values[item]}; expected one "
                "value per pair. Keep one, or their mean."
            )

    @property
    def values(self) -> Floats:
        """The label or probability of each row."""
        values: Floats = self.rows.rewards.get("label", next(iter(self.rows.rewards.values())))
        return values

    def predicted(self, chunk: JudgedChunk, fitted: Any) -> Predicted:
        log, judged = chunk.labels, self.rows
        unit, item = judged.places_in(log.users, log.items)
        there = np.flatnonzero((unit >= 0) & (item >= 0))
        order = there[np.argsort(unit[there], kind="stable")]
        unit, item, value = unit[order], item[order], self.values[order]

        def block(units: Ints) -> Floats:
            pairs = np.full((len(units), len(log.items)), np.nan)
            rows = slice(*np.searchsorted(unit, [units[0], units[-1] + 1]).tolist())
            pairs[unit[rows] - units[0], item[rows]] = value[rows]
            return pairs

        return block


@record(eq=False)
class ScoredPairs(Prediction):
    """The ranks of a recommender's scores within each user, as normal scores; of pairs that it never recommends it
    predicts nothing."""

    scores: Scores

    kind = Assistance.SCORES

    def predicted(self, chunk: JudgedChunk, fitted: Any) -> Predicted:
        log = chunk.labels
        aligned = Aligned.of(self.scores, users=log.users, items=log.items, name="assist")

        def block(units: Ints) -> Floats:
            scored = aligned.row[units] >= 0
            scores = np.full((len(units), len(log.items)), np.nan)
            scores[scored] = aligned.block(units[scored])
            return ranked_within_rows(np.where(np.isfinite(scores), scores, np.nan))

        return block


def ranked_within_rows(scores: Floats) -> Floats:
    """The normal scores of the ranks of each row, Φ⁻¹((rank - ½) / n); equal scores have the middle of their ranks.

    Whatever the scale and the tails of scores, no few of them decide a slope.

    >>> ranked_within_rows(np.array([[3.0, 1e9, np.nan, 3.0], [0.1, 0.2, 0.3, 0.4]])).round(2).tolist()
    [[-0.43, 0.97, nan, -0.43], [-1.15, -0.32, 0.32, 1.15]]
    """
    from scipy.stats import rankdata

    unknown = np.isnan(scores)
    ranks = rankdata(np.where(unknown, np.inf, scores), axis=1)
    n_known = np.count_nonzero(~unknown, axis=1)[:, None]
    return np.where(unknown, np.nan, special.ndtri((ranks - 0.5) / np.maximum(n_known, 1)))


# -------------------------------------------------------------------------------------------------------- reward models


class GainModel(Protocol):
    """A prediction by name, for doubly robust estimates of labels."""

    name: ClassVar[str]

    def learner(self, metric: Metric, *, clip: float = ..., propensity: Learner | None = ...) -> Learner | None: ...
    def predicted(self, chunk: JudgedChunk, fitted: Any) -> Predicted: ...


GAIN_MODELS: Kind[GainModel] = Kind("reward model", __name__, GainModel)


@record(eq=False)  # arrays have no single truth of equality
class GivenRewards(Prediction):
    """Predictions made elsewhere, from other data than the evaluated rows: a matrix of expected labels or gains."""

    scores: Scores
    name: ClassVar[str] = "given"

    def predicted(self, chunk: JudgedChunk, fitted: Any) -> Predicted:
        log = chunk.labels
        aligned = Aligned.of(self.scores, users=log.users, items=log.items, name="reward model")
        if (aligned.row < 0).any() or (aligned.column is not None and (aligned.column < 0).any()):
            raise InputError(
                "the reward model lacks some users or items of the evaluation; expected a prediction for every pair of "
                "the labels' users and the catalogue's items."
            )

        def block(units: Ints) -> Floats:
            gains = aligned.block(units).astype(np.float64)
            if not np.isfinite(gains).all():
                raise InputError(
                    "the reward model predicts a value that is no finite number; expected expected labels."
                )
            return gains

        return block


@record
class ItemRates(Prediction):
    """The weighted mean gain of an item among users of other folds, shrunk to the mean over all items.

    ŷ_i = (Σ ω y + s ȳ) / (Σ ω + s) over rows of item i of users outside the unit's fold; s is `strength` times the mean
    weight of a row. No user's prediction depends on that user's own rows, so doubly robust sums stay exactly unbiased.
    """

    folds: CountFrom2 = 2
    strength: Positive = 5.0
    name: ClassVar[str] = "item-rates"

    def __post_init__(self) -> None:
        check(self)

    def learner(self, metric: Metric, *, clip: float = math.inf, propensity: Learner | None = None) -> CrossFitted:
        return CrossFitted(self, (_graded(metric), clip, propensity), () if propensity is None else (propensity,))

    def tally(self, learner: CrossFitted, chunk: JudgedChunk, seed: int, learned: Learned) -> FoldSums:
        metric, clip, _ = learner.predicts
        log, n = chunk.labels, len(chunk.labels.items)
        folds = equal_folds(learned.facts["users"], self.folds, seed)
        weight = np.minimum(1.0 / propensity_of(log, learned), clip)
        values = {
            "gain": (log.item, weight * _gains(metric, log), n),
            "weight": (log.item, weight, n),
            "rows": (np.zeros(len(log), dtype=np.int64), np.ones(len(log)), 1),
        }
        return FoldSums.of(values, folds.at(log.users.keys())[log.unit], len(folds), folds=folds)

    def fit(self, tally: FoldSums) -> tuple[Floats, Groups | None]:
        """The rate of every item for users of each fold, [folds x items], and the folds."""
        gain, weight, rows = (tally.of_others(name) for name in ("gain", "weight", "rows"))
        total = weight.sum(axis=1, keepdims=True)
        prior = self.strength * np.divide(total, rows, out=np.zeros_like(total), where=rows > 0)
        return shrunk_means(gain, weight, mean_over_cells(gain, weight), prior), tally.folds

    def predicted(self, chunk: JudgedChunk, fitted: tuple[Floats, Groups]) -> Predicted:
        rate, folds = fitted
        fold = folds.at(chunk.labels.users.keys())
        return lambda units: np.asarray(rate[fold[units]])


# ------------------------------------------------------------------------------------------------------------ log rates

POWERS = 32  # of two: groups by number of excluded pairs


@record
class LogRates(Prediction):
    """The rate of an item among users of other folds, times that of users as active as this one.

    ŷ_ui = r_i a_u / ȳ: r_i = (Σ y + s p_i) / (n + s) over judged rows of item i, p_i the rate of items about as popular
    among excluded pairs, a_u the rate of users with about as many excluded pairs, all of users outside the user's fold,
    so that no prediction depends on rows of the user it is for. Numbers of excluded pairs go by powers of two.
    """

    folds: int = 5
    strength: float = 10.0

    kind = Assistance.LOG

    def learner(self, metric: Metric, *, clip: float = math.inf, propensity: Learner | None = None) -> CrossFitted:
        return CrossFitted(self, _graded(metric), (ExcludedItems(),))

    def tally(self, learner: CrossFitted, chunk: JudgedChunk, seed: int, learned: Learned) -> FoldSums:
        log, ones = chunk.labels, np.ones(len(chunk.labels))
        folds = equal_folds(learned.facts["users"], self.folds, seed)
        gain = _gains(learner.predicts, log)
        item, user = (log.item, len(log.items)), (_activity(chunk)[log.unit], POWERS)
        values = {
            f"{name} {what}": (cell, value, width)
            for name, (cell, width) in (("item", item), ("user", user))
            for what, value in (("gain", gain), ("rows", ones))
        }
        fold = folds.at(log.users.keys())[log.unit]
        return FoldSums.of(values, fold, len(folds), folds=folds, group=learned[ExcludedItems()])

    def fit(self, tally: FoldSums) -> tuple[Floats, Floats, Groups | None]:
        """Rates of items, and of users by activity over the mean, for users of each fold; and the folds."""
        names = ("item gain", "item rows", "user gain", "user rows")
        group: Any = tally.group
        items, users = [], []
        for gain, rows, user, user_rows in zip(*(tally.of_others(name) for name in names), strict=True):
            mean = gain.sum() / rows.sum() if rows.sum() else 0.0
            gain_of_group, rows_of_group = (sums_by(group, sums, n=POWERS) for sums in (gain, rows))
            popular = shrunk_means(gain_of_group, rows_of_group, mean, self.strength)
            items.append(shrunk_means(gain, rows, popular[group], self.strength))
            active = shrunk_means(user, user_rows, mean, self.strength)
            users.append(active / mean if mean else np.zeros(POWERS))
        return np.array(items), np.array(users), tally.folds

    def predicted(self, chunk: JudgedChunk, fitted: tuple[Floats, Floats, Groups]) -> Predicted:
        items, users, folds = fitted
        fold = folds.at(chunk.labels.users.keys())
        activity = users[fold, _activity(chunk)]
        return lambda units: np.asarray(items[fold[units]] * activity[units, None])


def _powers(counts: Floats) -> Ints:
    """
    >>> _powers(np.array([0.0, 1.0, 2.0, 3.0, 7.0])).tolist()
    [0, 1, 1, 2, 3]
    """
    return np.minimum(np.floor(np.log2(1.0 + counts)), POWERS - 1).astype(np.int64)


def _activity(chunk: JudgedChunk) -> Ints:
    """How many excluded pairs each user has, by powers of two."""
    exclude = chunk.pools[Pool.CATALOGUE].exclude
    return _powers(np.zeros(chunk.labels.n_units) if exclude is None else exclude.count.astype(np.float64))


@record
class ExcludedItems:
    """Learns how often each item is excluded: its popularity in the log that recommenders were trained on."""

    needs: tuple[Learner, ...] = ()
    refitted: bool = False

    def tally(self, chunk: JudgedChunk, *, groups: Groups, learned: Learned) -> Counts:
        exclude, n_items = chunk.pools[Pool.CATALOGUE].exclude, len(chunk.labels.items)
        item = np.zeros(0, dtype=np.int64) if exclude is None else exclude.item
        return Counts({"count": np.bincount(item, minlength=n_items).astype(np.float64)[None]})

    def fit(self, tally: Counts) -> Ints:
        return _powers(tally.arrays["count"][0])


def used_by(by: Assistance | None, predictions: Collection[Assistance]) -> Assistance:
    """What assists an estimator: what it asks for, else a judge, else scores, else rates in the log."""
    return by or next((kind for kind in Assistance if kind in predictions), Assistance.LOG)


def chosen(predictions: Mapping[Assistance, Prediction], by: Assistance | None) -> Prediction:
    """The predictions that assist an estimator (`used_by`)."""
    by = used_by(by, predictions)
    if by is Assistance.LOG:
        return LogRates()
    if by not in predictions:
        raise RefusedError(
            {
                Assistance.JUDGE: f"what a judge says of pairs is needed; give it: {option('judge FILE')}.",
                Assistance.SCORES: f"the scores that assist are needed; give them: {option('assist FILE')}.",
            }[by]
        )
    return predictions[by]
