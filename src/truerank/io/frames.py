"""Tables in memory as polars frames: pandas, Arrow, LensKit, dicts and lists of rows, and sparse matrices.

Of matrices the stored entries are rows, explicit zeros among them. Nothing here imports what the rows come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, as_ids

MOST_NUMBERED = 50_000_000  # rows or columns that are numbered without being named; more is a damaged shape
MIXED = (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError)  # what polars raises of values of mixed types


def as_frame(source: Any) -> pl.DataFrame:
    """A table in memory as a polars frame."""
    if type(source).__module__.startswith("lenskit"):
        source = _of_lenskit(source)
    if isinstance(source, pl.DataFrame):
        return source
    if is_pandas(source):
        # column by column: needs neither pandas nor pyarrow to be importable here
        indices = [str(name) for name in source.index.names if name is not None]
        names = [*indices, *(str(name) for name in source.columns)]
        repeated = [name for place, name in enumerate(names) if name in names[:place]]
        if repeated:
            raise InputError(f"frame: two columns are called {repeated[0]!r}; expected each name once. Rename one.")
        table = source.reset_index() if indices else source
        return pl.DataFrame({str(name): _from_pandas(table[name], str(name)) for name in table.columns})
    if isinstance(source, Mapping | list):
        return by_user(source) if isinstance(source, Mapping) else by_row(source)
    if is_sparse(source):
        return rows_of(stored(source, name="matrix"), users=None, items=None, name="matrix")
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, pl.Series):
        with suppress(pl.exceptions.PolarsError):  # a single column is no table
            return pl.DataFrame(source)
    raise InputError(
        f"cannot read rows from a {type(source).__name__}; expected a path, a polars, pandas or arrow frame, "
        "a scipy.sparse matrix, a dict of users, {user: [items]} or {user: {item: value}}, or a list of rows, "
        "[(user, item)] or [(user, item, value)]."
    )


def is_pandas(source: Any) -> bool:
    """Whether it is a table of pandas, which need not be importable here."""
    return type(source).__module__.startswith("pandas") and hasattr(source, "columns")


def by_user(source: Mapping[Any, Any], *, value: str = "score") -> pl.DataFrame:
    """Rows of a dict: items of each user, best first where they are a list, with a value where they are a dict.

    A dict of columns is a table as it is.

    >>> by_user({"u": ["b", "a"], "v": ["c"]}).rows()
    [('u', 'b', 1), ('u', 'a', 2), ('v', 'c', 1)]
    >>> by_user({"u": {"b": 0.5}}).to_dicts()
    [{'user': 'u', 'item': 'b', 'score': 0.5}]
    """
    if {"user", "item"} <= {*source}:
        return pl.DataFrame(dict(source))
    rows: list[tuple[Any, ...]] = []
    valued = any(isinstance(items, Mapping) for items in source.values())
    for user, items in source.items():
        if valued != isinstance(items, Mapping) or isinstance(items, str | bytes) or not isinstance(items, Iterable):
            raise InputError(
                f"a dict of users: {user!r} has a {type(items).__name__}; expected the items of each user, as "
                "{user: [items]} or {user: {item: value}}."
            )
        if isinstance(items, Mapping):
            rows += [(user, item, number) for item, number in items.items()]
        else:
            listed = sorted(items, key=str) if isinstance(items, Set) else items
            rows += [(user, item, rank) for rank, item in enumerate(listed, start=1)]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return _columns(dict(zip(("user", "item", value if valued else "rank"), columns, strict=True)), "a dict of users")


def by_row(rows: Sequence[Any]) -> pl.DataFrame:
    """A table of rows: (user, item), (user, item, rating), or named tuples such as Surprise's predictions.

    >>> by_row([("u", "a", 4.0), ("u", "b", 3.0)]).columns
    ['user', 'item', 'rating']
    """
    kinds = {getattr(row, "_fields", len(row)) if isinstance(row, tuple) else None for row in rows}
    kind = kinds.pop() if len(kinds) == 1 else None
    names = kind if isinstance(kind, tuple) else ("user", "item", "rating")[: kind or 0]
    if len(names) < 2 or (isinstance(kind, int) and kind > 3):
        raise InputError(
            "a list of rows: expected (user, item) or (user, item, rating) in every row, or named tuples of one kind."
        )
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    plain = {name: values for name, values in columns.items() if not any(isinstance(x, Mapping) for x in values)}
    return _columns(plain, "a list of rows")


def _columns(columns: Mapping[str, Iterable[Any]], what: str) -> pl.DataFrame:
    try:
        return pl.DataFrame({name: pl.Series(list(values), strict=True) for name, values in columns.items()})
    except MIXED as error:
        raise InputError(f"{what}: ids or values of mixed types. {error}") from None


def _of_lenskit(source: Any) -> Any:
    """The rows of LensKit's lists of items, of a dataset or of a table of interactions, as a table of pandas."""
    if hasattr(source, "to_df"):
        return source.to_df()
    if hasattr(source, "interaction_table"):
        return source.interaction_table(format="pandas", original_ids=True)
    raise InputError(
        f"cannot read rows from LensKit's {type(source).__name__}; expected lists of items or a dataset (a pipeline: "
        "truerank.models.from_lenskit)."
    )


def _from_pandas(series: Any, name: str) -> pl.Series:
    # numbers with nulls become doubles in numpy, which rounds large ones
    with_nulls = hasattr(series.dtype, "numpy_dtype") and bool(series.isna().any())
    array = series.astype(object).to_numpy() if with_nulls else series.to_numpy()
    values = [None if _missing(value) else value for value in array.tolist()] if array.dtype == object else array
    try:
        return pl.Series(values)
    except MIXED:
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise InputError(
            f"frame, column {name!r}: values of several types ({', '.join(kinds)}); expected one. Convert it, such as "
            "with .astype(str)."
        ) from None


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType"


# ------------------------------------------------------------------------------------------------------------ matrices


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
    >>> entries = stored(csr_array(np.array([[0, 2], [3, 0]])), name="m")
    >>> entries.row.tolist(), entries.column.tolist(), entries.value.tolist()
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
    column = ids.values if isinstance(ids, Ids) else as_ids(ids, where=where)
    if len(column) != size:
        raise InputError(f"{where}: {len(column):,} ids for {size:,} rows or columns; expected one each.")
    repeated = len(column) - column.n_unique()
    if repeated:
        raise InputError(f"{where}: {repeated:,} ids are repeated; expected each id once.")
    return column


def population(ids: IdColumn | Ids | None, size: int, *, where: str) -> Ids:
    """All rows or columns of a matrix, also those without an entry."""
    if isinstance(ids, Ids):
        return ids
    return Ids.places(size) if ids is None else Ids.of(ids, where=where)
