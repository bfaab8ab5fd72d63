"""What is counted of chunks for diagnostics, by name: counts of other units add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from functools import lru_cache
from typing import Any, Self

import numpy as np

from truerank.core.arrays import Floats, Ints, exact_sum
from truerank.core.metric import Metric
from truerank.core.ranking import Pool, Returned
from truerank.core.record import record
from truerank.estimators.impressions import Limited
from truerank.estimators.listed_predictions import PredictionBalance
from truerank.estimators.predictions import Assistance
from truerank.exposure.randomness.labelled import LabelledItems, UserCounts
from truerank.inference.balance import Balance
from truerank.inference.tails import Largest
from truerank.inference.weights import SupportTally, WeightDiagnostics, WeightTally


@record(eq=False)
class ByPlace:
    """A number for each unit that has another one than 0, by its place in the population; those of other units add."""

    places: tuple[Ints, ...]
    values: tuple[Floats, ...]

    def __add__(self, more: ByPlace) -> ByPlace:
        return ByPlace(self.places + more.places, self.values + more.values)

    @property
    def value(self) -> Floats:
        return np.concatenate(self.values)

    def at(self, place: Ints) -> ByPlace:
        """Of these units, in this order."""
        own = np.concatenate(self.places)
        value = np.zeros(1 + max(own.max(initial=-1), place.max(initial=-1)))
        value[own] = self.value
        return ByPlace((place,), (value[place],))

    def sum(self) -> float:
        return exact_sum(self.value)


def by_place(place: Ints, value: Any = 1.0) -> ByPlace:
    """
    >>> (by_place(np.array([3, 1])) + by_place(np.array([2]), np.array([0.5]))).at(np.array([1, 2])).value.tolist()
    [1.0, 0.5]
    """
    return ByPlace((place,), (np.broadcast_to(np.asarray(value, dtype=np.float64), place.shape),))


class NamedCounts:
    """Named counts, which add field by field; None is of no kind of data."""

    __slots__ = ()

    def __add__(self, more: Self) -> Self:
        values: Any = [_sum(getattr(self, name), getattr(more, name)) for name in _names(self)]
        return type(self)(*values)

    def at(self, place: Ints) -> Self:
        """What was counted by unit, of these units; the rest as it is."""
        values: Any = [_at(getattr(self, name), place) for name in _names(self)]
        return type(self)(*values)


def _names(counts: Any) -> list[str]:
    return [entry.name for entry in fields(counts)]


def _sum(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, Mapping):
        return {key: _sum(first.get(key), second.get(key)) for key in {**first, **second}}
    return first + second


def _at(value: Any, place: Ints) -> Any:
    if isinstance(value, Mapping):
        return {key: _at(part, place) for key, part in value.items()}
    return value.at(place) if isinstance(value, ByPlace | NamedCounts) else value


@record(eq=False)
class ListCounts(NamedCounts):
    """Of the lists of one model that a metric looks at: `weights` are Σ w / π of the labelled rows of each user."""

    short: ByPlace | None = None
    split_ties: ByPlace | None = None
    balance: Balance | None = None
    weights: ByPlace | None = None


@record(eq=False)
class ModelCounts(NamedCounts):
    """Of one model or target; a count that its kind of data does not have is None, 0 or empty.

    Of labels: relevant rows that it scores (`positive`), those that it never recommends (`never`), those that share
    their score (`tied`); users without scores; items of the first users' lists, and how many of these are excluded. Of
    impressions: units that it ranks, sessions that the log does not have, rows that it never exposes; `unusable` are
    reasons why refitted models cannot be used, and without which groups.
    """

    positive: int = 0
    never: int = 0
    tied: int = 0
    unscored: ByPlace | None = None
    listed: int = 0
    listed_excluded: int = 0
    lists: Mapping[tuple[Pool, Metric], ListCounts] = field(default_factory=dict)
    predictions: Mapping[tuple[Assistance, Metric], PredictionBalance] = field(default_factory=dict)
    ranked: int | None = None
    unlogged: int = 0
    unexposed: int = 0
    support: SupportTally | None = None
    weights: Mapping[Limited, WeightTally] = field(default_factory=dict)
    unusable: Mapping[str, Ints] = field(default_factory=dict)


@record(eq=False)
class MeasuredCounts(NamedCounts):
    """Of all data; `expansion` as in `expansions`, `represented` are Σ 1 / π, its noise, and the pairs it estimates.

    `active` is how active each unit is, where units are kept; `rewards` are those other than 0 and 1.
    """

    models: Mapping[str, ModelCounts] = field(default_factory=dict)
    active: ByPlace | None = None
    relevant: int | None = None
    dropped: int = 0
    without_rows: int = 0
    excluded: int = 0
    items: LabelledItems | None = None
    users: UserCounts | None = None
    expansion: Floats | None = None
    returned: Returned | None = None
    represented: Floats | None = None
    rewards: Mapping[str, Largest] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def diagnostics_of(counts: ModelCounts, clip: float, limits: Limited) -> WeightDiagnostics:
    """The weights of a target where they are cut there."""
    unsupported, error = (None, 0.0) if counts.support is None else counts.support.share()
    return counts.weights[limits].diagnostics(clip, unsupported=unsupported, error=error)


def expansions(judged: Ints, candidates: Floats) -> Floats:
    """How many users have a labelled item, Σ N / N-bar and Σ (N / N-bar)² over them; those of other users add.

    >>> expansions(np.array([10, 5, 0]), np.array([20.0, 20.0, 20.0])).tolist()
    [2.0, 6.0, 20.0]
    """
    used = judged > 0
    weights = candidates[used] / judged[used]
    return np.array([float(np.count_nonzero(used)), weights.sum(), (weights**2).sum()])
