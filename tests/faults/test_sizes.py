"""What cannot fit or finish is refused before it begins, with what it would need; what fits is not refused."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.cli import main
from truerank.cli.commands import cli
from truerank.core import sizes
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.terms import ratio
from truerank.evaluation.compare import check_pairs
from truerank.evaluation.compatibility import LabelQuestion
from truerank.inference.intervals import Bootstrap
from truerank.io.batches import LazyTable
from truerank.io.read import read
from truerank.models import matrix
from truerank.models.least_squares import EASE
from truerank.simulation import dataset
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank.simulation.feed import FeedSettings
from truerank.simulation.feed_truth import check_feed


def _log(n_items: int = 3) -> Log:
    frame = pl.DataFrame({"user": [0, 0, 1], "item": [0, 1, 2]})
    return read(frame, items=Ids.of(np.arange(n_items)))


def _refused(call: Callable[[], Any], *words: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    said = str(refusal.value)
    assert "\n" not in said
    for word in words:
        assert word in said


# ------------------------------------------------------------------------------------------------------- the estimate


@pytest.fixture(autouse=True)
def looked_up_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is changes within a second here."""
    monkeypatch.setattr(sizes, "_available", sizes._available.__wrapped__)


def test_the_least_of_machine_container_and_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    (groups / "outer" / "inner").mkdir(parents=True)
    monkeypatch.setattr(sizes, "PROC", proc)
    monkeypatch.setattr(sizes, "CGROUPS", groups)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    (proc / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable: 8 kB\nSwapFree: 1 kB\n")
    (proc / "self" / "cgroup").write_text("3:cpu:/\n0::/outer/inner\n")
    assert sizes.available_memory() == 9 * 1024
    (groups / "outer" / "memory.max").write_text("5000\n")
    (groups / "outer" / "memory.current").write_text("2000\n")
    (groups / "outer" / "memory.stat").write_text("anon 1500\ninactive_file 500\n")
    (groups / "outer" / "inner" / "memory.max").write_text("max\n")  # no limit of its own
    assert sizes.available_memory() == 3500
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3000, 3000))
    (proc / "self" / "statm").write_text("0 0 0 0\n")
    assert sizes.available_memory() == 3000


def test_an_older_container_counts_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "PROC", tmp_path)
    monkeypatch.setattr(sizes, "CGROUPS", tmp_path)
    (tmp_path / "self").mkdir()
    (tmp_path / "memory" / "box").mkdir(parents=True)
    (tmp_path / "self" / "cgroup").write_text("4:memory:/box\n")
    (tmp_path / "memory" / "box" / "memory.limit_in_bytes").write_text("700\n")
    (tmp_path / "memory" / "box" / "memory.usage_in_bytes").write_text("300\n")
    (tmp_path / "memory" / "box" / "memory.stat").write_text("total_inactive_file 50\n")
    assert sizes.available_memory() == 450


# --------------------------------------------------------------------------------------------- what is refused, and not

FEED = FeedSettings(sessions=10**4, kinds=2, items=50, pool=20, candidates=10, length=5, days=1)
BORDERS: dict[str, tuple[Callable[[], Any], float]] = {
    "world": (
        lambda: simulate_dataset(DatasetSettings(users=40, items=30, shown=5, judged=5), seed=0),
        dataset.CELL_BYTES * 1200 + 8 * 8 * 70,
    ),
    "feed": (
        lambda: check_feed(FEED),
        16.0 * 2 * 50 + 8 * len(FEED.policies) * 2 * 20 * 5 + 8 * 2 * len(FEED.surfaces) * 25 + 8 * 10**4 * 20,
    ),
    "ease": (lambda: EASE().fit(_log(), seed=0), 17.0 * 9),
    "factors": (lambda: matrix.check_factors("als", _log(), 10), 4.0 * 10 * 5),
    "bootstrap": (lambda: Bootstrap(100).spreads({"a": ratio(np.ones(4), np.ones(4))}, [], level=0.9), 800.0),
    "pairs": (lambda: _check_pairs(4), 800.0 * 6),
    "ids": (lambda: tr.scores.dense(np.zeros((0, 5))), 16.0 * 5),
}


def _check_pairs(n_models: int, baseline: str | None = None) -> None:
    check_pairs(LabelQuestion(exposure="full", baseline=baseline), [str(number) for number in range(n_models)], 1)


@pytest.mark.parametrize("name", BORDERS)
def test_what_just_fits_is_not_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, needed = BORDERS[name]
    monkeypatch.setattr(sizes, "available_memory", lambda: needed)
    call()
    monkeypatch.setattr(sizes, "available_memory", lambda: needed - 1)
    _refused(call, "needs at least", "memory")


