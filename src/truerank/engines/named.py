"""Engines by their names: `local`, `dask`, `dask:ADDRESS`, `spark`, `spark:URL`, or what a program already has open.

No part of the language of values: addresses are full of its signs, as in `dask:tls://10.0.0.7:8786`.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from truerank.core.errors import InputError, extra
from truerank.engines.dask import Dask
from truerank.engines.engine import CORES, Engine, Local
from truerank.engines.spark import Spark
from truerank.io.paths import check_address
from truerank.io.spill import is_dask, is_spark

FORMS = "local, dask, dask:ADDRESS, spark or spark:URL"


def as_engine(engine: Any, *, threads: int | None = None) -> Engine:
    """The engine: a value, its text, a Dask `Client` or a `SparkSession`; None is this process.

    `threads` is how many chunks are worked on at a time, where the engine is started for it.

    >>> str(as_engine("dask:tls://127.0.0.1:8786")), str(as_engine(None)), str(as_engine("spark:local[2]"))
    ('dask:tls://127.0.0.1:8786', 'local', 'spark:local[2]')
    """
    if engine is None:
        return Local(threads or CORES)
    if isinstance(engine, str):
        return _parsed(engine, threads)
    if isinstance(engine, Local | Dask | Spark):
        return engine
    kind = type(engine)
    if kind.__module__.startswith("distributed") and hasattr(engine, "submit"):
        return Dask(client=engine)
    if kind.__module__.startswith("pyspark.sql") and hasattr(engine, "createDataFrame"):
        return Spark(session=engine)
    raise InputError(f"engine is a {kind.__name__}; expected {FORMS}, a Dask Client or a SparkSession.")


def _parsed(text: str, threads: int | None) -> Engine:
    check_address(text)
    name, colon, address = (part.strip() for part in text.strip().partition(":"))
    if name == Local.name and not colon:
        return Local(threads or CORES)
    if name == Dask.name and bool(address) == bool(colon):
        return Dask(address or None, threads)
    if name == Spark.name and bool(address) == bool(colon):
        return Spark(address or None, threads)
    raise InputError(f"unknown engine {text!r}; expected {FORMS}.")


# -------------------------------------------------------------------------------------------------------------- frames


def frame_of(engine: Any, rows: pl.DataFrame) -> Any:
    """Rows as a frame of what a program has open: a Spark DataFrame of a `SparkSession`, a Dask one for a `Client`."""
    chosen = as_engine(engine)
    if isinstance(chosen, Spark) and chosen.session is not None:
        return _of_spark(chosen.session, rows)
    if isinstance(chosen, Dask) and chosen.client is not None:
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
