"""Errors that were long, vague or wrong about themselves, as they were found from outside."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from calling import call
from refusals import refused

import truerank as tr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_written_is_read_back_and_described(ending: str, tmp_path: Path) -> None:
    log = tr.read(pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "rating": [5, 2, 4]}), positive=">3")
    path = tmp_path / f"x.{ending}"
    tr.write(log, path)
    for again in (tr.read(path), tr.scan(path).read(tr.scan(path).table.read())):
        assert {name: values.tolist() for name, values in again.rewards.items()} == {
            "label": [1.0, 0.0, 1.0],
            "rating": [5.0, 2.0, 4.0],
        }
    said = call("advise", str(path), seconds=60).fine()
    assert "positives" in said.out


def test_values_beside_labels_that_are_none_are_refused() -> None:
    with refused("values in label and in rating, and those of label are not 0 and 1"):
        tr.read(pl.DataFrame({"user": [1], "item": [1], "label": [3], "rating": [2]}))
    with refused(r"several value columns \(label, rating\)"):
        tr.read(pl.DataFrame({"user": [1], "item": [1], "label": [1], "rating": [2]}), positive=">1")
