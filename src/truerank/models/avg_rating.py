"""AvgRating: everyone is shown what is rated best on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import sums_by
from truerank.core.log import Log
from truerank.core.values import text_of
from truerank.models import NOTHING_BESIDE, Labels, Progress, Side
from truerank.models.matrix import values
from truerank.ranks.scores.scores import Dense, dense


@dataclass(frozen=True, slots=True)
class AvgRating:
    """An item's score is the mean of its values in the log, the same for all users; no damping, no minimum number.

    Items without a row come last: their score is 1 below the lowest mean.

    >>> import polars as pl, truerank as tr
    >>> frame = pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8], "rating": [4, 5, 3]})
    >>> AvgRating().fit(tr.read(frame, items=[7, 8, 9]), seed=0).block(np.array([0])).tolist()
    [[4.5, 3.0, 2.0]]
    """

    name: ClassVar[str] = "avg-rating"
    about: ClassVar[str] = "The mean rating of an item, the same for all users; items without ratings come last."
    needs: ClassVar[str | None] = None
    labels: ClassVar[Labels] = Labels.VALUES

    __str__ = text_of

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Progress | None = None) -> Dense:
        value = values(log)
        n = sums_by(log.item, np.ones(len(log)), n=len(log.items))
        with np.errstate(invalid="ignore"):
            mean = sums_by(log.item, value, n=len(log.items)) / n
        mean[n == 0] = np.nanmin(mean) - 1
        # one row in memory stands for all users; double precision, as rounding would invent ties
        return dense(np.broadcast_to(mean, (len(log.users), len(mean))), users=log.users, items=log.items)
