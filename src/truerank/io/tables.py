"""A table as it is, beside what its rows are: for commands that write rows of a file under the names they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.io.batches import LazyTable
from truerank.io.read import column, find_column
from truerank.io.recognise import JUDGED, with_usual
from truerank.io.times import time_array


@dataclass(frozen=True, slots=True)
class PairColumns:
    """The names of the columns of users and items in a table, and of that of times where there is one."""

    user: str
    item: str
    time: str | None
    where: str


def pair_table(
    source: Any, columns: Mapping[str, str] | None = None, *, name: str | None = None, strict: bool = True
) -> tuple[LazyTable, PairColumns]:
    """A table of pairs with ids as they are written, before any row is read; and where its users and items are.

    Unless `strict`, names of columns that a table does not have are those of other tables.
    """
    rows = LazyTable.of(source, columns=columns, name=name)
    kinds = [kind for kind in JUDGED if kind in ("user", "item", "time")]
    mapping = with_usual(rows.columns, dict(columns or {}), kinds)
    rows = rows.as_written(mapping)
    empty, where = pl.DataFrame(schema=dict(rows.schema)), rows.where
    user, item = (column(empty, key, mapping, where=where, strict=strict).name for key in ("user", "item"))
    time = find_column(empty, "time", mapping)
    return rows, PairColumns(user, item, None if time is None else time.name, where)


def as_fields(path: Path, columns: Mapping[str, str], *, text: bool) -> tuple[pl.DataFrame, Log]:
    """The table as it is (fields as text if that is wanted), and users, items and times in the order of its rows."""
    rows, named = pair_table(path, columns)
    table, where = rows.read(), rows.where
    (users, user), (items, item) = (
        Ids.factorise(table[name], where=f"{where}, column {key!r}")
        for key, name in (("user", named.user), ("item", named.item))
    )
    time = None if named.time is None else time_array(table[named.time])
    log = Log(users, items, user, item, {}, time=time, source=where)
    return rows.fields().read() if text else table, log
