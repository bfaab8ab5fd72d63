"""Runs that are kept: stopped at any moment and gone on with, on whatever engine, they give the same bits."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import psutil
import pytest
from calling import call
from engine_cases import AT_ONCE, LATER, TARGETS, answered, earned, feed, in_files, lists, same

import truerank as tr
from truerank.core.errors import InputError, TruerankError
from truerank.core.results import Results
from truerank.data import partition, whole
from truerank.data.growing import Blocks
from truerank.data.survey import scan
from truerank.engines.engine import Values, map_chunks
from truerank.engines.keeping import Keeping, keeping
from truerank.engines.local import Local
from truerank.evaluation import judged_source, ranked_source
from truerank.ranks.scores.files import write_scores
from truerank.ranks.scores.scores import factors
from truerank.report import document

N_USERS, N_ITEMS = 200, 40


def bits(results: Results) -> bytes:
    """Everything that is said."""
    return document.encode(results)


def kept_notes(results: Results) -> list[str]:
    return [message.text for message in results.messages if message.code == "kept"]


def half_lost(folder: Path) -> int:
    """Every second chunk of every pass is gone; gives how many there were."""
    blocks = sorted(folder.glob("*.block"))
    for block in blocks[1::2]:
        block.unlink()
    return len(blocks)


def gone_on(asked: Callable[..., Results], folder: Path) -> Results:
    """A run of which half was lost; the same bits as one that was not stopped, and nearly those of one not kept."""
    undisturbed = asked(keep=folder)
    assert half_lost(folder) > 4
    again = asked(keep=folder)
    assert bits(again) == bits(undisturbed)
    assert not kept_notes(again)  # nothing was there that cannot be kept
    same(again, asked())
    return again


@pytest.fixture
def few_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six chunks of data in memory."""
    monkeypatch.setattr(Keeping, "threads", 3)


@pytest.mark.usefixtures("few_chunks")
@pytest.mark.parametrize(
    "number", [*AT_ONCE, LATER[0], *(pytest.param(number, marks=pytest.mark.slow) for number in LATER[1:])]
)
def test_every_estimator_goes_on(tmp_path: Path, number: int) -> None:
    gone_on(lambda **keep: answered(number, None, **keep), tmp_path / "kept")


@pytest.mark.usefixtures("few_chunks")
@pytest.mark.parametrize("position", ["exp:0.8", "fit:exp"])
def test_every_estimator_of_ranked_logs_goes_on(tmp_path: Path, position: str) -> None:
    log = feed()
    gone_on(lambda **keep: earned(log, None, position=position, **keep), tmp_path / "kept")


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if memory held a hundred rows."""
    for module in (judged_source, ranked_source, partition):
        monkeypatch.setattr(module, "MEMORY_ROWS", 100)
    monkeypatch.setattr(partition, "CHUNK_ROWS", 80)


@pytest.mark.usefixtures("streamed")
def test_a_log_in_files_goes_on(tmp_path: Path) -> None:
    frame = feed(60, heavy=40)
    log, table = in_files(frame, tmp_path / "log"), in_files(lists(frame), tmp_path / "table")
    options: dict[str, Any] = {"position": "fit:exp", "seed": 1, "threads": 1}
    gone_on(lambda **keep: tr.off_policy(log, {"table": table, **TARGETS}, **options, **keep), tmp_path / "kept")


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("sort", [False, True])
def test_labels_in_files_go_on(tmp_path: Path, sort: bool) -> None:
    frame = labels().sort("user") if sort else labels()
    rows = in_files(frame, tmp_path / "labels") if not sort else tmp_path / "labels.parquet"
    if sort:
        frame.write_parquet(rows)
    train = in_files(labels().select("user", item=(pl.col("item") + 7) % N_ITEMS), tmp_path / "train")
    options: dict[str, Any] = {
        "exposure": "random",
        "metrics": ["Recall@5", "DCG@5"],
        "exclude": scan(train, values=False),
    }
    gone_on(lambda **keep: tr.evaluate(scores(), scan(rows), **options, **keep), tmp_path / "kept")


# ----------------------------------------------------------------------------------------------------------- stopped


@cache
def scores() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {name: rng.normal(size=(N_USERS, N_ITEMS)) for name in ("a", "b")}


@cache
def labels() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    cells = rng.choice(N_USERS * N_ITEMS, 2500, replace=False)
    return pl.DataFrame({"user": cells // N_ITEMS, "item": cells % N_ITEMS, "label": rng.integers(0, 2, len(cells))})


def evaluated(**options: Any) -> Results:
    return tr.evaluate(scores(), labels(), exposure="random", metrics=["Recall@5", "DCG@5"], **options)


DONE = 4  # chunks until a run is stopped


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """A run is stopped when so many chunks are kept."""
    write = Blocks.write

    def stops(blocks: Blocks, table: pl.DataFrame, path: Path) -> None:
        write(blocks, table, path)
        if len(list(path.parent.glob("*.block"))) == DONE:
            stop()

    Blocks.write = stops  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Blocks.write = write  # type: ignore[method-assign]


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("few_chunks")
def test_begun_on_an_engine_it_goes_on_here_and_there(tmp_path: Path, engine: Any) -> None:
    undisturbed = evaluated(keep=tmp_path / "whole")
    for first, second in ((engine, None), (None, engine)):
        kept = tmp_path / f"{first is None}"
        with stopping(interrupted), pytest.raises(KeyboardInterrupt):
            evaluated(keep=kept, engine=first)
        done = {path: path.stat().st_ino for path in kept.glob("*.block")}
        assert len(done) == DONE
        assert bits(evaluated(keep=kept, engine=second)) == bits(undisturbed)
        assert {path: path.stat().st_ino for path in done} == done  # none of them was made again


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent / "support")]
import psutil
import test_kept

def kill():
    Path(sys.argv[3]).write_text(" ".join(str(each.pid) for each in psutil.Process().children(recursive=True)))
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    with test_kept.stopping(kill):
        test_kept.evaluated(keep=sys.argv[2], engine=sys.argv[4], threads=2)
"""


