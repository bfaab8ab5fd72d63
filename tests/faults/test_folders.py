"""Folders of several files: nothing of the user is overwritten, nothing half old and half new, nothing altered."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from refusals import refused
from small_study import small_grid, small_scores, small_train, small_world

from truerank.io.atomic_write import MARKER, FolderKind, check_folder, whole_file, whole_folder
from truerank.io.checkpoint import Blocks, DamagedBlockError, keep_question, working
from truerank.io.files import read_table, write_table
from truerank.reliability import FinishedStudy, study
from truerank.simulation.dataset import DatasetSettings, simulate_dataset, write_dataset

SMALL = DatasetSettings(users=20, items=15, clusters=2, shown=3, judged=3)
KIND = FolderKind("thing", ("a.txt", "in/b.txt"))


def write_thing(path: Path, text: str = "new", *, force: bool = False) -> None:
    with whole_folder(path, kind=KIND, force=force) as part:
        (part / "a.txt").write_text(text)
        (part / "in").mkdir()
        (part / "in" / "b.txt").write_text(text)


def names(path: Path) -> list[str]:
    return sorted(each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file())


# ------------------------------------------------------------------------------------------------ B4: mixed worlds


def test_a_mixed_world_is_refused_file_by_file(tmp_path: Path) -> None:
    """New truth, old rest: what a kill between two files once left, and evaluate took."""
    write_dataset(simulate_dataset(SMALL, seed=1), tmp_path / "one")
    write_dataset(simulate_dataset(SMALL, seed=2), tmp_path / "two")
    (tmp_path / "one" / "truth.parquet").write_bytes((tmp_path / "two" / "truth.parquet").read_bytes())
    with refused(r"one/truth\.parquet: was altered after truerank wrote it"):
        read_table(tmp_path / "one" / "truth.parquet")
    assert len(read_table(tmp_path / "one" / "train.parquet"))
    with refused(r"truth\.parquet: was altered"):
        check_folder(tmp_path / "one", kind="world", expected="a world")
    (tmp_path / "one" / MARKER).unlink()  # the user takes the folder over
    assert len(read_table(tmp_path / "one" / "truth.parquet"))


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "marker"])
def test_an_incomplete_or_altered_folder_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    write_thing(tmp_path / "x")
    path = tmp_path / "x" / "in" / "b.txt"
    change: dict[str, tuple[Callable[[], object], str]] = {
        "missing": (path.unlink, r"in/b\.txt: is missing"),
        "cut": (lambda: path.write_text("ne"), r"in/b\.txt: was altered"),
        "flipped": (lambda: path.write_text("nex"), r"in/b\.txt: was altered"),
        "marker": ((tmp_path / "x" / MARKER).unlink, rf"x: is not complete \(it has no {MARKER}\)"),
    }
    act, message = change[damage]
    act()
    with refused(message):
        check_folder(tmp_path / "x", kind=KIND.name, expected="a thing")


# --------------------------------------------------------------------------------- B5: blocks, trials, and B12: studies


def test_no_flipped_byte_of_a_block_goes_unnoticed(tmp_path: Path) -> None:
    blocks = Blocks(b"question", "")
    path = tmp_path / "a.block"
    blocks.write(pl.DataFrame({"x": [1, 2, 3]}), path)
    whole = path.read_bytes()
    assert blocks.read(path)["x"].to_list() == [1, 2, 3]
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(DamagedBlockError, match=r"a\.block: is not the block that was written"):
            blocks.read(path)
    path.write_bytes(whole[:-1])
    assert blocks.drop_damaged([path]) == ["a.block"]
    assert not path.exists()


class StoppedError(Exception):
    """A study was stopped on purpose."""


def run_study(out: Path, *, stop: bool = False) -> tuple[str, ...]:
    world = small_world()

    def progress(what: str, done: int, total: int) -> None:
        if stop and what == "summing up":
            raise StoppedError

    return study(
        small_scores(world), world, out, grid=small_grid(repetitions=1), train=small_train(), resamples=5, threads=1,
        block_users=6, progress=progress,
    ).notes  # fmt: skip


def test_altered_and_exchanged_blocks_are_made_again_and_said(tmp_path: Path) -> None:
    run_study(tmp_path / "whole")
    with pytest.raises(StoppedError):
        run_study(tmp_path / "part", stop=True)
    blocks = sorted((tmp_path / "part" / "blocks").glob("*.block"))
    first, second = (
        each for each in blocks if each.name.endswith(("b0000000.block", "b0000001.block")) and "l000" in each.name
    )
    second.write_bytes(first.read_bytes())
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 4
    first.write_bytes(content)
    notes = run_study(tmp_path / "part")
    assert f"{first.name}, {second.name} had been altered and was made again." in notes[-1]
    for name in ("results.parquet", "means.parquet", "pairs.parquet", "logs.parquet"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_tampered_study_is_refused_in_one_sentence(tmp_path: Path) -> None:
    run_study(tmp_path / "x")
    for name in ("results.parquet", "pairs.parquet", "logs.parquet"):
        path = tmp_path / "x" / name
        kept = path.read_bytes()
        pl.read_parquet(kept).head(1).write_parquet(path)  # loggers and pairs are gone: once a KeyError or IndexError
        for read in (FinishedStudy.read, run_study):
            with refused(f"{name}: was altered after truerank wrote it"):
                read(tmp_path / "x")
        path.write_bytes(kept)
    assert FinishedStudy.read(tmp_path / "x").metrics


def test_the_lock_of_a_living_process_stands_and_that_of_a_dead_one_does_not(tmp_path: Path) -> None:
    with (
        working(tmp_path / "x"),
        refused("another process is working"),
        working(tmp_path / "x"),
    ):
        pass
    assert not names(tmp_path)  # the folder itself is locked
    with working(tmp_path / "x"):
        pass


def test_the_umask_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask belongs to all threads"))
        with whole_file(tmp_path / "a.txt") as temporary:
            temporary.write_text("a")
        write_thing(tmp_path / "x")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o750


def test_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    tables = [pl.DataFrame({"x": [at] * 100}) for at in range(8)]
    threads = [threading.Thread(target=write_table, args=(table, path)) for table in tables]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert any(pl.read_csv(path).equals(table) for table in tables)
    assert names(tmp_path) == ["a.csv"]


def test_the_question_of_a_growing_folder_is_the_same_to_the_last_name(tmp_path: Path) -> None:
    place, asked = tmp_path / "question.json", {"model": "knn", "random slice": None}
    written = keep_question(place, asked, what="search")
    place.write_bytes(written.replace(b"random", b"randnm"))
    with refused("holds a search of something else"):
        keep_question(place, asked, what="search")
    place.write_bytes(written.replace(b" ", b"  ", 1))  # the same in other bytes
    assert keep_question(place, asked, what="search") == written == place.read_bytes()
