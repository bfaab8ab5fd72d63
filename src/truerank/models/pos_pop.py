"""PosPop: everyone is shown what most people rated highly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.values import check, text_of
from truerank.models import NOTHING_BESIDE, Labels, Progress, Side
from truerank.models.matrix import positive_rows, raw_name, values
from truerank.models.settings import setting
from truerank.ranks.scores.scores import Factors, factors


@dataclass(frozen=True, slots=True)
class PosPop:
    """An item's score is its number of values above `above` in the log, the same for all users.

    In a log that has labels alone it is the number of positive rows, as Popularity.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8], "rating": [4, 5, 3]}))
    >>> PosPop().fit(log, seed=0).block(np.array([0])).tolist()
    [[2.0, 0.0]]
    """

    above: float = setting(3.0, "values above this count")
    name: ClassVar[str] = "pos-pop"
    about: ClassVar[str] = "The number of ratings of an item above 3, the same for all users."
    needs: ClassVar[str | None] = None
    labels: ClassVar[Labels] = Labels.VALUES

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Progress | None = None) -> Factors:
        counted = positive_rows(log) if raw_name(log) is None else values(log) > self.above
        if not counted.any():
            raise InputError(f"{log.source}: none of {len(log):,} values is above {self.above:g}; expected some.")
        count = np.bincount(log.item[counted], minlength=len(log.items)).astype(np.float64)
        return factors(np.ones((len(log.users), 1)), count[:, None], users=log.users, items=log.items)
