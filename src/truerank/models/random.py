"""Random scores: the floor every recommender must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.chance import cell_uniforms
from truerank.core import Log
from truerank.ranks.scores import Dense, dense


@dataclass(frozen=True, slots=True)
class Random:
    """A uniform score for each cell, a function of the seed and the two ids."""

    name: ClassVar[str] = "random"

    def fit(self, log: Log, *, seed: int) -> Dense:
        user, item = np.meshgrid(log.users.keys(), log.items.keys(), indexing="ij")
        scores = cell_uniforms(seed, "random model", user.ravel(), item.ravel()).reshape(user.shape)
        return dense(scores.astype(np.float32), users=log.users, items=log.items)