def test_an_estimate_is_no_more_than_what_is_taken() -> None:
    """A world's arrays are measured: the estimate must lie below them, so that nothing that fits is refused."""
    import tracemalloc

    simulate_dataset(DatasetSettings(users=20, items=200), seed=0)  # what is loaded once is no part of it
    tracemalloc.start()
    simulate_dataset(DatasetSettings(users=400, items=500), seed=0)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 * taken < dataset.CELL_BYTES * 400 * 500 < taken


# ------------------------------------------------------------------------------------------------------- command line


def test_memory_that_ends_on_the_way_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends(**_: Any) -> None:
        raise MemoryError("Unable to allocate 1. TiB for an array")

    monkeypatch.setattr(cli, "main", ends)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "not enough memory (Unable to allocate 1. TiB for an array)" in said
    assert "internal error" not in said


def test_packed_text_that_unpacks_to_more_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of 200 MB in a file of 200 kB: refused as soon as what was unpacked no longer fits."""
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb") as stream:
        stream.write(b"user,item,label\n")
        for _ in range(200):
            stream.write(b"1,2,3\n" * 166_667)
    monkeypatch.setattr(sizes, "available_memory", lambda: 50e6)
    _refused(lambda: tr.read(path), "bomb.csv.gz, unpacked, needs at least")


@pytest.mark.parametrize(("quote", "sign", "what"), [("", "x", "line"), ('"', "\n", "field")])
def test_a_field_of_3_gigabytes_is_refused_at_once(tmp_path: Path, quote: str, sign: str, what: str) -> None:
    """3 MB of packed text that would take minutes to read, although they fit into memory."""
    path, member = tmp_path / "bomb.csv.gz", gzip.compress(sign.encode() * 2**24, compresslevel=9)
    with path.open("wb") as stream:
        stream.write(gzip.compress(f"user,item,label\n1,{quote}".encode()))
        for _ in range(180):
            stream.write(member)
    assert path.stat().st_size < 4e6
    started = time.process_time()
    _refused(lambda: tr.read(path), f"bomb.csv.gz: a {what} of more than 17 MB")
    assert time.process_time() - started < 5


def test_text_that_a_parquet_file_unpacks_to_more_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids of a megabyte each pack to next to nothing, and the file declares how large they are."""
    path = tmp_path / "bomb.parquet"
    users = [f"{number}{'x' * 10**6}" for number in range(80)]
    pl.DataFrame({"user": users, "item": 1, "label": 1}).write_parquet(path, compression="zstd")
    assert path.stat().st_size < 10**5
    monkeypatch.setattr(sizes, "available_memory", lambda: 50e6)
    _refused(lambda: tr.read(path), "bomb.parquet", "needs at least 80 MB")
    assert max(len(batch) for batch in LazyTable.of(path).batches(["user"])) < 80


def test_a_user_with_more_rows_than_memory_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are of whole users: that of this one is the whole file, whatever streams."""
    path = tmp_path / "bomb.parquet"
    pl.select(user=pl.repeat(1, 10**7), item=pl.repeat(2, 10**7), label=pl.repeat(1, 10**7)).write_parquet(path)
    monkeypatch.setattr(sizes, "available_memory", lambda: 300e6)  # the columns alone would fit
    scores = tr.scores.dense([[1.0, 2.0]], users=[1], items=[1, 2])
    evaluate = partial(tr.evaluate, {"m": scores}, tr.scan(path), exposure="random", metrics=["Precision@1"])
    _refused(evaluate, "bomb.parquet", "10,000,000 rows with one user")


WIDE = """
import re, sys
from pathlib import Path
import truerank as tr
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
tr.read("narrow.csv")
before = peak()
print(len(tr.read("wide.csv")), peak() - before)
"""


def test_a_csv_of_2000_columns_takes_no_more_than_its_rows(tmp_path: Path) -> None:
    """20 MB of text, once 4.9 GB."""
    columns = ",".join(f"c{number}" for number in range(2000))
    rows = "".join(f"{row % 50},{row},{row % 2}{',7.25' * 2000}\n" for row in range(2000))
    (tmp_path / "wide.csv").write_text(f"user,item,label,{columns}\n{rows}")
    (tmp_path / "narrow.csv").write_text("user,item,label\n1,1,1\n")
    path = os.pathsep.join(each for each in sys.path if each)
    ended = subprocess.run(
        [sys.executable, "-c", WIDE], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    n_rows, megabytes = ended.stdout.split()
    assert n_rows == "2000"
    assert float(megabytes) < 600
