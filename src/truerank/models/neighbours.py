"""Models of neighbours: similar items, similar users, both in one score (KUNN), items that occur together (SAR)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Keys
from truerank.core.log import Log
from truerank.core.progress import Progress, Watching, watching
from truerank.core.ranking import Scores
from truerank.core.record import record
from truerank.core.rng import cell_keys, cell_uniforms
from truerank.core.values import Count
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.matrix import counts, listed, positives, valued
from truerank.ranking.scores.scores import Function, Matrix, Product, per_user

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
    row = first + row_of_entries(product)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.sign(product.data) * np.sqrt(product.data**2 / (norm[row] * norm[product.indices]))
    value[~np.isfinite(value)] = 0.0
    return with_values(product, value)


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
        others = alike.indices != first + row_of_entries(alike)
        parts.append(nearest(_selected(alike, others), k, first=first, draw=draw))
    return csr_array(vstack(parts, format="csr"))


def scaled(matrix: Any, row: Floats, column: Floats) -> Any:
    """A sparse matrix with each row and column multiplied by its number."""
    return with_values(matrix, matrix.data * row[row_of_entries(matrix)] * column[matrix.indices])


def row_of_entries(matrix: Any) -> Ints:
    """The row of each stored entry of a sparse matrix."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def with_values(matrix: Any, value: Floats) -> Any:
    """Other values in the same places of a sparse matrix."""
    return csr_array((value, matrix.indices, matrix.indptr), shape=matrix.shape)


def _selected(block: Any, keep: Any) -> Any:
    row = row_of_entries(block)[keep]
    start: Ints = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=block.shape[0]))])
    return csr_array((block.data[keep], block.indices[keep], start), shape=block.shape)


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

    neighbours: Annotated[Count, "similar users, or items, that each has"] = 100
    rows: Annotated[Preference, "what r is: 1 for positive pairs, or the raw values of all rows"] = Preference.POSITIVES
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

    users: Annotated[Count, "similar users that each user has"] = 100
    items: Annotated[Count, "similar items that each item has"] = 100
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


class Similarity(StrEnum):
    """How alike two items are, c_ij the users that have both.

    COSINE   c_ij / √(c_ii c_jj)
    JACCARD  c_ij / (c_ii + c_jj - c_ij)
    """

    COSINE = "cosine"
    JACCARD = "jaccard"


class Occurrence(StrEnum):
    """Which rows count as occurring together: positive ones, or all that are listed."""

    POSITIVES = "positives"
    ROWS = "rows"


class Zeros(StrEnum):
    """What happens to scores of 0: they stay tied, or get noise in (0, 0.01) while all others rise by 0.02."""

    TIED = "tied"
    NOISE = "noise"


@record
class SAR(Model):
    """s_u(i) = Σ_j a_uj S_ji, a_uj the number of positive rows of the pair, S the similarity of items.

    SAR of Microsoft Recommenders without time decay: all similarities count, an item's with itself too. Names for the
    two readings of the study "sampled evaluation": `SAR.published()` counts co-occurrence on positives;
    `SAR.released()` on all rows, negative ones too, and breaks ties at 0 by seeded noise. A user or an item without
    rows scores 0.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8]}))
    >>> SAR(Similarity.JACCARD).fit(log, seed=0).block([0, 1]).tolist()
    [[1.0, 0.5], [1.5, 1.5]]
    """

    similarity: Annotated[Similarity, "how alike two items are"] = Similarity.COSINE
    occurrence: Annotated[Occurrence, "rows that count as occurring together"] = Occurrence.POSITIVES
    zeros: Annotated[Zeros, "scores of 0 stay tied, or get seeded noise"] = Zeros.TIED
    name: ClassVar[str] = "sar"
    summary: ClassVar[str] = "Items that occur together with those the user liked: cosine or Jaccard, all of them."

    @classmethod
    def published(cls, similarity: Similarity = Similarity.COSINE) -> SAR:
        """As the paper says."""
        return cls(similarity)

    @classmethod
    def released(cls, similarity: Similarity = Similarity.COSINE) -> SAR:
        """As the paper's code does."""
        return cls(similarity, Occurrence.ROWS, Zeros.NOISE)

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Scores:
        affinity = counts(log)
        rows = positives(log) if self.occurrence is Occurrence.POSITIVES else listed(log)
        alike = cosine if self.similarity is Similarity.COSINE else _jaccard
        with watching(progress) as report:
            columns, parts = rows.T.tocsr(), []
            n = np.diff(columns.indptr).astype(np.float64)
            for first, block in together(columns):
                if report is not None:
                    report("comparing items", first, columns.shape[0])
                parts.append(alike(block, first, n))
        similar = csr_array(vstack(parts, format="csr"))
        scores = Product(affinity, similar, log.users, log.items)
        return scores if self.zeros is Zeros.TIED else _noisy(scores, seed=seed)


def _jaccard(block: Any, first: int, n: Floats) -> Any:
    return with_values(block, block.data / (n[first + row_of_entries(block)] + n[block.indices] - block.data))


def _noisy(scores: Product, *, seed: int) -> Function:
    user_key, item_key = scores.users.keys(), scores.items.keys()

    def call(row: int) -> Matrix:
        values = scores.block(np.array([row]))[0]
        noise = cell_uniforms(seed, "sar zeros", np.full(len(item_key), user_key[row]), item_key)
        return np.where(values == 0, 0.01 * noise, values + 0.02)

    return per_user(call, users=scores.users, items=scores.items, name=SAR.name)
