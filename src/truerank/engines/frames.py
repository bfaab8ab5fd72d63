"""Rows handed over to Spark or Dask, for those whose tables live there; through Arrow, from the memory of this machine.

Taking such frames is `data.streams`.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from truerank.core.errors import InputError, extra
from truerank.engines.dask import DaskClient
from truerank.engines.named import as_engine
from truerank.engines.spark import SparkOpened
from truerank.io.streams import is_dask, is_spark


def frame_of(engine: Any, rows: pl.DataFrame) -> Any:
    """Rows as a frame of what a program has open: a Spark DataFrame of a `SparkSession`, a Dask one for a `Client`."""
    chosen = as_engine(engine)
    if isinstance(chosen, SparkOpened):
        return _of_spark(chosen.session, rows)
    if isinstance(chosen, DaskClient):
        return _of_dask(rows, n=max(1, len(chosen.client.scheduler_info()["workers"])))
    raise InputError(f"engine is {chosen}; expected a SparkSession or a Dask Client, which has frames of its own.")


def of_the_kind_of(source: Any, rows: pl.DataFrame) -> Any:
    """Rows in the form in which others came: of a Spark or Dask frame such a frame, of all else a polars frame."""
    if is_spark(source):
        return _of_spark(source.sparkSession, rows)
    return _of_dask(rows, n=source.npartitions) if is_dask(source) else rows


def _of_spark(session: Any, rows: pl.DataFrame) -> Any:
    """Spark has no unsigned numbers."""
    unsigned = pl.selectors.unsigned_integer()
    return session.createDataFrame(rows.with_columns(unsigned.cast(pl.Int64)).to_arrow())


def _of_dask(rows: pl.DataFrame, *, n: int) -> Any:
    try:
        from dask.dataframe import from_pandas
    except ImportError:
        raise InputError(f"frames of Dask need pandas; install it with: pip install {extra('pandas')}.") from None
    return from_pandas(rows.to_pandas(), npartitions=n)
