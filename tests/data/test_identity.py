"""Digests of inputs and settings: the same in every process, another one for whatever differs."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

import truerank as tr
from truerank.core.errors import InputError
from truerank.data.batches import LazyTable
from truerank.data.identity import described, digest
from truerank.data.survey import scan
from truerank.exposure.kinds import RandomExposure

ROWS = {"user": ["a", "b", "b"], "item": [1, 2, 3], "label": [0.0, 1.0, None]}


def of(value: Any) -> str:
    return digest(value, what="input")


MADE = """
import numpy as np, polars as pl, truerank as tr
from truerank.data.identity import digest
rows = pl.DataFrame({"user": ["a", "b", "b"], "item": [1, 2, 3], "label": [0.0, 1.0, None]})
values = [rows, rows["user"], tr.read(rows.drop_nulls()), tr.scan(rows.drop_nulls()), np.arange(4.0), {"b": {"x", "y"}}]
print([digest(value, what="input") for value in values])
"""


def test_every_process_gives_the_same() -> None:
    found = {
        subprocess.run([sys.executable, "-c", MADE], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(found) == 1
    assert len(set(eval(found.pop()))) == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[::-1],
        lambda rows: rows[:2],
        lambda rows: rows.rename({"label": "rating"}),
        lambda rows: rows.with_columns(pl.col("item").cast(pl.Int32)),
        lambda rows: rows.with_columns(label=pl.lit(0.0)),
        lambda rows: rows.with_columns(pl.col("label").fill_null(math.nan)),
    ],
)
def test_rows_that_differ_in_anything_differ(tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    rows = pl.DataFrame(ROWS)
    assert of(change(rows)) != of(rows) == of(pl.DataFrame(ROWS))
    for name, each in (("a", rows), ("b", change(rows))):
        each.write_parquet(tmp_path / f"{name}.parquet")
    assert of(LazyTable.of(tmp_path / "a.parquet")) != of(LazyTable.of(tmp_path / "b.parquet"))


def test_batches_and_forms_of_rows_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pl.DataFrame(ROWS)
    before = of(rows)
    monkeypatch.setattr("truerank.data.batches.BATCH_ROWS", 1)
    assert of(rows) == of(pl.concat([rows[:1], rows[1:]])) == of(rows.lazy()) == before
    assert of(rows.drop("label").to_arrow()) == of(rows.drop("label"))


def test_files_are_told_by_their_bytes_wherever_they_lie(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        pl.DataFrame(ROWS).write_parquet(tmp_path / name / "rows.parquet")
    one, other = (tmp_path / name / "rows.parquet" for name in ("here", "there"))
    assert of(one) == of(other)
    assert of(scan(one, values=False).table) == of(scan(other, values=False).table)


def test_hive_partitions_are_told_by_their_rows(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / "log" / f"day={day}").mkdir(parents=True)
        pl.DataFrame({"user": [day]}).write_parquet(tmp_path / "log" / f"day={day}" / "a.parquet")
    before = of(LazyTable.of(tmp_path / "log"))
    (tmp_path / "log" / "day=2").rename(tmp_path / "log" / "day=3")
    renamed = of(LazyTable.of(tmp_path / "log"))
    assert renamed != before
    pl.DataFrame({"user": [9]}).write_parquet(tmp_path / "log" / "day=3" / "a.parquet")
    assert of(LazyTable.of(tmp_path / "log")) not in (before, renamed)


def test_arrays_and_values_that_differ_in_anything_differ() -> None:
    one = np.arange(6.0)
    dense = tr.scores.dense(one.reshape(2, 3))
    values = [
        one, one.reshape(2, 3), one.astype(np.float32), one + 1e-16, np.append(one, 0), csr_array(one.reshape(2, 3)),
        dense, tr.scores.dense(one.reshape(2, 3), users=["a", "b"]), "1", 1, 1.0, True, None, (1, 2), [1, 12], [11, 2],
        {"a": 1}, {"a": 2}, RandomExposure(), RandomExposure(rate=0.5),
    ]  # fmt: skip
    assert len({of(value) for value in values}) == len(values)


def test_what_is_described_can_be_read() -> None:
    found = described({"exposure": RandomExposure(), "level": 0.9, "clips": (1.0, math.inf)}, what="x")
    assert found["exposure"].startswith("random ")
    assert (found["level"], found["clips"]) == (0.9, [1.0, "inf"])


@pytest.mark.parametrize("value", [abs, object(), iter(())])
def test_what_cannot_be_told_apart_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="nobody can tell whether"):
        digest([value], what="scores")
