"""Files of the user: nothing that existed before is gone or changed, unless it is the output that was named.

Whatever lies around (files with names that truerank once used, links, forged markers, earlier outputs), a command
replaces what it was told to write, and leaves the rest alone, also when it is refused or killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from calling import call
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from opens import watching_opens
from processes import environment

import truerank as tr
from truerank.core.errors import InputError

USERS, ITEMS = 12, 8
rng = np.random.default_rng(1)
LABELS = pl.DataFrame(
    {"user": np.repeat(np.arange(USERS), ITEMS), "item": np.tile(np.arange(ITEMS), USERS),
     "label": (rng.random(USERS * ITEMS) < 0.4).astype(np.int8)}
)  # fmt: skip
SCORES = {"a": rng.normal(size=(USERS, ITEMS)), "b": rng.normal(size=(USERS, ITEMS))}
FIRST = tr.evaluate(SCORES, LABELS, metrics=["Recall@2"])
SECOND = tr.evaluate(SCORES, LABELS, metrics=["Recall@3"])

Entry = tuple[str, str | bytes]  # ("link", where it leads), ("folder", "") or ("file", content)


def contents(folder: Path) -> dict[str, Entry]:
    """Everything below a folder, by relative name; links are not followed."""
    entries: dict[str, Entry] = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            kind: Entry = ("folder", "")
            if path.is_symlink():
                kind = ("link", str(path.readlink()))
            elif path.is_file():
                kind = ("file", path.read_bytes())
            entries[path.relative_to(folder).as_posix()] = kind
    return entries


def forged(path: Path, *others: Path) -> None:
    """A marker as truerank writes it, which lists files of the user, also outside of its folder."""
    listed = {
        os.path.relpath(other, path.parent): {
            "bytes": other.stat().st_size, "sha256": hashlib.sha256(other.read_bytes()).hexdigest()
        }
        for other in others
    }  # fmt: skip
    marker = {"kind": "set of results", "files": listed, "made_by": "truerank 0.1.0", "format": 1}
    path.write_text(json.dumps(marker, indent=1))


# ------------------------------------------------------------------------------------------------------- the property

NAMES = (".out.part", ".out.old", ".out.lock", ".lock", "out", "out.json", ".out.json.part", "truerank.json",
         ".out.0123456789abcdef.part", ".truerank-0123456789abcdef.part", ".truerank.part", "results.json",
         "out/notes.txt", "out/.lock", "out/.truerank.part", "out/units.parquet", "out/.results.json.part",
         "out/truerank.json", "out/train.csv", "out/sub", "docs/thesis.txt")  # fmt: skip
QUICK = settings(max_examples=40, stateful_step_count=12, deadline=None, database=None,
                 suppress_health_check=list(HealthCheck))  # fmt: skip


def finish(*words: str) -> None:
    """A command that ends well or is refused."""
    ended = call(*words)
    assert ended.code in (0, 2), ended
    if ended.code == 2:
        raise InputError(ended.err)


class ForeignFiles(RuleBasedStateMachine):
    """A folder with files of the user and outputs of truerank; every call is followed by a look at all of it."""

    @initialize()
    def begin(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        (self.place / "docs").mkdir()
        (self.place / "docs" / "chapter.txt").write_text("years of work")
        LABELS.write_csv(self.place / "labels.csv")
        self.foreign = dict(contents(self.place))

    def teardown(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)

    def add(self, name: str, make: Callable[[Path], object]) -> None:
        path = self.place / name
        if os.path.lexists(path) or not path.parent.is_dir() or path.parent.is_symlink():
            return
        make(path)
        self.foreign = {**self.foreign, **{key: each for key, each in contents(self.place).items() if key == name}}

    @rule(name=st.sampled_from(NAMES), content=st.binary(max_size=3))
    def add_file(self, name: str, content: bytes) -> None:
        self.add(name, lambda path: path.write_bytes(content))

    @rule(name=st.sampled_from(NAMES))
    def add_folder(self, name: str) -> None:
        self.add(name, lambda path: path.mkdir())

    @rule(name=st.sampled_from(NAMES), to=st.sampled_from(["docs", "docs/chapter.txt", "missing", "out"]))
    def add_link(self, name: str, to: str) -> None:
        self.add(name, lambda path: path.symlink_to(self.place / to))

    @rule(name=st.sampled_from(["truerank.json", "out/truerank.json"]))
    def add_forged_marker(self, name: str) -> None:
        files = (self.place / "docs" / "chapter.txt", self.place / "labels.csv")
        self.add(name, lambda path: forged(path, *files))

    @rule(what=st.sampled_from(["first", "second", "split", "file"]), force=st.booleans())
    def write(self, what: str, force: bool) -> None:
        if what == "file":
            self.run("out.csv", lambda: tr.write(tr.read(LABELS), self.place / "out.csv"))
        elif what == "split":
            words = ["split", str(self.place / "labels.csv"), "--by", "user", "--out", str(self.place / "out")]
            self.run("out", lambda: finish(*words, "--quiet", *(["--force"] if force else [])))
        else:
            self.run("out", lambda: (FIRST if what == "first" else SECOND).save(self.place / "out", force=force))

    def run(self, output: str, command: Callable[[], None]) -> None:
        """Run it, and look at everything: what is not the output is as it was, and so is the output if refused."""
        target = Path(os.path.realpath(self.place / output))
        before = contents(self.place)
        try:
            command()
            refused = False
        except InputError:
            refused = True
        after = contents(self.place)
        for name, entry in before.items():
            path = self.place / name
            is_output = path == target or target in path.parents
            if refused or not is_output:
                assert after.get(name) == entry, f"{name} is gone or changed"
            elif name in self.foreign and path != target:
                assert after.get(name) == entry, f"{name} of the user is gone or changed"
        if refused:
            assert after == before, sorted({*after} - {*before})


def test_nothing_of_the_user_is_ever_gone_or_changed() -> None:
    run_state_machine_as_test(ForeignFiles, settings=QUICK)


@pytest.mark.slow
def test_nothing_of_the_user_is_ever_gone_or_changed_many_times() -> None:
    run_state_machine_as_test(ForeignFiles, settings=settings(QUICK, max_examples=500, stateful_step_count=30))


# -------------------------------------------------------------------------------------------------- the cases found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    LABELS.write_parquet("labels.parquet")
    np.savez("a.npz", scores=SCORES["a"], users=np.arange(USERS), items=np.arange(ITEMS))
    return tmp_path


EVALUATE = "evaluate labels.parquet --scores a=a.npz --metric Recall@2 --quiet"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_marker_never_says_what_is_deleted(here: Path, force: tuple[str, ...]) -> None:
    """It looks like a folder whose filling was cut short: one listed file is missing, another is the user's."""
    results, gone = here / "home" / "shared" / "results", here / "home" / "shared" / "results" / "gone"
    (results / ".truerank.part").mkdir(parents=True)
    (here / "home" / "bashrc").write_text("mine")
    gone.write_text("gone")
    forged(results / "truerank.json", here / "home" / "bashrc", gone)
    gone.unlink()
    before = contents(here)
    assert call(*EVALUATE.split(), "--save", "home/shared/results", *force).code == 2
    assert contents(here) == before


