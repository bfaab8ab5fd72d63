"""What is predicted of labels that nobody has: by a judge, by a recommender's scores, by rates in the log itself.

A prediction need not be right: an estimator that is assisted by it fits it to judged rows. A few extreme predictions
would make that fit unsteady: scores count by their rank within the user. A prediction must not be made from the judged
row that it predicts. NaN stands where nothing is predicted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from truerank.core import special
from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Groups, Learned, Learner
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, Pool, Scores
from truerank.core.wording import option
from truerank.estimators.cross_fitting import FoldSums, equal_folds, shrunk_means
from truerank.estimators.rewards import Predicted
from truerank.metrics.worth import Graded, gains_of
from truerank.ranks.kernel.rank import Aligned


class Assistance(StrEnum):
    """What predicts the labels that nobody has.

    JUDGE    labels or probabilities that a judge gave: a rater, a click model, a language model
    SCORES   the scores of a recommender
    LOG      rates in the log itself: of items, and of users as active as this one
    """

    JUDGE = "judge"
    SCORES = "scores"
    LOG = "log"


@runtime_checkable
class Helped(Protocol):
    """An estimator that predictions help: those of `by`, or the best that are given."""

    @property
    def by(self) -> Assistance | None: ...


class Prediction(Protocol):
    """Predicts gains, without a look at the row it predicts."""

    kind: ClassVar[Assistance]

    def learner(self, metric: Metric) -> Learner | None:
        """What it must learn from all users to predict the gains of a metric, None where it knows them."""
        ...

    def predicted(self, chunk: JudgedChunk, fitted: Any) -> Predicted:
        """What it says of the users of a chunk, by what its learner has `fitted`."""
        ...


# --------------------------------------------------------------------------------------------------- a judge, or scores


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no single truth of equality
class JudgeTable:
    """What a judge says of pairs: labels or probabilities, of all pairs or of some.

    >>> from truerank.core.ids import Ids
    >>> rows = Log(Ids.of([7]), Ids.of([1]), np.array([0]), np.array([0]), {"label": np.array([1.0])})
    >>> laid = Log(Ids.of([7]), Ids.of([1, 2]), np.array([0]), np.array([1]), {"label": np.array([0.0])})
    >>> JudgeTable(rows).predicted(JudgedChunk(laid, {}), None).block(np.array([0])).tolist()
    [[1.0, nan]]
    """

    rows: Log

    kind: ClassVar[Assistance] = Assistance.JUDGE

    def __post_init__(self) -> None:
        if not self.rows.rewards:
            raise InputError(
                f"{self.rows.source}: no value column; expected what the judge says of each pair, in a column label, "
                "probability, rating or value."
            )
        said = self.rows
        cell = np.sort(said.user * len(said.items) + said.item)
        twice = np.flatnonzero(cell[1:] == cell[:-1])
        if len(twice):
            user, item = divmod(int(cell[twice[0]]), len(said.items))
            raise InputError(
                f"{said.source}: {len(twice):,} pairs occur more than once, such as user {said.users.values[user]}, "
                f"item {said.items.values[item]}; expected one word of the judge per pair. Keep one, or their mean."
            )

    @property
    def value(self) -> Floats:
        return self.rows.rewards.get("label", next(iter(self.rows.rewards.values())))

    def learner(self, metric: Metric) -> None:
        return None

    def predicted(self, chunk: JudgedChunk, fitted: Any) -> Predicted:
        log, said = chunk.labels, self.rows
        unit = log.users.locate(said.users, where=f"{said.source}, column 'user'")[said.user]
        item = log.items.locate(said.items, where=f"{said.source}, column 'item'")[said.item]
        known = np.flatnonzero((unit >= 0) & (item >= 0))
        order = known[np.argsort(unit[known], kind="stable")]
        return _Table(unit[order], item[order], self.value[order], len(log.items))


@dataclass(frozen=True, slots=True)
class _Table:
    """Values of pairs in the order of units."""

    unit: Ints
    item: Ints
    value: Floats
    n_items: int

    def block(self, units: Ints) -> Floats:
        found = np.full((len(units), self.n_items), np.nan)
        rows = slice(*np.searchsorted(self.unit, [units[0], units[-1] + 1]).tolist())
        found[self.unit[rows] - units[0], self.item[rows]] = self.value[rows]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPairs:
    """The ranks of a recommender's scores within each user, as normal scores; of pairs that it never recommends it
    predicts nothing."""

    scores: Scores

    kind: ClassVar[Assistance] = Assistance.SCORES

    def learner(self, metric: Metric) -> None:
        return None

    def predicted(self, chunk: JudgedChunk, fitted: Any) -> Predicted:
        log = chunk.labels
        return _Scored(Aligned.of(self.scores, users=log.users, items=log.items, name="assist"), len(log.items))


@dataclass(frozen=True, slots=True)
class _Scored:
    aligned: Aligned
    n_items: int

    def block(self, units: Ints) -> Floats:
        known = self.aligned.row[units] >= 0
        found = np.full((len(units), self.n_items), np.nan)
        found[known] = self.aligned.block(units[known])
        return ranked_within_rows(np.where(np.isfinite(found), found, np.nan))


def ranked_within_rows(scores: Floats) -> Floats:
    """The normal scores of the ranks of each row, Φ⁻¹((rank - ½) / n); equal scores have the middle of their ranks.

    Whatever the scale and the tails of scores, no few of them decide a slope.

    >>> ranked_within_rows(np.array([[3.0, 1e9, np.nan, 3.0], [0.1, 0.2, 0.3, 0.4]])).round(2).tolist()
    [[-0.43, 0.97, nan, -0.43], [-1.15, -0.32, 0.32, 1.15]]
    """
    order = np.argsort(scores, axis=1, kind="stable")  # NaN last
    ordered, place = np.take_along_axis(scores, order, axis=1), np.arange(scores.shape[1])
    starts = np.ones(scores.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ends = np.ones(scores.shape, dtype=bool)
    ends[:, :-1] = starts[:, 1:]
    first = np.maximum.accumulate(np.where(starts, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, place, len(place))[:, ::-1], axis=1)[:, ::-1]
    n_known = np.count_nonzero(~np.isnan(scores), axis=1)[:, None]
    ranks = np.empty_like(scores)
    np.put_along_axis(ranks, order, ((first + last) / 2 + 0.5) / np.maximum(n_known, 1), axis=1)
    return np.where(np.isnan(scores), np.nan, special.ndtri(np.minimum(ranks, 1.0)))


# ------------------------------------------------------------------------------------------------------------ log rates


@dataclass(frozen=True, slots=True)
class LogRates:
    """The rate of an item among users of other folds, times that of users as active as this one.

    ŷ_ui = r_i a_u / ȳ: r_i = (Σ y + s p_i) / (n + s) over judged rows of item i, p_i the rate of items about as popular
    among excluded pairs, a_u the rate of users with about as many excluded pairs, all of users outside the user's fold,
    so that no prediction depends on rows of the user it is for. Numbers of excluded pairs go by powers of two.
    """

    folds: int = 5
    strength: float = 10.0

    kind: ClassVar[Assistance] = Assistance.LOG

    def learner(self, metric: Metric) -> Learner:
        return LogRateLearner(self, metric if isinstance(metric, Graded) and metric.graded else None)

    def predicted(self, chunk: JudgedChunk, fitted: LogRateTable) -> PredictedRates:
        fold = fitted.folds.at(chunk.labels.users.keys())
        return PredictedRates(fitted.item, fitted.user[fold, _powers(_active(chunk))], fold)


POWERS = 32  # of two: groups by number of excluded pairs


def _powers(counts: Floats) -> Ints:
    """
    >>> _powers(np.array([0.0, 1.0, 2.0, 3.0, 7.0])).tolist()
    [0, 1, 1, 2, 3]
    """
    return np.minimum(np.floor(np.log2(1.0 + counts)), POWERS - 1).astype(np.int64)


def _active(chunk: JudgedChunk) -> Floats:
    """How many excluded pairs each user has."""
    exclude = chunk.pools[Pool.CATALOGUE].exclude
    return np.zeros(chunk.labels.n_units) if exclude is None else exclude.count.astype(np.float64)


@dataclass(frozen=True, slots=True)
class ExcludedItems:
    """How often each item is excluded: its popularity in the log that recommenders were trained on."""

    @property
    def needs(self) -> tuple[Learner, ...]:
        return ()

    @property
    def refitted(self) -> bool:
        return False

    def tally(self, chunk: JudgedChunk, *, groups: Groups, learned: Learned) -> Sums:
        exclude, n_items = chunk.pools[Pool.CATALOGUE].exclude, len(chunk.labels.items)
        item = np.zeros(0, dtype=np.int64) if exclude is None else exclude.item
        return Sums({"count": np.bincount(item, minlength=n_items).astype(np.float64)})

    def fit(self, tally: Sums) -> Ints:
        return _powers(tally.arrays["count"])


@dataclass(frozen=True, slots=True)
class LogRateLearner:
    """What rates are made of: one for all metrics that read labels, one for each with gains of its own."""

    model: LogRates
    metric: Metric | None

    @property
    def needs(self) -> tuple[Learner, ...]:
        return (ExcludedItems(),)

    @property
    def refitted(self) -> bool:
        return False

    def tally(self, chunk: JudgedChunk, *, groups: Groups, learned: Learned) -> RateTally:
        log = chunk.labels
        folds = equal_folds(learned.facts["users"], self.model.folds, groups.seed)
        fold, active = folds.at(log.users.keys())[log.unit], _powers(_active(chunk))[log.unit]
        gain = log.label if self.metric is None else gains_of(self.metric, log)
        cells = {"item": (log.item, len(log.items)), "user": (active, POWERS)}
        values = {f"{name} gain": (cell, gain) for name, (cell, _) in cells.items()}
        values |= {f"{name} rows": (cell, np.ones(len(log))) for name, (cell, _) in cells.items()}
        widths = {name: cells[name.split()[0]][1] for name in values}
        return RateTally(FoldSums.of(values, fold, len(folds), widths), folds, learned[ExcludedItems()])

    def fit(self, tally: RateTally) -> LogRateTable:
        strength, of_item, of_user = self.model.strength, [], []
        item, item_rows, user, user_rows = (
            tally.sums.of_others(name) for name in ("item gain", "item rows", "user gain", "user rows")
        )
        for fold in range(len(tally.folds)):
            gain, rows = item[fold], item_rows[fold]
            mean = gain.sum() / rows.sum() if rows.sum() else 0.0
            popular_gain, popular_rows = (sums_by(tally.popular, sums, n=POWERS) for sums in (gain, rows))
            popular = shrunk_means(popular_gain, popular_rows, mean, strength)
            of_item.append(shrunk_means(gain, rows, popular[tally.popular], strength))
            active = shrunk_means(user[fold], user_rows[fold], mean, strength)
            of_user.append(active / mean if mean else np.zeros(POWERS))
        return LogRateTable(np.array(of_item), np.array(of_user), tally.folds)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Whole numbers by name, which add without error; learned once, in one group."""

    arrays: dict[str, Floats]

    def __add__(self, other: Sums) -> Sums:
        return Sums({name: values + other.arrays[name] for name, values in self.arrays.items()})

    def without(self, group: int | None) -> Sums:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class RateTally:
    """Gains and numbers of rows by fold and item, and by fold and activity of users."""

    sums: FoldSums
    folds: Groups
    popular: Ints

    def __add__(self, other: RateTally) -> RateTally:
        return RateTally(self.sums + other.sums, self.folds, self.popular)

    def without(self, group: int | None) -> RateTally:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class LogRateTable:
    """Rates of items, and of users by activity over the mean, for users of each fold."""

    item: Floats
    user: Floats
    folds: Groups


