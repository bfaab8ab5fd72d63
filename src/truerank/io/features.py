"""Features of users or items: a table with an id column becomes a matrix of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids, as_ids, first_true
from truerank.core.record import record
from truerank.core.validation import checked_arguments
from truerank.io.columns import finite_numbers, table_columns

MOST_VALUES = 100  # a text column with more distinct values is an id or free text, not a feature


@record
class Features:
    """One row of numbers for each of `ids`."""

    ids: Ids
    value: Floats  # [ids x columns]
    names: tuple[str, ...]
    source: str = "features"

    def rows_of(self, ids: Ids, *, used: Ints) -> Ints:
        """The row of each of these ids, -1 for none; an id at a `used` position without one is refused."""
        row = self.ids.locate(ids, where=f"{self.source} against the ids of the log")
        missing = used[row[used] < 0]
        if len(missing):
            raise InputError(
                f"{self.source}: no features for {len(missing):,} of {len(used):,} ids of the log, such as "
                f"{some(ids.texts(missing[:3]))}. Give every user and item a row of features."
            )
        return row


@checked_arguments()
def read_features(source: Any, *, kind: str, columns: Mapping[str, str] | None = None, every: bool = False) -> Features:
    """Features from a file or a frame with a column `user` or `item` (the `kind`) and one row for each.

    Numbers and true/false stay as they are; a text column becomes one column of 0 and 1 for each of its values but
    the first, which follows from the others; or for `every` one, so that any two texts are equally far apart.

    >>> found = read_features(pl.DataFrame({"item": [2, 1], "price": [5, 3], "colour": ["red", "blue"]}), kind="item")
    >>> found.names, found.value.tolist()
    (('price', 'colour=red'), [[3.0, 0.0], [5.0, 1.0]])
    """
    rows = table_columns(source, columns, (kind,))
    table, where, ids_column = rows.table, rows.where, rows.get(kind)
    ids, row = Ids.factorise(as_ids(ids_column, where=f"{where}, column {ids_column.name!r}"))
    if len(ids) < len(table):
        twice = ids.texts(np.flatnonzero(np.bincount(row) > 1)[:1])[0]
        raise InputError(f"{where}: {kind} {twice} has several rows; expected one row of features for each {kind}.")
    parts: dict[str, Floats] = {}
    for values in table.drop(ids_column.name).iter_columns():
        parts |= _numbers(values, every=every, where=f"{where}, column {values.name!r}")
    if not parts:
        raise InputError(f"{where}: no features; expected columns beside {ids_column.name!r}.")
    value = np.empty((len(ids), len(parts)))
    value[row] = np.column_stack(list(parts.values()))
    return Features(ids, frozen(value), tuple(parts), where)


def _numbers(values: pl.Series, *, every: bool, where: str) -> dict[str, Floats]:
    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        return {values.name: finite_numbers(values, where=where).to_numpy()}
    text = values.cast(pl.String)
    row = first_true(text.is_null())
    if row is not None:
        raise InputError(f"{where}: row {row + 1} is empty; expected a value in every row. Fill or drop the column.")
    kinds = sorted(text.unique().to_list())
    if len(kinds) > MOST_VALUES:
        raise InputError(
            f"{where}: {len(kinds):,} different texts; expected numbers or at most {MOST_VALUES} texts. Drop it."
        )
    return {
        f"{values.name}={kind}": (text == kind).to_numpy().astype(np.float64) for kind in kinds[0 if every else 1 :]
    }
