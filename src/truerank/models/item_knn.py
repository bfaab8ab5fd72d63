"""Item-based nearest neighbours: items similar to what the user liked."""

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
class ItemKNN:
    """s_u(i) = Σ_j cosine(j, i) r_uj over the user's items j that have i among their k nearest items.

    RankSys's form (Cremonesi et al. 2010): no normalisation, an item is no neighbour of itself. With binary r the
    cosine is users who like both / √(users who like i · users who like j). Of the neighbours that equal the
    k-th, as many as have room are drawn by the seed. A user or an item without rows scores 0.

    Items 7 and 8 share one of their users, cosine = 1/√(2 · 1):

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8]}))
    >>> ItemKNN().fit(log, seed=0).block([0, 1]).round(4).tolist()
    [[0.0, 0.7071], [0.7071, 0.7071]]
    """

    neighbours: int = setting(100, "similar items that each item has", least=1, search=GRID)
    rows: Preference = setting(Preference.POSITIVES, "what r is: 1 for positive pairs, or the raw values of all rows")
    name: ClassVar[str] = "item-knn"
    about: ClassVar[str] = "Items whose users are those of the items that the user liked, by cosine."
    needs: ClassVar[str | None] = None
    labels: ClassVar[Labels] = Labels.POSITIVES

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Progress | None = None) -> Product:
        matrix = matrix_of(log, self.rows)
        draw = Draw(log.items.keys(), seed)
        similar = cosine_neighbours(
            matrix.T.tocsr(), self.neighbours, draw=draw, say=saying(progress, "comparing items")
        )
        return Product(matrix, similar, log.users, log.items)
