"""Small worlds of which every label is known, and what is judged of them: at random, or rather what is popular."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank.core.arrays import Bools, Floats


@dataclass(frozen=True)
class Shown:
    """Labels [users x items] and the scores of models; popular items come last, and are liked more often."""

    label: Bools
    scores: Mapping[str, Floats]

    @classmethod
    def of(cls, rng: np.random.Generator, n_users: int, n_items: int) -> Shown:
        """One model that follows popularity, one that knows tastes, one that guesses."""
        shape = (n_users, n_items)
        popular = np.linspace(0, 1, n_items)
        label = rng.random(shape) < 0.05 + 0.3 * popular**2
        noise = rng.standard_normal((3, *shape))
        scores = {"popular": popular + 0.3 * noise[0], "taste": label + 0.6 * noise[1], "guess": noise[2]}
        return cls(label, scores)

    @property
    def models(self) -> dict[str, Any]:
        users, items = (range(n) for n in self.label.shape)
        return {name: tr.scores.dense(each, users=users, items=items) for name, each in self.scores.items()}

    def judged(self, shown: Bools, propensity: Any = None) -> pl.DataFrame:
        """The labels of shown pairs."""
        user, item = np.nonzero(shown)
        columns = {"user": user, "item": item, "label": self.label[user, item].astype(np.int64)}
        if propensity is not None:
            columns["propensity"] = np.broadcast_to(propensity, shown.shape)[user, item]
        return pl.DataFrame(columns)

    def list_of(self, model: str, k: int) -> Bools:
        """Which pairs are in the lists of a model."""
        scores = self.scores[model]
        return scores >= np.sort(scores, axis=1)[:, [-k]]


def uniform(rng: np.random.Generator, shape: tuple[int, int], n: Any) -> Bools:
    """n items of every user, all sets equally likely."""
    rank = rng.random(shape).argsort(axis=1).argsort(axis=1)
    return rank < np.broadcast_to(n, shape[:1])[:, None]
