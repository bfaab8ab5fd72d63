"""Recommenders that know no taste: random, popularity, positives, mean ratings."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from truerank.core.arrays import Bools, sums_by
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.progress import Watching
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.core.values import Range
from truerank.models import NOTHING_BESIDE, Labels, Model, Side
from truerank.models.matrix import positive_rows, raw_name, values
from truerank.ranking.scores.scores import Dense, Factors, Function, Matrix, dense, factors, per_user


@record
class Popularity(Model):
    """An item's score is its number of positive rows in the log, the same for all users.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8], "label": [1, 1, 0]}))
    >>> Popularity().fit(log, seed=0).block(np.array([0])).tolist()
    [[2.0, 0.0]]
    """

    name: ClassVar[str] = "popularity"
    summary: ClassVar[str] = "The number of positive rows of an item, the same for all users."

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        return _counts(log, positive_rows(log))


@record
class PosPop(Model):
    """An item's score is its number of values above `above` in the log, the same for all users.

    In a log that has labels alone it is the number of positive rows, as Popularity.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8], "rating": [4, 5, 3]}))
    >>> PosPop().fit(log, seed=0).block(np.array([0])).tolist()
    [[2.0, 0.0]]
    """

    above: Annotated[float, Range(), "values above this count"] = 3.0
    name: ClassVar[str] = "pos-pop"
    summary: ClassVar[str] = "The number of ratings of an item above 3, the same for all users."
    labels: ClassVar[Labels] = Labels.VALUES

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        counted = positive_rows(log) if raw_name(log) is None else values(log) > self.above
        if not counted.any():
            raise InputError(f"{log.source}: none of {len(log):,} values is above {self.above:g}; expected some.")
        return _counts(log, counted)


def _counts(log: Log, rows: Bools) -> Factors:
    """For every user the number of these rows of each item."""
    count = np.bincount(log.item[rows], minlength=len(log.items)).astype(np.float64)
    return factors(np.ones((len(log.users), 1)), count[:, None], users=log.users, items=log.items)


@record
class AvgRating(Model):
    """An item's score is the mean of its values in the log, the same for all users; no damping, no minimum number.

    Items without a row come last: their score is 1 below the lowest mean.

    >>> import polars as pl, truerank as tr
    >>> frame = pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8], "rating": [4, 5, 3]})
    >>> AvgRating().fit(tr.read(frame, items=[7, 8, 9]), seed=0).block(np.array([0])).tolist()
    [[4.5, 3.0, 2.0]]
    """

    name: ClassVar[str] = "avg-rating"
    summary: ClassVar[str] = "The mean rating of an item, the same for all users; items without ratings come last."
    labels: ClassVar[Labels] = Labels.VALUES

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Dense:
        value = values(log)
        n = sums_by(log.item, np.ones(len(log)), n=len(log.items))
        with np.errstate(invalid="ignore"):
            mean = sums_by(log.item, value, n=len(log.items)) / n
        mean[n == 0] = np.nanmin(mean) - 1
        # one row in memory represents all users; double precision, as rounding would invent ties
        return dense(np.broadcast_to(mean, (len(log.users), len(mean))), users=log.users, items=log.items)


@record
class Random(Model):
    """A uniform score for each cell, a function of the seed and the two ids alone; computed when asked for.

    The same pair has the same score among any candidates, and in any log that knows both ids.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2], "item": [7, 8]}))
    >>> scores = Random().fit(log, seed=0).block(np.array([0, 1]))
    >>> scores.shape, bool(((0 <= scores) & (scores < 1)).all())
    ((2, 2), True)
    """

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "A uniform random score for each pair: the floor."
    labels: ClassVar[Labels] = Labels.NOTHING

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Function:
        user_key, item_key = log.users.keys(), log.items.keys()

        def scores(row: int) -> Matrix:
            return cell_uniforms(seed, "random model", np.full(len(item_key), user_key[row]), item_key)

        return per_user(scores, users=log.users, items=log.items, name=self.name)
