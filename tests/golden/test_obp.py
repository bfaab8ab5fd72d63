"""The Open Bandit Pipeline computes the same quantity: independent inverse propensity scoring on slates."""

from __future__ import annotations

import json

import polars as pl
import pytest
from golden_values import HERE

import truerank as tr
from truerank.estimators.weighted import IPS
from truerank.exposure.policies.targets import ExposureColumn

FOLDER = HERE / "obp"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())["values"]


def value(frame: pl.DataFrame) -> float:
    (found,) = tr.off_policy(frame, {"new": ExposureColumn("target")}, estimators=[IPS()]).estimates
    return found.value


def test_independent_ips_of_slates() -> None:
    frame = pl.read_csv(FOLDER / "slates.csv").rename({"slate": "session"}).with_columns(pl.col("position") + 1)
    assert value(frame) == pytest.approx(EXPECTED["slate independent ips"], abs=1e-9)


def test_ips_of_single_rows() -> None:
    frame = pl.read_csv(FOLDER / "slates.csv").select("item", "reward", "propensity", "target")
    assert value(frame) == pytest.approx(EXPECTED["ipw of rows"], abs=1e-9)
