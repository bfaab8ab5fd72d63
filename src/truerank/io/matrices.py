"""Rows of sparse matrices: the stored entries, explicit zeros among them. scipy is loaded only if it already was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, as_ids

MOST_NUMBERED = 50_000_000  # rows or columns that are numbered without being named; more is a damaged shape


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored entries of a matrix of a shape, each cell once."""

    shape: tuple[int, int]
    row: Ints
    column: Ints
    value: npt.NDArray[Any]


def is_sparse(source: Any) -> bool:
    """Whether this is a matrix or array of scipy.sparse."""
    return any(cls.__module__.startswith("scipy.sparse") for cls in type(source).__mro__) and hasattr(source, "tocoo")


def stored(matrix: Any, *, name: str) -> Stored:
    """The stored entries of a scipy.sparse matrix or array; entries stored twice are added, as scipy means them.

    >>> from scipy.sparse import csr_array
    >>> found = stored(csr_array(np.array([[0, 2], [3, 0]])), name="m")
    >>> found.row.tolist(), found.column.tolist(), found.value.tolist()
    ([0, 1], [1, 0], [2, 3])
    """
    if not is_sparse(matrix):
        raise InputError(f"{name}: a {type(matrix).__name__}; expected a scipy.sparse matrix [users x items].")
    if len(matrix.shape) != 2 or np.dtype(matrix.dtype).kind not in "fiub":
        raise InputError(
            f"{name}: a sparse {matrix.dtype} array of shape {matrix.shape}; expected numbers [users x items]."
        )
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    cells = rows.tocoo()
    return Stored(
        (int(rows.shape[0]), int(rows.shape[1])), cells.row.astype(np.int64), cells.col.astype(np.int64), cells.data
    )


def rows_of(entries: Stored, *, users: IdColumn | Ids | None, items: IdColumn | Ids | None, name: str) -> pl.DataFrame:
    """The entries as a table user, item, value; ids name rows and columns in their order, else they are numbered."""
    user, item = (
        named(ids, size, where=f"{name}, {what}")
        for ids, size, what in ((users, entries.shape[0], "users"), (items, entries.shape[1], "items"))
    )
    return pl.DataFrame(
        {
            "user": pl.Series(entries.row) if user is None else user[entries.row],
            "item": pl.Series(entries.column) if item is None else item[entries.column],
            "value": entries.value,
        }
    )


def named(ids: IdColumn | Ids | None, size: int, *, where: str) -> pl.Series | None:
    """The id of each row or column, checked; None if they are numbered from 0."""
    if ids is None:
        if size > MOST_NUMBERED:
            raise InputError(f"{where}: {size:,} rows or columns without ids; expected at most {MOST_NUMBERED:,}.")
        return None
    given = ids.values if isinstance(ids, Ids) else as_ids(ids, where=where)
    if len(given) != size:
        raise InputError(f"{where}: {len(given):,} ids for {size:,} rows or columns; expected one each.")
    repeated = len(given) - given.n_unique()
    if repeated:
        raise InputError(f"{where}: {repeated:,} ids are repeated; expected each id once.")
    return given


def population(ids: IdColumn | Ids | None, size: int, *, where: str) -> Ids:
    """All rows or columns of a matrix, also those without an entry."""
    if isinstance(ids, Ids):
        return ids
    return Ids.places(size) if ids is None else Ids.of(ids, where=where)
