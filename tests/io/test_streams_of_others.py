"""Rows as they come out of DuckDB, Ibis, ADBC, Lance, pyarrow and pandas: what the same rows in a Parquet file give.

They are taken batch by batch: a stream that is larger than what stays in memory is never held whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow
import pytest
from refusals import refused

import truerank as tr
from truerank.core.results import Results
from truerank.evaluation import sources
from truerank.exposure.policies.targets import RankColumn
from truerank.io import partition, spill
from truerank.io.batches import LazyTable

N_USERS, N_ITEMS = 60, 20
RNG = np.random.default_rng(7)
ROWS = 50  # of a batch
MEBIBYTES_HELD, MEBIBYTES_STREAMED = 250, 650


def table(n: int, value: str, numbers: Any) -> pl.DataFrame:
    cells = RNG.choice(N_USERS * N_ITEMS, n, replace=False)
    users = pl.Series("user", cells // N_ITEMS).cast(pl.String).str.zfill(3)  # 007 is not 7
    return pl.DataFrame({"user": users, "item": cells % N_ITEMS, value: numbers})


LABELS = table(500, "label", RNG.integers(0, 2, 500))
EXCLUDED = table(80, "label", np.ones(80, dtype=np.int64))
SCORES = table(N_USERS * N_ITEMS, "score", RNG.normal(size=N_USERS * N_ITEMS))
LOG = pl.DataFrame(
    {
        "session": np.repeat(np.arange(100), 3), "item": np.tile(np.arange(3), 100),
        "position": np.tile([1, 2, 3], 100), "reward": RNG.integers(0, 2, 300), "new": np.tile([3, 1, 2], 100),
    }
).filter(pl.col("position") <= 1 + pl.col("session") % 3)  # fmt: skip
TARGET = LOG.select("session", "item", rank="new")

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # what Ibis calls of DuckDB


def relation(rows: pl.DataFrame, place: Path) -> Any:
    """Of DuckDB: a query that has not run."""
    import duckdb

    return duckdb.connect().read_parquet(str(written(rows, place))).filter("true")


def expression(rows: pl.DataFrame, place: Path) -> Any:
    """Of Ibis, on DuckDB."""
    import ibis

    return ibis.duckdb.connect().read_parquet(written(rows, place)).mutate(num_rows=ibis.literal(1))


def database(rows: pl.DataFrame, place: Path) -> Any:
    """What a cursor of ADBC gives, here from SQLite."""
    import adbc_driver_sqlite.dbapi

    connection = adbc_driver_sqlite.dbapi.connect(str(place / "rows.db"), autocommit=True)
    cursor = connection.cursor()
    cursor.adbc_ingest("rows", rows.to_arrow())
    cursor.execute("select * from rows")
    return Held(cursor.fetch_record_batch(), connection, cursor)


def lance(rows: pl.DataFrame, place: Path) -> Any:
    import lance

    return lance.write_dataset(rows.to_arrow(), place / "rows.lance", max_rows_per_group=ROWS)


def dataset(rows: pl.DataFrame, place: Path) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(written(rows, place))


def scanner(rows: pl.DataFrame, place: Path) -> Any:
    return dataset(rows, place).scanner(batch_size=ROWS)


def reader(rows: pl.DataFrame, place: Path) -> Any:
    arrow = rows.to_arrow()
    return pyarrow.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(max_chunksize=ROWS))


def pandas(rows: pl.DataFrame, place: Path) -> Any:
    return rows.to_pandas()


class Held:
    """A stream and what must live as long as it is read; closed afterwards, so that nothing warns."""

    def __init__(self, stream: Any, *closed: Any) -> None:
        self.stream, self.closed = stream, closed

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.stream.__arrow_c_stream__(requested_schema)

    def __del__(self) -> None:
        for each in (self.stream, *reversed(self.closed)):
            each.close()


def written(rows: pl.DataFrame, place: Path) -> Path:
    rows.write_parquet(place / "rows.parquet", row_group_size=ROWS)
    return place / "rows.parquet"


# once loaded, Lance warns whenever its process forks, as other tests do: it is loaded in a process of its own alone
LANCE = "TRUERANK_TEST_LANCE"
MAKERS = [lance] if LANCE in os.environ else [relation, expression, database, dataset, scanner, reader, pandas]


@pytest.fixture(params=MAKERS, ids=lambda made: str(made.__name__))
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[pl.DataFrame], Any]:
    """A function that gives the rows of a table in another library's clothes."""
    count = iter(range(100))

    def make(rows: pl.DataFrame) -> Any:
        place = tmp_path / f"{next(count)}"
        place.mkdir()
        return request.param(rows, place)

    return make


