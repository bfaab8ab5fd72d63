"""Similarities between rows of a sparse matrix: co-occurrence, cosine, and the nearest neighbours of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from truerank.arrays import Floats, Ints

BLOCK_CELLS = 2**24  # similarities held at once before the nearest are kept

Say = Callable[[int, int], None]


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


def squared_norms(rows: Any) -> Floats:
    """The sum of squares of each row."""
    return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()


def cosine(product: Any, first: int, norm: Floats) -> Any:
    """Products of rows as cosines, given the squared norms of all rows.

    As √(p² / (a b)) rather than p / (√a √b): for whole numbers p², a and b are exact, so that cosines which are equal
    as numbers are equal in bits, and ties are ties.
    """
    row = first + np.repeat(np.arange(product.shape[0]), np.diff(product.indptr))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.sign(product.data) * np.sqrt(product.data**2 / (norm[row] * norm[product.indices]))
    value[~np.isfinite(value)] = 0.0
    return csr_array((value, product.indices, product.indptr), shape=product.shape)


def without_self(block: Any, first: int) -> Any:
    """The same with each row's similarity to itself left out."""
    row = first + np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    return _kept(block, block.indices != row)


def nearest(block: Any, k: int) -> Any:
    """The k largest similarities above 0 of each row; all that equal the k-th stay, so names never decide.

    >>> nearest(csr_array(np.array([[0.0, 0.5, 0.2, 0.2]])), 2).toarray().tolist()
    [[0.0, 0.5, 0.2, 0.2]]
    """
    weakest = np.zeros(block.shape[0])
    for row in np.flatnonzero(np.diff(block.indptr) > k):
        entries = block.data[block.indptr[row] : block.indptr[row + 1]]
        weakest[row] = np.partition(entries, len(entries) - k)[len(entries) - k]
    weakest = np.repeat(weakest, np.diff(block.indptr))
    return _kept(block, (block.data > 0) & (block.data >= weakest))


def neighbours(
    rows: Any,
    k: int,
    *,
    similarity: Callable[[Any, int], Any],
    weight: Floats | None = None,
    say: Say | None = None,
) -> Any:
    """For each row of a matrix its k nearest other rows with their similarity [rows x rows], sparse."""
    parts = []
    for first, block in together(rows, weight=weight):
        if say is not None:
            say(first, rows.shape[0])
        parts.append(nearest(without_self(similarity(block, first), first), k))
    return csr_array(vstack(parts, format="csr"))


def cosine_neighbours(rows: Any, k: int, *, say: Say | None = None) -> Any:
    """The k nearest other rows by cosine."""
    norm = squared_norms(rows)
    return neighbours(rows, k, similarity=lambda block, first: cosine(block, first, norm), say=say)


def scaled(matrix: Any, row: Floats, column: Floats) -> Any:
    """A sparse matrix with each row and column multiplied by its number."""
    at = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return csr_array(
        (matrix.data * row[at] * column[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape
    )


def _kept(block: Any, keep: Any) -> Any:
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))[keep]
    start: Ints = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=block.shape[0]))])
    return csr_array((block.data[keep], block.indices[keep], start), shape=block.shape)
