"""Reward models: what a user would have said of an item, for doubly robust estimators; and sums of that over lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.errors import InputError
from truerank.core.estimator import Groups, Learned, Learner
from truerank.core.ids import Ids
from truerank.core.language import Kind
from truerank.core.log import Log, Pairs
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Candidates, JudgedChunk, Ranks, RankView, Scores
from truerank.estimators.cross_fitting import FoldSums, equal_folds, shrunk_means
from truerank.estimators.rows import propensity_of
from truerank.metrics.worth import Graded, expected_worth, gains_of, known_divisor
from truerank.ranks.kernel.rank import Aligned, rank

CELLS_AT_ONCE = 2**21


class Predicted(Protocol):
    """The predicted gain of every item of the catalogue, [units x items], for any units of a chunk."""

    def block(self, units: Ints) -> Floats: ...


class GainModel(Protocol):
    """Predicts gains, without a look at the row it predicts."""

    name: ClassVar[str]

    def learner(self, metric: Metric, *, clip: float, propensity: Learner | None) -> Learner | None:
        """What it must learn from all users to predict the gains of a metric, None where it knows them."""
        ...

    def predicted(self, log: Log, fitted: Any) -> Predicted:
        """What it says of the users of a log, by what its learner has `fitted`."""
        ...


GAIN_MODELS: Kind[GainModel] = Kind("reward model", __name__, GainModel)


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no single truth of equality
class GivenRewards:
    """Predictions made elsewhere, from other data than the evaluated rows: a matrix of expected labels or gains."""

    scores: Scores
    name: ClassVar[str] = "given"

    def learner(self, metric: Metric, *, clip: float, propensity: Learner | None) -> None:
        return None

    def predicted(self, log: Log, fitted: Any) -> Predicted:
        aligned = Aligned.of(self.scores, users=log.users, items=log.items, name="reward model")
        if (aligned.row < 0).any() or (aligned.column is not None and (aligned.column < 0).any()):
            raise InputError(
                "the reward model lacks some users or items of the evaluation; expected a prediction for every pair of "
                "the labels' users and the catalogue's items."
            )
        return _Given(aligned)


@dataclass(frozen=True, slots=True)
class _Given:
    aligned: Aligned

    def block(self, units: Ints) -> Floats:
        found = self.aligned.block(units).astype(np.float64)
        if not np.isfinite(found).all():
            raise InputError("the reward model predicts a value that is no finite number; expected expected labels.")
        return found


# ---------------------------------------------------------------------------------------------------------- item rates


@dataclass(frozen=True, slots=True)
class ItemRates:
    """The weighted mean gain of an item among users of other folds, shrunk to the mean over all items.

    ŷ_i = (Σ ω y + s ȳ) / (Σ ω + s) over rows of item i of users outside the unit's fold; s is `strength` times the mean
    weight of a row. No user's prediction depends on that user's own rows, so doubly robust sums stay exactly unbiased.
    """

    folds: int = 2
    strength: float = 5.0
    name: ClassVar[str] = "item-rates"

    def __post_init__(self) -> None:
        if self.folds < 2 or not self.strength > 0:
            raise InputError(
                f"item rates with {self.folds} folds and strength {self.strength:g}; "
                "expected at least 2 folds and a positive strength."
            )

    def learner(self, metric: Metric, *, clip: float, propensity: Learner | None) -> RateLearner:
        graded = metric if isinstance(metric, Graded) and metric.graded else None
        return RateLearner(self, graded, clip, propensity)

    def predicted(self, log: Log, fitted: FoldRates) -> Predicted:
        return _Rates(fitted.rate, fitted.folds.at(log.users.keys()))


@dataclass(frozen=True, slots=True)
class RateLearner:
    """What item rates are made of: one for all metrics that read labels, one for each with gains of its own."""

    model: ItemRates
    metric: Metric | None
    clip: float
    propensity: Learner | None

    @property
    def needs(self) -> tuple[Learner, ...]:
        return () if self.propensity is None else (self.propensity,)

    @property
    def refitted(self) -> bool:
        return False

    def tally(self, chunk: JudgedChunk, *, groups: Groups, learned: Learned) -> ItemSums:
        log = chunk.labels
        folds = equal_folds(learned.facts["users"], self.model.folds, groups.seed)
        fold = folds.at(log.users.keys())[log.unit]
        weight = np.minimum(1.0 / propensity_of(log, learned), self.clip)
        gain = log.label if self.metric is None else gains_of(self.metric, log)
        values = {"gain": (log.item, weight * gain), "weight": (log.item, weight)}
        values["rows"] = np.zeros(len(log), dtype=np.int64), np.ones(len(log))
        widths = {"gain": len(log.items), "weight": len(log.items), "rows": 1}
        return ItemSums(FoldSums.of(values, fold, len(folds), widths), folds)

    def fit(self, tally: ItemSums) -> FoldRates:
        gain, weight, rows = (tally.sums.of_others(name) for name in ("gain", "weight", "rows"))
        total = weight.sum(axis=1, keepdims=True)
        mean = np.divide(gain.sum(axis=1, keepdims=True), total, out=np.zeros_like(total), where=total > 0)
        prior = self.model.strength * np.divide(total, rows, out=np.zeros_like(total), where=rows > 0)
        return FoldRates(shrunk_means(gain, weight, mean, prior), tally.folds)


@dataclass(frozen=True, slots=True, eq=False)
class ItemSums:
    """Σ ω gain and Σ ω by fold and item, and the rows of each fold."""

    sums: FoldSums
    folds: Groups

    def __add__(self, other: ItemSums) -> ItemSums:
        return ItemSums(self.sums + other.sums, self.folds)

    def without(self, group: int | None) -> ItemSums:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class FoldRates:
    """The rate of every item for users of each fold, [folds x items]."""

    rate: Floats
    folds: Groups


@dataclass(frozen=True, slots=True)
class _Rates:
    rate: Floats
    fold: Ints

    def block(self, units: Ints) -> Floats:
        return np.asarray(self.rate[self.fold[units]])


# ----------------------------------------------------------------------------------------------------- sums over lists


@dataclass(frozen=True, slots=True)
class ListSums:
    """Per unit: Σ over all candidates of predicted gain x worth (divided as the metric is), and of predicted gain."""

    worth: Floats
    gain: Floats


def at_rows(predicted: Predicted, log: Log) -> Floats:
    """The prediction of each row of a log."""
    found = np.empty(len(log))
    order = np.argsort(log.unit, kind="stable")
    start = np.searchsorted(log.unit[order], np.arange(log.n_units + 1))
    for units in _blocks(log.n_units, len(log.items)):
        rows = order[start[units[0]] : start[units[-1] + 1]]
        found[rows] = predicted.block(units)[log.unit[rows] - units[0], log.item[rows]]
    return found


def list_sums(
    scores: Scores,
    view: RankView,
    *,
    log: Log,
    candidates: Candidates,
    questions: Sequence[tuple[Additive, Predicted]],
) -> list[ListSums]:
    """The sums of every question, in blocks of users: each block is ranked once for all metrics."""
    found = [ListSums(np.zeros(log.n_units), np.zeros(log.n_units)) for _ in questions]
    for units, unit, item, ranks in ranked_lists(scores, view, log=log, candidates=candidates):
        for sums, (metric, predicted) in zip(found, questions, strict=True):
            gain = predicted.block(units)[unit, item]
            worth = expected_worth(metric, ranks) / known_or_one(metric, ranks)[unit]
            sums.worth[units] = sums_by(unit, worth * gain, n=len(units))
            sums.gain[units] = sums_by(unit, gain, n=len(units))
    return found


def ranked_lists(
    scores: Scores, view: RankView, *, log: Log, candidates: Candidates
) -> Iterator[tuple[Ints, Ints, Ints, Ranks]]:
    """Blocks of units with all their candidates: the units, and of each candidate its place in the block, its item and
    its rank."""
    for units in _blocks(log.n_units, len(log.items)):
        mask = _mask(candidates, units, len(log.items))
        unit, item = np.nonzero(mask)
        part = replace(
            log,
            users=Ids(log.users.values[int(units[0]) : int(units[-1]) + 1]),
            user=unit,
            item=item,
            rewards={"label": np.zeros(len(unit))},
            propensity=None,
            position=None,
            session=None,
            time=None,
            inclusion=None,
        )
        pool = Candidates(len(units), candidates.n_items, only=Pairs.of(unit, item, n_units=len(units)))
        (ranks,) = rank(scores, part, pools=[pool], ties=view.ties, seed=view.seed, threads=1, name=view.name)
        yield units, unit, item, ranks


def known_or_one(metric: Additive, ranks: Ranks) -> Floats:
    """What sums are divided by; the number of relevant items is no constant but the other half of a ratio."""
    if metric.denominator is Denominator.POSITIVES:
        return np.ones(len(ranks.scored))
    found = known_divisor(metric.denominator, metric.cutoff, ranks)
    return np.where(np.isnan(found), 1.0, found)


def _blocks(n_units: int, n_items: int) -> Iterator[Ints]:
    size = max(1, CELLS_AT_ONCE // max(1, n_items))
    for start in range(0, n_units, size):
        yield np.arange(start, min(start + size, n_units))


def _mask(candidates: Candidates, units: Ints, n_items: int) -> Bools:
    """Which items are candidates of which units."""
    mask = np.full((len(units), n_items), candidates.only is None)
    for pairs, value in ((candidates.only, True), (candidates.exclude, False)):
        if pairs is not None:
            for at, unit in enumerate(units.tolist()):
                mask[at, pairs.of_unit(unit)] = value
    return mask
