"""Feature tables as 0/1 matrices: every value of a column is one feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids

QUARTILES = (0.25, 0.5, 0.75)


def indicators(table: pl.DataFrame | None, ids: Ids, *, kind: str) -> Any:
    """Ids x features, 1 where an id has a feature: itself, and one for each value of each column of the table.

    Text, whole numbers and true/false are categories; of a list every member is one; decimal numbers are cut at their
    quartiles into four. An empty cell is no feature; ids without a row have themselves alone; rows of other ids are
    left out. Each id has at most one row.

    >>> table = pl.DataFrame({"item": ["a", "b"], "genre": [["x", "y"], ["y"]]})
    >>> indicators(table, Ids.of(["a", "b"]), kind="item").toarray().tolist()
    [[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
    """
    n = len(ids)
    rows, columns, width = [np.arange(n)], [np.arange(n)], n
    for row, value, size in [] if table is None else _columns(table, ids, kind=kind):
        rows.append(row)
        columns.append(width + value)
        width += size
    row, column = np.concatenate(rows), np.concatenate(columns)
    return csr_matrix((np.ones(len(row), dtype=np.float32), (row, column)), shape=(n, width))


def _columns(table: pl.DataFrame, ids: Ids, *, kind: str) -> list[tuple[Ints, Ints, int]]:
    """Of each feature column: row, number of the value, how many values there are."""
    if kind not in table.columns:
        raise InputError(f"{kind} features: no column {kind!r}; found {', '.join(table.columns) or 'no columns'}.")
    if len(table.columns) == 1:
        raise InputError(f"{kind} features: only the column {kind!r}; expected features beside it.")
    index = ids.locate(table[kind], where=f"{kind} features, column {kind!r}")
    known = np.flatnonzero(index >= 0)
    if len(known) == 0:
        raise InputError(f"{kind} features: none of the {kind}s is one of the log; expected some in common.")
    if len(np.unique(index[known])) < len(known):
        raise InputError(f"{kind} features: some {kind}s have several rows; expected one row for each.")
    kept = table[known]
    return [
        _column(pl.DataFrame({"at": index[known], "value": kept[name]}), where=f"{kind} features, column {name!r}")
        for name in table.columns
        if name != kind
    ]


def _column(pairs: pl.DataFrame, *, where: str) -> tuple[Ints, Ints, int]:
    kind = pairs["value"].dtype
    if isinstance(kind, pl.List | pl.Array):
        if isinstance(kind.inner, pl.List | pl.Array):
            raise InputError(f"{where}: {kind}; expected text, numbers, true/false or flat lists of these. Flatten it.")
        pairs = pairs.explode("value").unique(maintain_order=True)
    pairs = pairs.drop_nulls()
    if pairs["value"].dtype.is_float():
        value = pairs["value"].to_numpy()
        bins = np.searchsorted(_cuts(value), value, side="left") if len(value) else np.zeros(0, dtype=np.int64)
        pairs = pairs.with_columns(pl.Series("value", bins))
    try:
        text = pairs["value"].cast(pl.String)
    except pl.exceptions.PolarsError:
        raise InputError(
            f"{where}: {kind} whose values are no text, as bytes that are not UTF-8; expected text, numbers, "
            "true/false or flat lists of these. Write them as text."
        ) from None
    distinct, place = np.unique(text.to_numpy().astype(str), return_inverse=True)
    return pairs["at"].to_numpy().astype(np.int64), place.astype(np.int64), len(distinct)


def _cuts(value: Floats) -> Floats:
    if not np.isfinite(value).all():
        raise InputError("features: a number is NaN or infinite; expected finite numbers or empty cells.")
    return np.unique(np.quantile(value, QUARTILES))