def test_what_is_private_is_private_while_it_is_written(here: Path) -> None:
    FIRST.save(here / "res")
    (here / "res").chmod(0o700)
    modes = set()

    def look(event: str, path: str) -> None:
        folder = Path(path).parent
        if event == "os.rename" and folder.is_relative_to(here) and folder != here:
            modes.add(stat.S_IMODE(folder.stat().st_mode))

    with watching_opens(look):
        SECOND.save(here / "res", force=True)
    assert modes == {0o700}
    assert stat.S_IMODE((here / "res").stat().st_mode) == 0o700


WAITING = """
import sys, time
import numpy as np, pyarrow as pa
import truerank as tr
def rows():
    for start in range(6):
        user = np.repeat(np.arange(start * 10**6, (start + 1) * 10**6), 1)
        yield pa.RecordBatch.from_arrays([pa.array(user), pa.array(user), pa.array(user)], ["user", "item", "label"])
    print("set aside", flush=True)
    time.sleep(600)
schema = pa.schema([("user", pa.int64()), ("item", pa.int64()), ("label", pa.int64())])
tr.scan(pa.RecordBatchReader.from_batches(schema, rows()))
"""


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "truerank-mine").mkdir()
    (tmp_path / "truerank-mine" / "notes.txt").write_text("mine")
    (tmp_path / "truerank-link").symlink_to(tmp_path / "truerank-mine")
    foreign = contents(tmp_path)
    waiting = [
        subprocess.Popen([sys.executable, "-c", WAITING], env=environment({"TMPDIR": str(tmp_path)}), stdout=-1)
        for _ in range(2)
    ]
    try:
        for process in waiting:
            assert process.stdout is not None
            assert process.stdout.readline() == b"set aside\n"
        living, killed = ({path.name for path in tmp_path.iterdir() if f"-{process.pid}-" in path.name}
                          for process in waiting)  # fmt: skip
        assert living
        assert killed
        waiting[1].kill()
        waiting[1].wait()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        tr.evaluate(SCORES, LABELS, metrics=["Recall@2"])
        left = {path.name for path in tmp_path.iterdir()}
        assert living <= left
        assert not killed & left
        assert {name: contents(tmp_path).get(name) for name in foreign} == foreign
    finally:
        for process in waiting:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
