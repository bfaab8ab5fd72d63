"""User-based nearest neighbours: what similar users liked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.log import Log
from truerank.core.values import check, text_of
from truerank.models import NOTHING_BESIDE, Labels, Progress, Side
from truerank.models.settings import setting
from truerank.models.similarity import GRID, Draw, Preference, cosine_neighbours, matrix_of, saying
from truerank.ranks.scores.scores import Product


@dataclass(frozen=True, slots=True)
class UserKNN:
    """s_u(i) = Σ_v cosine(u, v) r_vi over the k users v nearest to u.

    RankSys's form: no normalisation, a user is no neighbour of herself. Of the neighbours that equal the
    k-th, as many as have room are drawn by the seed. A user without neighbours and an item without rows score 0.

    Users 1 and 2 share item 7, cosine = 1/√(1 · 2):

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8]}))
    >>> UserKNN().fit(log, seed=0).block([0, 1]).round(4).tolist()
    [[0.7071, 0.7071], [0.7071, 0.0]]
    """

    neighbours: int = setting(100, "similar users that each user has", least=1, search=GRID)
    rows: Preference = setting(Preference.POSITIVES, "what r is: 1 for positive pairs, or the raw values of all rows")
    name: ClassVar[str] = "user-knn"
    about: ClassVar[str] = "What the users with the most similar items liked, by cosine."
    needs: ClassVar[str | None] = None
    labels: ClassVar[Labels] = Labels.POSITIVES

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Progress | None = None) -> Product:
        matrix = matrix_of(log, self.rows)
        draw = Draw(log.users.keys(), seed)
        similar = cosine_neighbours(matrix, self.neighbours, draw=draw, say=saying(progress, "comparing users"))
        return Product(similar, matrix, log.users, log.items)
