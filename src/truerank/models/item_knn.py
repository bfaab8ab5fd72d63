"""Item-based nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core import Log
from truerank.models.matrix import positives
from truerank.ranks.scores import Dense, dense


@dataclass(frozen=True, slots=True)
class ItemKNN:
    """Score of item i = Σ over the user's positives j of cosine(i, j), for the `neighbours` most similar items of j.

    cosine(i, j) = users who like both / sqrt(users who like i · users who like j).
    """

    neighbours: int = 100
    name: ClassVar[str] = "item-knn"

    def fit(self, log: Log, *, seed: int) -> Dense:
        liked = positives(log)
        both = (liked.T @ liked).toarray()
        norm = np.sqrt(np.maximum(np.diag(both), 1.0))
        cosine = both / norm[:, None] / norm[None, :]
        np.fill_diagonal(cosine, 0.0)
        if self.neighbours < len(cosine):
            weakest = np.partition(cosine, -self.neighbours, axis=1)[:, -self.neighbours]
            cosine[cosine < weakest[:, None]] = 0.0
        return dense((liked @ cosine).astype(np.float32), users=log.users, items=log.items)
