"""Popularity: everyone is shown what most people liked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.log import Log
from truerank.core.values import text_of
from truerank.models import NOTHING_BESIDE, Labels, Progress, Side
from truerank.models.matrix import positive_rows
from truerank.ranks.scores.scores import Factors, factors


@dataclass(frozen=True, slots=True)
class Popularity:
    """An item's score is its number of positive rows in the log, the same for all users.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8], "label": [1, 1, 0]}))
    >>> Popularity().fit(log, seed=0).block(np.array([0])).tolist()
    [[2.0, 0.0]]
    """

    name: ClassVar[str] = "popularity"
    about: ClassVar[str] = "The number of positive rows of an item, the same for all users."
    needs: ClassVar[str | None] = None
    labels: ClassVar[Labels] = Labels.POSITIVES

    __str__ = text_of

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Progress | None = None) -> Factors:
        count = np.bincount(log.item[positive_rows(log)], minlength=len(log.items)).astype(np.float64)
        return factors(np.ones((len(log.users), 1)), count[:, None], users=log.users, items=log.items)
