"""Real data, where it is: skipped with the reason where it is not, except in CI, where that is a failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "data"


def folder_of(name: str) -> Path:
    """The folder of one data set, named by TRUERANK_DATA or beside the project."""
    found = Path(os.environ.get("TRUERANK_DATA", DEFAULT)) / name
    if not found.is_dir():
        message = f"no {name} data: set TRUERANK_DATA to the folder that holds it"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found
