"""Folders under everything at once: run, killed, failing, altered, gone on with, run twice at the same time.

Whatever comes in whatever order, a folder that looks whole holds the bytes of one undisturbed run, and a call either
ends like that run or is refused with one sentence.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import STUDY, WORLD, made, make_inputs, put_back, readable, visible, words
from failing import FAILURES, KINDS, Case, Ended, Server, library
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from truerank.io.atomic_write import MARKER

Contents = dict[str, bytes]
CALLS = {
    "world": {"first": words(f"{WORLD} --seed 1"), "second": words(f"{WORLD} --seed 2 --force")},
    "study": {"first": words(STUDY)},
}
QUICK = settings(max_examples=5, stateful_step_count=8, deadline=None, database=None,
                 suppress_health_check=list(HealthCheck))  # fmt: skip


class Room:
    """Two servers, the inputs, and what every call makes when nothing disturbs it."""

    def __init__(self, folder: Path) -> None:
        shared = library(folder)
        self.servers = Server(shared), Server(shared)
        self.inputs = make_inputs(folder / "inputs")
        self.known: dict[tuple[str, str], Contents] = {}
        for kind, calls in CALLS.items():
            for name, call in calls.items():
                place = self.place(folder / f"{kind} {name}")
                assert self.servers[0].run(Case(call, str(place))).code == 0
                self.known[kind, name] = contents(place, self.inputs)

    def place(self, path: Path) -> Path:
        shutil.copytree(self.inputs, path)
        return path


def contents(place: Path, inputs: Path) -> Contents:
    """What a reader can see; a marker that says the same in other words would be no harm."""
    return {name: each for name, each in visible(made(place, inputs)).items() if not name.endswith(MARKER)}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    found = Room(tmp_path_factory.mktemp("room"))
    yield found
    for server in found.servers:
        server.close()


def machine(room: Room) -> type[RuleBasedStateMachine]:
    class FolderMachine(RuleBasedStateMachine):
        @initialize(kind=st.sampled_from(sorted(CALLS)))
        def begin(self, kind: str) -> None:
            self.kind = kind
            self.folder = Path(tempfile.mkdtemp())
            self.place = room.place(self.folder / "place")
            self.altered: dict[Path, tuple[bytes, bytes]] = {}

        def teardown(self) -> None:
            shutil.rmtree(self.folder, ignore_errors=True)

        def call(self, name: str, **failing: object) -> Ended:
            words = CALLS[self.kind].get(name, CALLS[self.kind]["first"])
            return room.servers[0].run(Case(words, str(self.place), **failing))  # type: ignore[arg-type]

        def expected(self, name: str) -> Contents:
            return room.known.get((self.kind, name), room.known[self.kind, "first"])

        @rule(name=st.sampled_from(["first", "second"]))
        def run(self, name: str) -> None:
            before = contents(self.place, room.inputs)
            ended = self.call(name)
            if ended.code == 0:
                assert contents(self.place, room.inputs) == self.expected(name)
                return
            assert ended.code == 2, ended.err
            assert ended.err.splitlines()[-1].startswith("truerank: ")
            assert self.still_altered() or "already" in ended.err, ended.err
            if self.kind == "world":
                assert contents(self.place, room.inputs) == before

        @rule(name=st.sampled_from(["first", "second"]), kind=st.sampled_from(KINDS),
              failure=st.sampled_from(sorted(FAILURES)), nth=st.integers(1, 25))  # fmt: skip
        def run_and_fail(self, name: str, kind: str, failure: str, nth: int) -> None:
            ended = self.call(name, kind=kind, nth=nth, failure=failure)
            assert ended.code in (0, 2, -9), ended.err
            assert "internal error" not in ended.err
            put_back(self.place)

        @precondition(lambda self: (self.place / "made").is_dir())
        @rule(which=st.integers(0, 50), where=st.floats(0, 0.999), flip=st.integers(1, 255))
        def alter(self, which: int, where: float, flip: int) -> None:
            files = sorted(each for each in (self.place / "made").rglob("*") if each.is_file() and each.stat().st_size)
            files = [each for each in files if each.name != MARKER and each not in self.altered]
            if not files:
                return
            path = files[which % len(files)]
            before = path.read_bytes()
            after = bytearray(before)
            after[int(where * len(before))] ^= flip
            path.write_bytes(after)
            self.altered[path] = before, bytes(after)

        @rule()
        def restore(self) -> None:
            for path in self.still_altered():
                path.write_bytes(self.altered[path][0])
            self.altered = {}

        @rule(name=st.sampled_from(["first", "second"]))
        def run_twice_at_once(self, name: str) -> None:
            words = CALLS[self.kind].get(name, CALLS[self.kind]["first"])
            with ThreadPoolExecutor(2) as pool:
                ended = list(pool.map(lambda server: server.run(Case(words, str(self.place))), room.servers))
            assert {each.code for each in ended} <= {0, 2}, [each.err for each in ended]
            assert all("internal error" not in each.err for each in ended)
            if any(each.code == 0 for each in ended):
                assert contents(self.place, room.inputs) == self.expected(name)

        def still_altered(self) -> list[Path]:
            return [path for path, (_, after) in self.altered.items() if path.is_file() and path.read_bytes() == after]

        @invariant()
        def what_looks_whole_is_one_run(self) -> None:
            if not hasattr(self, "place") or not readable(self.place):
                return
            found = {key: each for key, each in contents(self.place, room.inputs).items() if "blocks/" not in key}
            assert found in [each for (kind, _), each in room.known.items() if kind == self.kind]

    return FolderMachine


def test_whatever_happens_to_a_folder(room: Room) -> None:
    run_state_machine_as_test(machine(room), settings=QUICK)


@pytest.mark.slow
def test_whatever_happens_to_a_folder_many_times(room: Room) -> None:
    run_state_machine_as_test(machine(room), settings=settings(QUICK, max_examples=60, stateful_step_count=20))
