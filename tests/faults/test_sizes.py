"""What cannot fit or finish is refused before it begins, with what it would need; what fits is not refused."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import truerank as tr
from truerank.cli import main
from truerank.cli.commands import cli
from truerank.core import sizes
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.terms import ratio
from truerank.evaluation.compare import check_pairs
from truerank.evaluation.question import Question
from truerank.inference.intervals import Bootstrap
from truerank.io.read import read
from truerank.models import matrix
from truerank.models.ease import EASE
from truerank.models.ials import IALS
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


def test_available_memory_is_a_number_of_bytes() -> None:
    assert 2**20 < sizes.available_memory() < 2**60


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
    "ease": (lambda: EASE().fit(_log(), seed=0), 12.0 * 9),
    "factors": (lambda: matrix.check_factors("als", _log(), 10), 4.0 * 10 * 5),
    "bootstrap": (lambda: Bootstrap(100).spreads({"a": ratio(np.ones(4), np.ones(4))}, [], level=0.9), 800.0),
    "pairs": (lambda: _check_pairs(4), 800.0 * 6),
    "ids": (lambda: tr.scores.dense(np.zeros((0, 5))), 16.0 * 5),
}


def _check_pairs(n_models: int, baseline: str | None = None) -> None:
    check_pairs(Question(baseline=baseline), [str(number) for number in range(n_models)], 1)


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


HUGE: dict[str, Callable[[], Any]] = {
    "a dense model of a million items": lambda: EASE().fit(_log(10**6), seed=0),
    "factors": lambda: IALS(factors=10**12).fit(_log(), seed=0),
    "equations of factors": lambda: IALS(factors=10**8).fit(_log(), seed=0),
    "a matrix without users": lambda: tr.scores.dense(np.zeros((0, 10**18), dtype=np.float32)),
    "a matrix without items": lambda: tr.scores.dense(np.zeros((10**18, 0), dtype=np.float32)),
    "a world": lambda: simulate_dataset(DatasetSettings(users=10**7, items=10**7), seed=0),
    "sessions": lambda: check_feed(FeedSettings(sessions=10**13)),
    "all pairs of a million models": lambda: _check_pairs(10**6),
}


@pytest.mark.parametrize("what", HUGE)
def test_what_cannot_fit_is_refused_at_once(what: str) -> None:
    _refused(HUGE[what], "needs at least", "are available")


def test_a_million_models_with_a_baseline_are_no_pairs() -> None:
    _check_pairs(10**6, baseline="0")


# ------------------------------------------------------------------------------------------------------- command line


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sizes")
    rng = np.random.default_rng(0)
    user, item = np.divmod(np.arange(200), 10)
    pl.DataFrame({"user": user, "item": item, "label": rng.integers(0, 2, 200)}).write_parquet(folder / "l.parquet")
    for name in "ab":
        np.savez(folder / f"{name}.npz", scores=rng.random((20, 10)), users=np.arange(20), items=np.arange(10))
    np.savez(folder / "wide.npz", scores=np.zeros((0, 10**18), dtype=np.float32))
    return folder


CALLS: dict[str, tuple[str, ...]] = {
    "simulate world --n-users 10000000 --n-items 10000000 --out new": ("a world of 10,000,000 users", "8 PB"),
    "simulate feed --n-sessions 100000000000 --out new": ("a feed of 100,000,000,000 sessions",),
    "train ials l.parquet --set factors=100000000 --out new.npz": ("100,000,000 factors", "Take fewer factors."),
    "evaluate l.parquet --scores a=wide.npz": ("1,000,000,000,000,000,000 ids", "16 EB"),
    "evaluate l.parquet --scores a=a.npz --bootstrap 1000000000": ("expected 2 to 1,000,000",),
    "study reliability l.parquet --scores a=a.npz --scores b=b.npz --repetitions 1000000000 --out new": (
        "a study of 1,000,000,000 repetitions",
    ),
    "study reliability l.parquet --scores a=a.npz --scores b=b.npz --bootstrap 1000000000 --out new": (
        "expected 2 to 1,000,000",
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_commands_refuse_what_cannot_be_and_leave_nothing(
    call: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    found = CliRunner().invoke(cli, call.split())
    assert isinstance(found.exception, InputError)
    for words in CALLS[call]:
        assert words in str(found.exception)
    assert sorted(files.iterdir()) == before


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


def test_a_limit_of_the_process_is_seen(tmp_path: Path) -> None:
    """Under `ulimit -v` a world that the machine could hold is refused, and exit code and sentence say so."""
    call = [sys.executable, "-P", "-m", "truerank", "simulate", "world", "--n-users", "50000", "--n-items", "2000"]
    limit = 6 * 2**30

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    path = os.pathsep.join(each for each in sys.path if each)
    ended = subprocess.run(
        [*call, "--out", str(tmp_path / "w")], preexec_fn=limited, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    assert "needs at least 8" in ended.stderr
    assert not (tmp_path / "w").exists()
