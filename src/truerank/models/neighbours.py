"""Neighbours: similar items, similar users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, vstack

from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Keys
from truerank.core.log import Log
from truerank.core.progress import Progress, Watching, watching
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.matrix import positives, valued
from truerank.models.settings import OneOf, setting
from truerank.ranking.scores.scores import Product

BLOCK_CELLS = 2**24  # similarities held at once before the nearest are kept


def together(rows: Any, *, weight: Floats | None = None) -> Iterator[tuple[int, Any]]:
    """(first row, products of some rows with all rows): Σ_c weight_c a_c b_c in blocks that fit any memory.

    An entry is added up in the order of the columns, so it has the same bits in any block.
    """
    columns = rows.T.tocsr()
    # how many products each row takes part in: no row of the result can have more entries
    most = rows.astype(bool).astype(np.int64) @ np.diff(columns.indptr)
    most = np.minimum(most, rows.shape[0])
    start, size = 0, np.cumsum(most)
    weighted = rows if weight is None else scaled(rows, np.ones(rows.shape[0]), weight)
    while start < rows.shape[0]:
        before = size[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(size, before + BLOCK_CELLS, side="right")))
        block = weighted[start:stop] @ columns
        block.sort_indices()
        yield start, block
        start = stop


def cosine(product: Any, first: int, norm: Floats) -> Any:
    """Products of rows as cosines, given the squared norms of all rows.

    As √(p² / (a b)) rather than p / (√a √b): for whole numbers p², a and b are exact, so that cosines which are equal
    as numbers are equal in bits, and equals are known as such.
    """
    row = first + np.repeat(np.arange(product.shape[0]), np.diff(product.indptr))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.sign(product.data) * np.sqrt(product.data**2 / (norm[row] * norm[product.indices]))
    value[~np.isfinite(value)] = 0.0
    return csr_array((value, product.indices, product.indptr), shape=product.shape)


@record
class Draw:
    """How equals are told apart: at random, keyed by the seed and the two ids, so that order never matters."""

    key: Keys  # of each row
    seed: int

    def order(self, row: int, others: Ints) -> Keys:
        return cell_keys(self.seed, "neighbours", np.full(len(others), self.key[row]), self.key[others])


def nearest(block: Any, k: int, *, first: int, draw: Draw) -> Any:
    """The k largest similarities above 0 of each row; of those that equal the k-th, as many as have room are drawn.

    >>> draw = Draw(np.arange(4, dtype=np.uint64), seed=0)
    >>> nearest(csr_array(np.array([[0.0, 0.5, 0.2, 0.9]])), 2, first=0, draw=draw).toarray().tolist()
    [[0.0, 0.5, 0.0, 0.9]]
    """
    keep = block.data > 0
    for row in np.flatnonzero(np.diff(block.indptr) > k):
        here = slice(block.indptr[row], block.indptr[row + 1])
        value, chosen = block.data[here], keep[here]
        weakest = np.partition(value, len(value) - k)[len(value) - k]
        equal = np.flatnonzero(value == weakest)
        room = k - np.count_nonzero(value > weakest)
        chosen &= value >= weakest
        if room < len(equal) and weakest > 0:
            key = draw.order(first + int(row), block.indices[here][equal])
            chosen[equal[np.argsort(key)[room:]]] = False
    return _selected(block, keep)


def neighbours(
    rows: Any,
    k: int,
    *,
    similarity: Callable[[Any, int], Any],
    draw: Draw,
    weight: Floats | None = None,
    progress: Progress | None = None,
    what: str = "comparing rows",
) -> Any:
    """For each row of a matrix its k nearest other rows with their similarity [rows x rows], sparse."""
    parts = []
    for first, block in together(rows, weight=weight):
        if progress is not None:
            progress(what, first, rows.shape[0])
        alike = similarity(block, first)
        row = first + np.repeat(np.arange(alike.shape[0]), np.diff(alike.indptr))
        parts.append(nearest(_selected(alike, alike.indices != row), k, first=first, draw=draw))
    return csr_array(vstack(parts, format="csr"))


def scaled(matrix: Any, row: Floats, column: Floats) -> Any:
    """A sparse matrix with each row and column multiplied by its number."""
    place = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return csr_array(
        (matrix.data * row[place] * column[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape
    )


def _selected(block: Any, keep: Any) -> Any:
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))[keep]
    start: Ints = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=block.shape[0]))])
    return csr_array((block.data[keep], block.indices[keep], start), shape=block.shape)


GRID = OneOf(tuple(range(10, 101, 10)))


class Preference(StrEnum):
    """What a nearest-neighbour model takes for the preference r of a user for an item.

    POSITIVES  1 for each positive pair
    VALUES     the raw values of all rows, such as ratings
    """

    POSITIVES = "positives"
    VALUES = "values"


def matrix_of(log: Log, rows: Preference) -> Any:
    """Users x items, the preferences r."""
    return positives(log) if rows is Preference.POSITIVES else valued(log)


@record
class UserKNN(Model):
    """s_u(i) = Σ_v cosine(u, v) r_vi over the k users v nearest to u.

    RankSys's form: no normalisation, a user is no neighbour of herself. Of the neighbours that equal the
    k-th, as many as have room are drawn by the seed. A user without neighbours and an item without rows score 0.

    Users 1 and 2 share item 7, cosine = 1/√(1 · 2):

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8]}))
    >>> UserKNN().fit(log, seed=0).block([0, 1]).round(4).tolist()
    [[0.7071, 0.7071], [0.7071, 0.0]]
    """

    neighbours: int = setting(100, "similar users, or items, that each has", least=1, search=GRID)
    rows: Preference = setting(Preference.POSITIVES, "what r is: 1 for positive pairs, or the raw values of all rows")
    name: ClassVar[str] = "user-knn"
    summary: ClassVar[str] = "What the users with the most similar items liked, by cosine."
    of_items: ClassVar[bool] = False  # whether items have neighbours, or users

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Product:
        matrix = matrix_of(log, self.rows)
        rows, ids = (matrix.T.tocsr(), log.items) if self.of_items else (matrix, log.users)
        norm = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
        with watching(progress) as report:
            similar = neighbours(
                rows, self.neighbours, similarity=lambda block, first: cosine(block, first, norm),
                draw=Draw(ids.keys(), seed), progress=report, what=f"comparing {'items' if self.of_items else 'users'}",
            )  # fmt: skip
        return Product(*((matrix, similar) if self.of_items else (similar, matrix)), log.users, log.items)


@record
class ItemKNN(UserKNN):
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

    name: ClassVar[str] = "item-knn"
    summary: ClassVar[str] = "Items whose users are those of the items that the user liked, by cosine."
    of_items: ClassVar[bool] = True
