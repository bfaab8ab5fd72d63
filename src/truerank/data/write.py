"""Write a Log under this library's column names, so that it reads back as it is."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from truerank.core.log import Log
from truerank.data.files import write_table


def to_frame(log: Log) -> pl.DataFrame:
    """The rows of a log as a polars frame, ids as they came."""
    columns: dict[str, object] = {"user": log.users.values[log.user], "item": log.items.values[log.item]}
    columns |= log.rewards
    columns |= {
        name: values
        for name in ("propensity", "position", "session", "time", "inclusion")
        if (values := getattr(log, name)) is not None
    }
    frame = pl.DataFrame(columns)
    return frame.with_columns(pl.col("label").cast(pl.Int8)) if "label" in log.rewards else frame


def write(log: Log, path: str | Path) -> None:
    """Write a log to Parquet, CSV or TSV, as the ending says."""
    write_table(to_frame(log), Path(path))
