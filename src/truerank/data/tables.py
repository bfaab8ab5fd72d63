"""A table as it is, beside what its rows are: for commands that write rows of a file under the names they have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.data.batches import LazyTable
from truerank.data.read import column, find_column
from truerank.data.recognise import JUDGED, with_usual


def as_fields(path: Path, columns: Mapping[str, str], *, text: bool) -> tuple[pl.DataFrame, Log]:
    """The table as it is (fields as text if that is wanted), and users, items and times in the order of its rows."""
    rows = LazyTable.of(path, columns=columns)
    mapping = with_usual(rows.columns, columns, [kind for kind in JUDGED if kind in ("user", "item", "time")])
    rows = rows.as_written(mapping)
    table, where = rows.read(), rows.where
    (users, user), (items, item) = (
        Ids.factorise(column(table, key, mapping, where=where, strict=True), where=f"{where}, column {key!r}")
        for key in ("user", "item")
    )
    time = find_column(table, "time", mapping)
    log = Log(users, items, user, item, {}, time=None if time is None else np.asarray(time.to_numpy()), source=where)
    return rows.fields().read() if text else table, log
