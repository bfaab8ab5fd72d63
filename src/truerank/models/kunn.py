"""KUNN: nearest users and nearest items in one score."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.core.record import record
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.matrix import positives
from truerank.models.neighbours import Draw, neighbours, scaled
from truerank.models.settings import OneOf, setting
from truerank.ranking.scores.scores import Product

GRID = OneOf(tuple(range(70, 111, 5)))


@record
class KUNN(Model):
    """Score S_U + S_I of unified nearest neighbours (Verstrepen and Goethals 2014), R the positives, c their counts.

    S_U(u, i) = Σ_v R_vi sim(u, v) / √c(i) over the nearest users v of u, sim(u, v) = Σ_i R_ui R_vi / √(c(u) c(v) c(i));
    S_I(u, i) = Σ_j R_uj sim(i, j) / √c(u) over the nearest items j of i, sim(i, j) = Σ_u R_ui R_uj / √(c(i) c(u) c(j)).
    Nobody is a neighbour of herself. Of the neighbours that equal the k-th, as many as have room are drawn by the seed.
    Without positives the score is 0.

    User 1 likes 7, user 2 likes 7 and 8: sim(1, 2) = 1/√(1·2·2) = 1/2, so S_U(1, 8) = 1/2, and sim(8, 7) =
    1/√(1·2·2) = 1/2, so S_I(1, 8) = 1/2, together 1:

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8]}))
    >>> KUNN().fit(log, seed=0).block([0]).round(6).tolist()
    [[0.353553, 1.0]]
    """

    users: int = setting(100, "similar users that each user has", least=1, search=GRID)
    items: int = setting(100, "similar items that each item has", least=1, search=GRID)
    name: ClassVar[str] = "kunn"
    summary: ClassVar[str] = "Nearest users and nearest items in one score, weighted by how rare they are."

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Product:
        liked = positives(log)
        with watching(progress) as report:
            by_user, by_item = Draw(log.users.keys(), seed), Draw(log.items.keys(), seed)
            users = nearest_rows(liked, self.users, draw=by_user, progress=report, what="comparing users")
            items = nearest_rows(liked.T.tocsr(), self.items, draw=by_item, progress=report, what="comparing items")
        (of_users, by_users), (of_items, by_items) = from_users(liked, users), from_items(liked, items)
        left, right = hstack([of_users, of_items], format="csr"), vstack([by_users, by_items], format="csr")
        return Product(csr_array(left), csr_array(right), log.users, log.items)


def nearest_rows(liked: Any, k: int, *, draw: Draw, **progress: Any) -> Any:
    """The k most similar users of each user, with sim(u, v); of items x users those of items."""
    of_row, of_column = roots(liked)

    def similarity(block: Any, first: int) -> Any:
        return scaled(block, of_row[first : first + block.shape[0]], of_row)

    return neighbours(liked, k, similarity=similarity, weight=of_column, draw=draw, **progress)


def from_users(liked: Any, users: Any) -> tuple[Any, Any]:
    """S_U as a product of two sparse matrices."""
    of_user, of_item = roots(liked)
    return users, scaled(liked, np.ones(len(of_user)), of_item)


def from_items(liked: Any, items: Any) -> tuple[Any, Any]:
    """S_I as a product of two sparse matrices."""
    of_user, of_item = roots(liked)
    return scaled(liked, of_user, np.ones(len(of_item))), items.T.tocsr()


def roots(liked: Any) -> tuple[Floats, Floats]:
    """1 / √c of each user and of each item."""
    counts = (np.diff(liked.indptr), np.bincount(liked.indices, minlength=liked.shape[1]))
    of_user, of_item = (np.asarray(1 / np.sqrt(np.maximum(count, 1))) for count in counts)
    return of_user, of_item
