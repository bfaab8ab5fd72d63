"""Worlds in which every label is known, as arrays: labels, ranks of several recommenders, what judges say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.rng import generator
from truerank.datasets import DATASETS
from truerank.estimators.predictions import ranked_within_rows

Matrix = npt.NDArray[Any]
DEEPEST = 500  # of the lists whose places are kept
SCORES = "scores"
FIRST = "popularity"  # with which the others are compared

# judges: how often they call a relevant pair relevant, and another one not
JUDGES: Mapping[str, tuple[float, float]] = {"good": (0.7, 0.95), "eager": (0.9, 0.8), "useless": (0.5, 0.5)}


@dataclass(frozen=True, slots=True, eq=False)
class KnownWorld:
    """Labels [users x items]; of each recommender the rank of every item from 0 and the best items of each user."""

    labels: Bools
    rank: Mapping[str, Matrix]
    best: Mapping[str, Matrix]
    judges: Mapping[str, Matrix]
    scores: Floats  # that assist
    made: dict[object, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)  # sums over lists, made once

    @property
    def n_users(self) -> int:
        return len(self.labels)

    @property
    def n_items(self) -> int:
        return int(self.labels.shape[1])

    def said(self, by: str) -> Matrix:
        """What a judge, or the scores that assist, say of every pair."""
        return self.scores if by == SCORES else self.judges[by]

    def running(self, by: str, model: str) -> tuple[Floats, Floats]:
        """Sums of that over the first places of each list, [users x places], and over all items."""
        if (by, model) not in self.made:
            whole = self.said(by)
            best = self.best[model].astype(np.int64)
            self.made[by, model] = running_sums(whole, best), whole.sum(axis=1, dtype=np.float64)
        return self.made[by, model]

    @classmethod
    def of(cls, labels: Bools, scores: Mapping[str, Floats], *, assists: str, seed: int) -> KnownWorld:
        """Equal scores are put into one order by chance, once."""
        rng = generator(seed, "truth judges and ties")
        rank, best = {}, {}
        for name, each in scores.items():
            order = np.lexsort((rng.random(labels.shape, dtype=np.float32), -each), axis=1)
            rank[name] = _inverse(order)
            best[name] = order[:, :DEEPEST].astype(np.int16)
        chance = rng.random(labels.shape, dtype=np.float32)
        judges = {
            name: np.where(labels, chance < right, chance >= other).astype(np.int8)
            for name, (right, other) in JUDGES.items()
        }
        return cls(labels, rank, best, judges, ranked_within_rows(scores[assists].astype(np.float64)))


def running_sums(values: Matrix, best: Ints) -> Floats:
    """Sums over the first places of each row's list.

    >>> running_sums(np.array([[1.0, 2.0, 4.0]]), np.array([[2, 0]])).tolist()
    [[4.0, 5.0]]
    """
    # places in one long row: several times faster than an index for each axis
    place = best + values.shape[1] * np.arange(len(values))[:, None]
    return np.asarray(np.cumsum(np.take(values, place), axis=1, dtype=np.float64))


def _inverse(order: Ints) -> Matrix:
    rank = np.empty(order.shape, dtype=np.int16)
    np.put_along_axis(rank, order, np.arange(order.shape[1], dtype=np.int16)[None], axis=1)
    return rank


# -------------------------------------------------------------------------------------------------------- recommenders


def recommended(train: Any, known: Any, items: Ints, *, seed: int, dimensions: tuple[int, int]) -> dict[str, Floats]:
    """Scores of five recommenders over `items`, columns of a sparse `train` matrix [users x items], for users of whom
    `known`, a matrix of the same columns, is known.

    Popularity; cosines of items with those that a user has; two truncated SVDs; chance.
    """
    from scipy import sparse
    from scipy.sparse.linalg import svds

    popular = np.asarray(train.sum(axis=0)).ravel()
    scale = sparse.diags(1.0 / np.sqrt(np.maximum(popular, 1.0)))
    shared = (known @ scale @ scale @ train.T).toarray()
    cosines = np.asarray((train @ scale)[:, items].T @ shared.T).T
    shape = (known.shape[0], len(items))
    scores = {FIRST: np.broadcast_to(popular[items], shape).astype(np.float64), "item-knn": cosines}
    for size in dimensions:
        _, _, right = svds(train.astype(np.float64), k=size, v0=np.ones(min(train.shape)))
        scores[f"svd-{size}"] = np.asarray((known @ right.T) @ right[:, items])
    return scores | {"random": generator(seed, "truth random scores").random(shape)}


# -------------------------------------------------------------------------------------------------------------- worlds


@dataclass(frozen=True, slots=True)
class SyntheticSettings:
    """Tastes, popularity with a heavy tail, users of very unequal activity.

    `disliking` users like nothing. With `rising` likes of active users follow taste and popularity while those of
    others are anything, so that recall rises with the number of relevant items; else it falls, as on most real data.
    """

    users: int = 1200
    items: int = 1500
    disliking: float = 0.0
    rising: bool = False


def synthetic(settings: SyntheticSettings, *, seed: int) -> KnownWorld:
    """
    >>> world = synthetic(SyntheticSettings(60, 80, disliking=0.3), seed=1)
    >>> int((world.labels.sum(axis=1) == 0).sum()) >= 18, sorted(world.rank)
    (True, ['item-knn', 'popularity', 'random', 'svd-12', 'svd-3'])
    """
    from scipy import sparse

    rng = generator(seed, f"truth {settings!r}")
    shape = (settings.users, settings.items)
    taste, kind = rng.normal(size=(settings.users, 6)), rng.normal(size=(settings.items, 6))
    popular = rng.exponential(1.0, settings.items)
    activity = rng.normal(0.0, 1.0, settings.users)
    focus = 1.2 / (1.0 + np.exp(-2.0 * activity[:, None])) if settings.rising else np.full((settings.users, 1), 0.8)
    rare, steep = (6.2, 0.3) if settings.rising else (5.0, 1.0)
    appeal = taste @ kind.T / 2.5 + popular
    chance = 1.0 / (1.0 + np.exp(rare - steep * activity[:, None] - focus * appeal))
    nothing = rng.permutation(settings.users) < round(settings.disliking * settings.users)
    labels = (rng.random(shape) < np.minimum(chance, 0.9)) & ~nothing[:, None]
    # what was seen of them before: likes of the same tastes, likelier where an item is popular
    before = (rng.random(shape) < chance) & (rng.random(shape) < 0.3 * (1 + popular) / (1 + popular.mean()))
    train = sparse.csr_array(before.astype(np.float64))
    scores = recommended(train, train, np.arange(settings.items), seed=seed, dimensions=(12, 3))
    return KnownWorld.of(labels, scores, assists="svd-12", seed=seed)


def kuairec(folder: Path, *, seed: int) -> KnownWorld:
    """The fully observed block of KuaiRec, with recommenders that learned from the big matrix around it."""
    from scipy import sparse

    parts = DATASETS.named("kuairec")().load(folder, parts=("full", "train"), check=False)
    full, big = parts["full"], parts["train"]
    labels = np.zeros((len(full.users), len(full.items)), dtype=bool)
    labels[full.user, full.item] = full.label == 1
    liked = big.label == 1
    shape = (len(big.users) + 1, len(big.items) + 1)  # the last are of those who are not there
    train = sparse.csr_array((np.ones(int(liked.sum())), (big.user[liked], big.item[liked])), shape=shape)
    user, items = big.users.locate(full.users), big.items.locate(full.items)
    scores = recommended(train, train[user], items, seed=seed, dimensions=(32, 8))
    return KnownWorld.of(labels, scores, assists="svd-32", seed=seed)


def jester(folder: Path, *, seed: int) -> KnownWorld:
    """The users of Jester who rated all 100 jokes: half of them train recommenders, which know 20 jokes of the others.

    The other 80 jokes are the candidates.
    """
    from scipy import sparse

    full = DATASETS.named("jester")().load(folder, parts=("full",), check=False)["full"]
    liked = np.zeros((len(full.users), len(full.items)), dtype=bool)
    liked[full.user, full.item] = full.label == 1
    half, known = len(liked) // 2, np.arange(len(full.items)) % 5 == 0
    train = sparse.csr_array(liked[:half].astype(np.float64))
    own = sparse.csr_array((liked[half:] & known).astype(np.float64))
    items = np.flatnonzero(~known)
    scores = recommended(train, own, items, seed=seed, dimensions=(12, 3))
    return KnownWorld.of(liked[half:][:, items], scores, assists="svd-12", seed=seed)
