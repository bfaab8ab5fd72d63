"""One Dask cluster and one Spark session for all tests of a process; with CI=true none of them may be missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from engines_there import require

from truerank.engines.named import as_engine

# of what is lost in an object store: 8 by default, which takes half a minute; polars asks for it once in a process
os.environ["POLARS_CLOUD_MAX_RETRIES"] = "2"


def opened(name: str) -> Iterator[Any]:
    """What a program would pass: a Client, or a SparkSession."""
    require(name)
    with as_engine(name, threads=2).open() as workers:
        yield workers.client if name == "dask" else workers.session  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def dask() -> Iterator[Any]:
    yield from opened("dask")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    yield from opened("spark")


@pytest.fixture(params=["dask", "spark"])
def engine(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)
