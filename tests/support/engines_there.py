"""Whether an engine is installed: with CI=true none may be missing."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

NEEDED = {"dask": "distributed", "spark": "pyspark"}


def require(name: str) -> None:
    """Skip the test of an engine that is not installed; in CI that is a failure."""
    if find_spec(NEEDED[name]) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is not installed, and CI skips no engine")
        pytest.skip(f"{name} is not installed")
