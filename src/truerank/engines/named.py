"""Engines by their names: `local`, `dask`, `dask:ADDRESS`, `spark`, `spark:URL`, or what a program already has open.

No part of the language of values: addresses are full of its signs, as in `dask:tls://10.0.0.7:8786`.
"""

from __future__ import annotations

from typing import Any

from truerank.core.errors import InputError
from truerank.engines.dask import Dask, DaskClient
from truerank.engines.engine import Engine
from truerank.engines.local import Local
from truerank.engines.spark import Spark, SparkOpened
from truerank.io.paths import check_address

FORMS = "local, dask, dask:ADDRESS, spark or spark:URL"


def as_engine(given: Any, *, threads: int | None = None) -> Engine:
    """The engine that was given: a value, its text, a Dask `Client` or a `SparkSession`; None is this process.

    `threads` is how many chunks are worked on at a time, where the engine is started for it.

    >>> str(as_engine("dask:tls://127.0.0.1:8786")), str(as_engine(None)), str(as_engine("spark:local[2]"))
    ('dask:tls://127.0.0.1:8786', 'local', 'spark:local[2]')
    """
    if given is None:
        return Local(threads)
    if isinstance(given, str):
        return _parsed(given, threads)
    if isinstance(given, Local | Dask | DaskClient | Spark | SparkOpened):
        return given
    kind = type(given)
    if kind.__module__.startswith("distributed") and hasattr(given, "submit"):
        return DaskClient(given)
    if kind.__module__.startswith("pyspark.sql") and hasattr(given, "createDataFrame"):
        return SparkOpened(given)
    raise InputError(f"engine is a {kind.__name__}; expected {FORMS}, a Dask Client or a SparkSession.")


def _parsed(text: str, threads: int | None) -> Engine:
    check_address(text)
    name, colon, address = (part.strip() for part in text.strip().partition(":"))
    if name == Local.name and not colon:
        return Local(threads)
    if name == Dask.name and bool(address) == bool(colon):
        return Dask(address or None, threads)
    if name == Spark.name and bool(address) == bool(colon):
        return Spark(address or None, threads)
    raise InputError(f"unknown engine {text!r}; expected {FORMS}.")
