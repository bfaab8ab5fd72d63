"""What benchmarks measure is what they say."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.spent import spent
from benchmarks.stream import measured


def test_a_command_has_its_own_peak_not_that_of_who_started_it() -> None:
    held = np.ones(60_000_000)  # 458 MB
    found = spent([sys.executable, "-c", "x = bytearray(100_000_000)"])
    assert 0.09 < found["peak_gb"] < 0.2
    assert measured(["--version"])["peak_gb"] < 0.1
    assert held.sum() == 60_000_000
