"""Files that change while they are read: an error that names the file, never a value of neither version."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from calling import call
from hypothesis import given, settings
from hypothesis import strategies as st
from opens import watching_opens

import truerank as tr
from truerank.core.errors import InputError

USERS, ITEMS = 30, 20
OPTIONS: dict[str, Any] = {"exposure": "random", "metrics": ["Precision@5"]}
rng = np.random.default_rng(3)
LABEL = (rng.random((USERS, ITEMS)) < 0.2).astype(np.int8)
SCORES = {"m": rng.normal(size=(USERS, ITEMS))}
USER, ITEM = (axis.ravel() for axis in np.indices((USERS, ITEMS)))


def table(label: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"user": USER, "item": ITEM, "label": label.ravel()})


FIRST, SECOND = table(LABEL), table(np.zeros_like(LABEL))


def write(frame: pl.DataFrame, path: Path) -> Path:
    """Without compression or dictionaries, so that both versions of a Parquet file have the same size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(frame.to_arrow(), path, compression="NONE", use_dictionary=False)
    elif path.suffix == ".gz":
        frame.write_csv(path, compression="gzip")
    else:
        frame.write_csv(path)
    return path


def replace_file(path: Path, other: Path) -> None:
    other.replace(path)


def rewrite_in_place(path: Path, other: Path) -> None:
    with path.open("r+b") as stream:
        stream.write(other.read_bytes())
        stream.truncate()


def rewrite_and_hide(path: Path, other: Path) -> None:
    """Same inode, size and time: when the system noted the change alone tells."""
    before = path.stat()
    assert other.stat().st_size == before.st_size
    rewrite_in_place(path, other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove(path: Path, other: Path) -> None:
    path.unlink()


CHANGES = [replace_file, rewrite_in_place, remove]


SOURCES = ("live.parquet", "live.csv", "live.csv.gz", "parts/1.parquet", "parts/1.csv", "days/day=1/a.parquet")


@dataclass(slots=True)
class Moment:
    """Calls `change` once, at the n-th time that Python opens a file or truerank reports progress."""

    change: Callable[[], None]
    left: int

    def __call__(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            self.change()


def evaluated_while_it_changes(folder: Path, name: str, change: Callable[..., None], moment: int, *, scan: bool) -> str:
    """What came of an evaluation whose labels changed at some moment: the first version, the second, or a refusal."""
    live, other = write(FIRST, folder / name), write(SECOND, folder / f"new{''.join(Path(name).suffixes)}")
    at = Moment(lambda: change(live, other), moment)
    top, refusal = folder / Path(name).parts[0], ""
    try:
        with watching_opens(at):
            source: Any = tr.scan(top, progress=at) if scan else top
            value = tr.evaluate(SCORES, source, progress=at, **OPTIONS).estimates[0].value
    except InputError as error:
        refusal = str(error)
    if refusal:
        assert at.left <= 0
        assert str(live) in refusal
        return "refused"
    first, second = (tr.evaluate(SCORES, frame, **OPTIONS).estimates[0].value for frame in (FIRST, SECOND))
    assert value in (first, second), "a value of neither version"
    return "first" if value == first else "second"


def test_a_value_is_of_one_version_whenever_the_file_changes(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(st.sampled_from(SOURCES), st.sampled_from(CHANGES), st.integers(1, 12), st.booleans())
    def one(name: str, change: Callable[..., None], moment: int, scan: bool) -> None:
        with TemporaryDirectory(dir=tmp_path) as folder:
            seen[evaluated_while_it_changes(Path(folder), name, change, moment, scan=scan)] += 1

    one()
    assert seen["refused"] > 10, seen
    assert seen["first"] > 10, seen


def test_versions_of_the_same_size_and_time_are_told_apart(tmp_path: Path) -> None:
    live, other = write(FIRST, tmp_path / "live.parquet"), write(SECOND, tmp_path / "new.parquet")
    with pytest.raises(InputError) as raised:
        tr.evaluate(SCORES, live, progress=Moment(lambda: rewrite_and_hide(live, other), 1), **OPTIONS)
    assert str(live) in str(raised.value)


@pytest.mark.parametrize("change", [replace_file, rewrite_in_place])
def test_mapped_scores_are_of_one_version(tmp_path: Path, change: Callable[[Path, Path], None]) -> None:
    live, other = tmp_path / "live.npy", tmp_path / "new.npy"
    np.save(live, SCORES["m"])
    np.save(other, -SCORES["m"])
    scores = tr.read_scores(live)
    assert tr.evaluate({"m": scores}, FIRST, **OPTIONS).estimates[0].value > 0
    change(live, other)
    with pytest.raises(InputError) as raised:
        tr.evaluate({"m": scores}, FIRST, **OPTIONS)
    assert str(live) in str(raised.value)


@pytest.mark.parametrize(
    ("live", "other", "opened"), [("labels.parquet", "new.parquet", "m.npz"), ("m.npz", "new.npz", "n.npz")]
)
def test_a_command_writes_no_results_of_a_file_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live: str, other: str, opened: str
) -> None:
    """Changed when the file that is read next is opened: the hash in the results would be of another version."""
    monkeypatch.chdir(tmp_path)
    write(FIRST, Path("labels.parquet"))
    write(SECOND, Path("new.parquet"))
    for name, scores in (("m", SCORES["m"]), ("n", SCORES["m"]), ("new", -SCORES["m"])):
        np.savez(f"{name}.npz", scores=scores, users=np.arange(USERS), items=np.arange(ITEMS))
    words = ["evaluate", "labels.parquet", "--scores", "m=m.npz", "--scores", "n=n.npz", "--exposure", "random"]
    assert call(*words, "--metric", "Precision@5", "--out", "before.json", "--quiet").code == 0
    changes: list[str] = []

    def change_once(event: str, path: str) -> None:
        if not changes and Path(path).name == opened:
            changes.append(path)
            replace_file(Path(live), Path(other))

    with watching_opens(change_once):
        ended = call(*words, "--metric", "Precision@5", "--out", "after.json", "--quiet")
    assert changes
    assert ended.code == 2, ended
    assert live in ended.err
    assert not Path("after.json").exists()
