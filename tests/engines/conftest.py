"""One Dask cluster and one Spark session for all tests of a process; with CI=true none of them may be missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from truerank.engines.named import as_engine

NEEDED = {"dask": "distributed", "spark": "pyspark"}


def require(name: str) -> None:
    """Skip the test of an engine that is not installed; in CI that is a failure."""
    if find_spec(NEEDED[name]) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is not installed, and CI skips no engine")
        pytest.skip(f"{name} is not installed")


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
