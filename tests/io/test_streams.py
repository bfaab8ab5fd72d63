"""Rows that come as a stream and only once: the same results as from a table, in memory or set aside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow
import pytest

import truerank as tr
from truerank.core.errors import InputError
from truerank.evaluation import sources
from truerank.exposure.policies.targets import RankColumn
from truerank.io import partition, streams
from truerank.io.batches import LazyTable
from truerank.io.streams import is_stream

RNG = np.random.default_rng(2)
CELLS = RNG.choice(60 * 20, 500, replace=False)
LABELS = pl.DataFrame({"user": CELLS // 20, "item": CELLS % 20, "label": RNG.integers(0, 2, 500)})
SCORES = {"a": RNG.normal(size=(60, 20))}
LOG = pl.DataFrame(
    {
        "session": np.repeat(np.arange(100), 3), "item": np.tile(np.arange(3), 100),
        "position": np.tile([1, 2, 3], 100), "reward": RNG.integers(0, 2, 300), "new": np.tile([3, 1, 2], 100),
    }
).filter(pl.col("position") <= 1 + pl.col("session") % 3)  # fmt: skip


class Once:
    """An Arrow stream of another library, which can be taken only once."""

    def __init__(self, table: pl.DataFrame, *, size: int = 64) -> None:
        self.batches = table.to_arrow().to_batches(max_chunksize=size)
        self.schema = table.to_arrow().schema
        self.n_taken = 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.n_taken += 1
        assert self.n_taken == 1
        return pyarrow.RecordBatchReader.from_batches(self.schema, self.batches).__arrow_c_stream__(requested_schema)


def as_reader(table: pl.DataFrame) -> Any:
    return pyarrow.RecordBatchReader.from_batches(
        table.to_arrow().schema, table.to_arrow().to_batches(max_chunksize=50)
    )


@pytest.fixture(params=["held", "set aside"])
def _memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if request.param == "set aside":
        monkeypatch.setattr(streams, "HELD", 1000)
        monkeypatch.setattr(streams, "GATHERED", 100)
        for module in (sources, partition):
            monkeypatch.setattr(module, "MEMORY_ROWS", 100)
        monkeypatch.setattr(partition, "CHUNK_ROWS", 80)


@pytest.mark.usefixtures("_memory")
@pytest.mark.parametrize("made", [Once, as_reader])
def test_labels_and_logs(made: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@5"]}
    found = tr.evaluate(SCORES, made(LABELS), **options).estimates[0]
    expected = tr.evaluate(SCORES, LABELS, **options).estimates[0]
    assert (found.value, found.units) == (expected.value, expected.units)
    targets = {"new": RankColumn("new")}
    log = tr.off_policy(made(LOG), targets, position="fit:exp").estimates[0]
    assert log.value == tr.off_policy(LOG, targets, position="fit:exp").estimates[0].value
    assert not list(tmp_path.glob("truerank-*"))  # nothing that was set aside stays


def test_tables_in_memory_are_no_streams() -> None:
    assert not is_stream(LABELS)
    assert not is_stream(LABELS.to_arrow())
    assert not is_stream(LABELS.to_pandas())
    assert is_stream(as_reader(LABELS))


def test_a_stream_whose_columns_change_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "batches_of", lambda _: iter([LABELS, LABELS.with_columns(pl.col("item") * 0.5)]))
    with pytest.raises(InputError, match="types change within the stream"):
        LazyTable.of(as_reader(LABELS))