@dataclass(frozen=True, slots=True)
class PredictedRates:
    """The rate of an item times that of the user, of each fold of users."""

    item: Floats
    of_unit: Floats
    fold: Ints

    def block(self, units: Ints) -> Floats:
        return np.asarray(self.item[self.fold[units]] * self.of_unit[units, None])

    def at(self, units: Ints, items: Ints) -> Floats:
        """Of some items of each unit, [units x some]."""
        place = items + self.item.shape[1] * self.fold[units][:, None]
        return np.asarray(np.take(self.item, place) * self.of_unit[units, None])


def used_by(by: Assistance | None, given: Collection[Assistance]) -> Assistance:
    """What assists an estimator: what it asks for, else a judge, else scores, else rates in the log."""
    return by or next((each for each in Assistance if each in given), Assistance.LOG)


def chosen(given: Mapping[Assistance, Prediction], by: Assistance | None) -> Prediction:
    """The predictions that assist an estimator (`used_by`)."""
    by = used_by(by, given)
    if by is Assistance.LOG:
        return LogRates()
    if by not in given:
        raise RefusedError(
            {
                Assistance.JUDGE: f"what a judge says of pairs is needed; give it: {option('judge FILE')}.",
                Assistance.SCORES: f"the scores that assist are needed; give them: {option('assist FILE')}.",
            }[by]
        )
    return given[by]
