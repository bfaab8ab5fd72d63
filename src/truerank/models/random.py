"""Random scores: the floor every recommender must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.chance import cell_uniforms
from truerank.core.log import Log
from truerank.core.values import text_of
from truerank.models import NOTHING_BESIDE, Labels, Progress, Side
from truerank.ranks.scores.scores import Matrix, PerUser


@dataclass(frozen=True, slots=True)
class Random:
    """A uniform score for each cell, a function of the seed and the two ids alone; computed when asked for.

    The same pair has the same score among any candidates, and in any log that knows both ids.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2], "item": [7, 8]}))
    >>> scores = Random().fit(log, seed=0).block(np.array([0, 1]))
    >>> scores.shape, bool(((0 <= scores) & (scores < 1)).all())
    ((2, 2), True)
    """

    name: ClassVar[str] = "random"
    about: ClassVar[str] = "A uniform random score for each pair: the floor."
    needs: ClassVar[str | None] = None
    labels: ClassVar[Labels] = Labels.NOTHING

    __str__ = text_of

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Progress | None = None) -> PerUser:
        user_key, item_key = log.users.keys(), log.items.keys()

        def scores(row: int) -> Matrix:
            return cell_uniforms(seed, "random model", np.full(len(item_key), user_key[row]), item_key)

        return PerUser(scores, log.users, log.items, self.name)
