"""Reward models: what a user would have said of an item, for doubly robust estimators; and sums of that over lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Additive
from truerank.core.options import Denominator
from truerank.core.ranking import Candidates, Ranks, Scores, Ties
from truerank.metrics.worth import expected_worth, known_divisor
from truerank.ranks.kernel.rank import Aligned, rank

CELLS_AT_ONCE = 2**21


class Predicted(Protocol):
    """The predicted gain of every item of the catalogue, [units x items], for any units."""

    def block(self, units: Ints) -> Floats: ...


class RewardModel(Protocol):
    """Predicts gains, without a look at the row it predicts."""

    name: ClassVar[str]

    def predict(self, log: Log, *, gain: Floats, weight: Floats, seed: int) -> Predicted: ...


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no single truth of equality
class GivenRewards:
    """Predictions made elsewhere, from other data than the evaluated rows: a matrix of expected labels or gains."""

    scores: Scores
    name: ClassVar[str] = "given"

    def predict(self, log: Log, *, gain: Floats, weight: Floats, seed: int) -> Predicted:
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

    def predict(self, log: Log, *, gain: Floats, weight: Floats, seed: int) -> Predicted:
        key = cell_keys(seed, "reward folds", log.users.keys(), np.zeros(len(log.users), np.uint64))
        # folds of equal size, by a keyed order of users: no fold is empty while there are as many users
        place = np.argsort(np.argsort(key, kind="stable"), kind="stable")
        fold = place % self.folds
        rate = np.array([self._rates(log, gain, weight, fold[log.unit] != each) for each in range(self.folds)])
        return _Rates(rate, fold)

    def _rates(self, log: Log, gain: Floats, weight: Floats, used: Bools) -> Floats:
        item, gain, weight = log.item[used], gain[used], weight[used]
        if not len(item):
            return np.zeros(len(log.items))
        num, den = (sums_by(item, values, n=len(log.items)) for values in (weight * gain, weight))
        mean, prior = num.sum() / den.sum(), self.strength * float(weight.mean())
        return np.asarray((num + prior * mean) / (den + prior))


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
    log: Log,
    candidates: Candidates,
    questions: Sequence[tuple[Additive, Predicted]],
    *,
    ties: Ties,
    seed: int,
    threads: int,
    name: str,
) -> list[ListSums]:
    """The sums of every question, in blocks of users: each block is ranked once for all metrics."""
    found = [ListSums(np.zeros(log.n_units), np.zeros(log.n_units)) for _ in questions]
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
        )
        pool = Candidates(len(units), candidates.n_items, only=Pairs.of(unit, item, n_units=len(units)))
        ranks = rank(scores, part, pools=[pool], ties=ties, seed=seed, threads=threads, name=name)[0]
        for sums, (metric, predicted) in zip(found, questions, strict=True):
            gain = predicted.block(units)[unit, item]
            worth = expected_worth(metric, ranks) / _divisor(metric, ranks)[unit]
            sums.worth[units] = sums_by(unit, worth * gain, n=len(units))
            sums.gain[units] = sums_by(unit, gain, n=len(units))
    return found


def _divisor(metric: Additive, ranks: Ranks) -> Floats:
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
