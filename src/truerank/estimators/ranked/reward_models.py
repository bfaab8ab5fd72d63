"""What an item is expected to earn once it is viewed, for doubly robust estimates: q(x, a) = P(Q | x, a).

A model is fitted on other sessions than those it predicts (cross-fitting), so that its error is independent of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_uniforms
from truerank.core.errors import InputError
from truerank.data.impressions import Impressions
from truerank.exposure.policies.policies import Policy

Predict = Callable[[Ints, Ints], Floats]  # (unit, item) -> q; item -1 is one that the log never shows


class RewardModel(Protocol):
    """Predictions for the rows of a log and for all items that a target would rank."""

    name: ClassVar[str]

    def predict(
        self, log: Impressions, target: Policy, *, reward: str, seen: Floats, seed: int
    ) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True, slots=True)
class ItemMeans:
    """Shrunk means of items, cross-fitted: q = (Σ c + s·mean) / (Σ v + s) over the other folds' rows of an item.

    v is 1 for a viewed row, and P(V | position) for a displayed one of which nobody knows whether it was viewed. Items
    of few views lean towards the mean of all, with the strength of `strength` views. Folds hold whole users, or
    sessions where there are no users.
    """

    folds: int = 5
    strength: float = 20.0

    name: ClassVar[str] = "item-means"

    def __post_init__(self) -> None:
        if self.folds < 2 or self.strength < 0:
            raise InputError(
                f"{self.folds} folds, strength {self.strength:g}; expected at least 2 folds and a strength from 0."
            )

    def predict(
        self, log: Impressions, target: Policy, *, reward: str, seen: Floats, seed: int
    ) -> tuple[Floats, Floats]:
        if target.whole is None:
            raise InputError(f"{target.name}: the whole list of items is needed.")
        fold = fold_of_units(log, n=self.folds, seed=seed)
        n_items = len(log.items)
        cell = fold[log.unit] * n_items + log.item
        size = self.folds * n_items
        earned = np.bincount(cell, log.reward(reward), minlength=size).reshape(self.folds, n_items)
        viewed = np.bincount(cell, seen, minlength=size).reshape(self.folds, n_items)
        other_earned, other_viewed = earned.sum(axis=0) - earned, viewed.sum(axis=0) - viewed
        all_viewed = other_viewed.sum(axis=1, keepdims=True)
        mean = np.divide(
            other_earned.sum(axis=1, keepdims=True), all_viewed, out=np.zeros_like(all_viewed), where=all_viewed > 0
        )
        weight = other_viewed + self.strength
        known = np.divide(
            other_earned + self.strength * mean, weight, out=np.repeat(mean, n_items, axis=1), where=weight > 0
        )
        quality = np.hstack([known, mean])  # the last column serves items that the log never shows
        listed = np.where(target.whole.item < 0, n_items, target.whole.item)
        return quality[fold[log.unit], log.item], quality[fold[target.whole.unit], listed]


@dataclass(frozen=True, slots=True)
class PredictionColumn:
    """Predictions of a model of your own, in a column `prediction` of the log and of the target's table.

    They must come from a model that was not fitted on these sessions.
    """

    column: str = "prediction"

    name: ClassVar[str] = "column"

    def predict(
        self, log: Impressions, target: Policy, *, reward: str, seen: Floats, seed: int
    ) -> tuple[Floats, Floats]:
        if self.column not in log.columns or np.isnan(log.columns[self.column]).any():
            raise InputError(f"{log.source}: a column {self.column} with a number in every row is needed.")
        if target.whole is None or target.whole.prediction is None:
            raise InputError(f"{target.name}: a column {self.column} is needed in the target's table.")
        return log.columns[self.column], target.whole.prediction


def fold_of_units(log: Impressions, *, n: int, seed: int) -> Ints:
    """A fold for each unit: all units of a user, or each session, by their ids alone."""
    if log.users is not None:
        keys = log.users.keys()
        known = log.cluster < len(keys)
        key = np.where(known, keys[np.where(known, log.cluster, 0)], log.cluster.astype(np.uint64))
    elif log.sessions is not None and log.session_of_unit is not None:
        key = log.sessions.keys()[log.session_of_unit]
    else:
        key = np.arange(log.n_units, dtype=np.uint64)
    chance = cell_uniforms(seed, "folds", key, np.zeros(len(key), dtype=np.uint64))
    return np.minimum((chance * n).astype(np.int64), n - 1)