@pytest.mark.parametrize("name", ["local", "dask"])
def test_killed_in_the_middle_it_goes_on(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    engine = request.getfixturevalue(name) if name == "dask" else name
    script, kept, left = tmp_path / "killed.py", tmp_path / "kept", tmp_path / "left"
    script.write_text(KILLED)
    arguments = [str(Path(__file__).parent), str(kept), str(left), name]
    ended = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-2000:]
    for number in map(int, left.read_text().split()):  # workers whose owner is gone
        try:
            psutil.Process(number).kill()
        except psutil.NoSuchProcess:
            continue
    assert len(list(kept.glob("*.block"))) == DONE
    assert bits(evaluated(keep=kept, engine=engine)) == bits(evaluated(keep=tmp_path / "whole"))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Labels and two models that take some seconds."""
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        write_scores(factors(rng.normal(size=(5_000, 64)), rng.normal(size=(4_000, 64))), tmp_path / f"{name}.npz")
    user = np.repeat(np.arange(5_000), 5)
    frame = pl.DataFrame({"user": user, "item": rng.integers(0, 4_000, len(user)), "label": user % 2})
    frame.unique(["user", "item"], maintain_order=True).write_parquet(tmp_path / "labels.parquet")
    return tmp_path


def test_a_command_that_is_stopped_says_how_it_goes_on(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (
        "evaluate labels.parquet --exposure random --scores a.npz --scores b.npz --threads 1 --keep kept --format json"
    )
    command = [sys.executable, "-m", "truerank", *words.split()]
    process = subprocess.Popen(command, cwd=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    patience = time.monotonic() + 120
    while len(list(files.glob("kept/*.block"))) < 2:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < patience
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "kept: what is done is kept; the same command goes on from there." in said.decode()
    assert not out
    monkeypatch.chdir(files)
    again = call(*words.split(), seconds=120)
    (files / "kept").rename(files / "before")
    assert again.code == 0, again.err
    assert again.out == call(*words.split(), seconds=120).out


class GivesUp:
    """Workers that are lost after some chunks."""

    here, threads = False, 1

    def map(self, work: Any, chunks: Any) -> Iterator[tuple[int, Any]]:
        yield from ((at, work(chunks.chunk(at))) for at in range(3))
        raise TruerankError("the cluster is gone.")


@dataclass(frozen=True)
class Lost:
    """An engine of such workers."""

    name: ClassVar[str] = "lost"

    def open(self) -> Any:
        return nullcontext(GivesUp())


def test_an_engine_that_gives_up_leaves_what_was_done(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    said = rf"the cluster is gone\. What is done is kept in {folder}: the same call goes on from there\."
    with keeping(Lost(), folder, {"asked": 1}, what="run") as workers, pytest.raises(TruerankError, match=said):
        list(map_chunks(workers, abs, Values([-1, -2, -3, -4])))
    assert sorted(path.name for path in folder.glob("*.block")) == ["1-0.block", "1-1.block", "1-2.block"]


@dataclass(frozen=True)
class Shuffled:
    """An engine whose results come in a fixed order of their own."""

    order: tuple[int, ...]
    name: ClassVar[str] = "shuffled"

    def open(self) -> Any:
        return nullcontext(self)

    here: ClassVar[bool] = False
    threads: ClassVar[int] = 1

    def map(self, work: Any, chunks: Any) -> Iterator[tuple[int, Any]]:
        yield from ((at, work(chunks.chunk(at))) for at in self.order if at < chunks.n_chunks)


def test_results_come_in_the_order_of_chunks_whoever_is_first(tmp_path: Path) -> None:
    """Sums of floats depend on their order; these do not depend on who was first, nor on what was kept."""
    with keeping(Shuffled((3, 1, 0, 2)), tmp_path / "kept", {}, what="run") as workers:
        assert list(workers.map(abs, Values([-1, -2, -3, -4]))) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    (tmp_path / "kept" / "1-1.block").unlink()
    with keeping(Shuffled((0,)), tmp_path / "kept", {}, what="run") as workers:
        assert list(workers.map(abs, Values([-1, -2, -3, -4]))) == [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize(("given", "said"), [((0, 2), "did not come back"), ((0, 1, 1, 2), "came back twice")])
def test_a_chunk_that_is_lost_or_doubled_is_an_error(tmp_path: Path, given: tuple[int, ...], said: str) -> None:
    lost = pytest.raises(TruerankError, match=said)
    with keeping(Shuffled(given), tmp_path / "kept", {}, what="run") as workers, lost:
        list(map_chunks(workers, abs, Values([-1, -2, -3])))


# ----------------------------------------------------------------------------------------------------------- refused


def test_a_block_that_was_altered_is_made_again_and_said(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    undisturbed = evaluated(keep=kept)
    block = kept / "1-3.block"
    whole_bytes = block.read_bytes()
    block.write_bytes(whole_bytes[:-9] + bytes(9))
    again = evaluated(keep=kept)
    assert [each.value for each in again.estimates] == [each.value for each in undisturbed.estimates]
    assert kept_notes(again) == [f"{kept}: 1-3.block had been altered and was made again."]
    assert block.read_bytes() == whole_bytes
    assert not kept_notes(evaluated(keep=kept))


def test_another_question_is_refused_by_name(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    evaluated(keep=kept)
    before = {path: path.read_bytes() for path in kept.iterdir()}
    with pytest.raises(InputError, match=r"holds a run of something else \(seed: 0, now 1\)"):
        evaluated(keep=kept, seed=1)
    other = {**scores(), "b": scores()["b"] + 1e-9}
    with pytest.raises(InputError, match=r"something else \(scores: b changed\)"):
        tr.evaluate(other, labels(), exposure="random", metrics=["Recall@5", "DCG@5"], keep=kept)
    turned = labels().with_columns(label=1 - pl.col("label"))
    with pytest.raises(InputError, match=r"something else \(labels: "):
        tr.evaluate(scores(), turned, exposure="random", metrics=["Recall@5", "DCG@5"], keep=kept)
    with pytest.raises(InputError, match="holds a run of something else"):
        tr.off_policy(feed(), TARGETS, position="exp:0.8", keep=kept)
    assert {path: path.read_bytes() for path in kept.iterdir()} == before


def test_a_folder_of_the_user_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="holds files of something else"):
        evaluated(keep=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_full_disk_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, sync = tmp_path / "kept", whole.sync

    def full(path: Path) -> None:
        if "1-7" in path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(path)

    monkeypatch.setattr(whole, "temporary_name", lambda path: path.with_name(f".{path.name}.part"))
    monkeypatch.setattr(whole, "sync", full)
    said = r"1-7\.block: cannot be written \(No space left on device\)\. What was done before is kept: make room"
    with pytest.raises(InputError, match=said) as raised:
        evaluated(keep=kept, threads=1)
    assert "\n" not in str(raised.value)
    monkeypatch.setattr(whole, "sync", sync)
    assert bits(evaluated(keep=kept)) == bits(evaluated(keep=tmp_path / "whole"))


def test_what_nobody_can_tell_apart_is_refused(tmp_path: Path) -> None:
    drawn = tr.scores.function(lambda users: scores()["a"][users], users=range(N_USERS), items=range(N_ITEMS))
    with pytest.raises(InputError, match="nobody can tell whether a function is the same next time"):
        tr.evaluate({"a": drawn}, labels(), exposure="random", keep=tmp_path / "kept")


@dataclass(frozen=True)
class Halves:
    """A value of somebody else's."""

    of: int


def test_what_cannot_be_kept_is_said_and_made_again(tmp_path: Path) -> None:
    for _ in range(2):
        with keeping(Local(1), tmp_path / "kept", {}, what="run") as workers:
            assert sorted(each.of for each in map_chunks(workers, Halves, Values([4, 2]))) == [2, 4]
            [note] = workers.notes()
        assert "a part cannot be kept and is made again when the run goes on: a Halves of" in note
    assert not list((tmp_path / "kept").glob("*.block"))