@pytest.fixture(params=["held", "set aside"])
def _memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the usual memory, and as if it held a hundred rows."""
    if request.param == "set aside":
        monkeypatch.setattr(spill, "HELD", 1000)
        for module in (sources, partition):
            monkeypatch.setattr(module, "MEMORY_ROWS", 100)
        monkeypatch.setattr(partition, "CHUNK_ROWS", 80)


def same(found: Results, expected: Results) -> None:
    for one, other in zip(found.estimates, expected.estimates, strict=True):
        assert (one.value, one.units, one.undefined) == (other.value, other.units, other.undefined)
        np.testing.assert_allclose(one.stderr, other.stderr, rtol=1e-12)


@pytest.mark.usefixtures("_memory")
def test_labels_exclusions_and_scores(made: Callable[[pl.DataFrame], Any], tmp_path: Path) -> None:
    options: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@5", "DCG@5"]}
    found = tr.evaluate({"a": made(SCORES)}, made(LABELS), exclude=made(EXCLUDED), **options)
    (tmp_path / "files").mkdir()
    files = {}
    for name, rows in {"labels": LABELS, "exclude": EXCLUDED, "scores": SCORES}.items():
        files[name] = tmp_path / "files" / f"{name}.parquet"
        rows.write_parquet(files[name])
    scores = tr.read_scores(files["scores"])
    same(found, tr.evaluate({"a": scores}, files["labels"], exclude=files["exclude"], **options))
    assert found.estimates[0].value > 0


@pytest.mark.usefixtures("_memory")
def test_a_log_and_a_target(made: Callable[[pl.DataFrame], Any], tmp_path: Path) -> None:
    """A fitted position model passes over the rows several times, and a stream comes only once."""
    LOG.write_parquet(tmp_path / "log.parquet")
    TARGET.write_parquet(tmp_path / "target.parquet")
    columns = {"column": RankColumn("new")}
    found = tr.off_policy(made(LOG), {"table": made(TARGET), **columns}, position="fit:exp")
    expected = tr.off_policy(
        tmp_path / "log.parquet", {"table": tmp_path / "target.parquet", **columns}, position="fit:exp"
    )
    same(found, expected)


@pytest.mark.skipif(LANCE in os.environ, reason="this is that process")
def test_lance_in_a_process_of_its_own() -> None:
    words = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__, "-k", "lance and (labels or log)"]
    done = subprocess.run(
        [sys.executable, *words], env={**os.environ, LANCE: "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "4 passed" in done.stdout


# ------------------------------------------------------------------------------------------------------- batch by batch

SCRIPT = """
    import re, sys
    import numpy as np, polars as pl, pyarrow
    from pathlib import Path
    from truerank.io.batches import LazyTable

    N, SCHEMA = 40_000_000, {"user": pyarrow.int64(), "item": pyarrow.int64(), "label": pyarrow.int8()}

    def peak():
        return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

    def batches(step=100_000):
        for start in range(0, N, step):
            row = np.arange(start, start + step)
            columns = [row // 40, row * 7 % 5000, (row % 10 == 0).astype(np.int8)]
            yield pyarrow.record_batch(columns, schema=pyarrow.schema(SCHEMA))

    def reader():
        return pyarrow.RecordBatchReader.from_batches(pyarrow.schema(SCHEMA), batches())

    def relation():
        import duckdb
        opened = duckdb.connect(config={"memory_limit": "200MB", "threads": 2})
        opened.execute("set enable_progress_bar = false")
        columns = "i // 40 as user, i * 7 % 5000 as item, (i % 10 = 0)::TINYINT as label"
        return opened.sql(f"select {columns} from range({N}) rows(i)")

    stream = {"reader": reader, "relation": relation}[sys.argv[1]]()
    before = peak()
    table = LazyTable.of(stream)
    print(table.n_rows, N * 17 / 2**20, peak() - before)
"""


@pytest.mark.faults
@pytest.mark.parametrize("name", ["reader", "relation"])
def test_a_stream_larger_than_memory_is_never_held_whole(name: str) -> None:
    """680 MB of rows: what the process has at most, as the system counts it, is a small part of them."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), name], capture_output=True, text=True, timeout=180, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    n_rows, streamed, held = map(float, ran.stdout.split())
    assert n_rows == 40_000_000
    assert streamed > MEBIBYTES_STREAMED - 10
    assert held < MEBIBYTES_HELD


# ------------------------------------------------------------------------------------------------------ what goes wrong


def broken(error: BaseException) -> Any:
    def batches() -> Iterator[Any]:
        yield from LABELS.to_arrow().to_batches(max_chunksize=100)[:3]
        raise error

    return pyarrow.RecordBatchReader.from_batches(LABELS.to_arrow().schema, batches())


def test_a_stream_that_breaks_off_is_told_in_one_sentence() -> None:
    said = (
        r"^labels: the stream broke off after 300 rows \(the disk is gone\)\. Nothing was evaluated; open it again\.$"
    )
    with refused(said):
        tr.evaluate({"a": SCORES}, broken(ValueError("the disk is gone.\nTraceback and so on")), exposure="random")
    with refused(r"^log: the stream broke off after 300 rows \(OSError\)"):
        tr.off_policy(broken(OSError()), {"new": RankColumn("new")}, position="exp:0.8")


def test_a_reader_that_was_read_before_is_refused(tmp_path: Path) -> None:
    """It would stand for no rows: nothing would be excluded, and nobody would know."""
    used = reader(EXCLUDED, tmp_path)
    assert LazyTable.of(used).n_rows == len(EXCLUDED)
    with refused(r"^exclude: a reader without rows; one that was read before has none left"):
        tr.evaluate({"a": SCORES}, LABELS, exposure="random", exclude=used)
