"""Where real data is, and what happens to a test where it is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def real_folder(name: str) -> Path:
    """A folder of the real data; without it the test is skipped, or fails on a machine that must have it."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("TRUERANK_DATA", default)) / name
    if not folder.is_dir():
        reason = f"no {folder}: set TRUERANK_DATA to the folder of real data"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
