"""A crash of the machine: what was not synced may be missing, in every combination; a reader sees old, new or refuses.

The calls of a command are written down as they come. A crash after any of them keeps all that an fsync has covered:
the content of a file by an fsync of the file, the names in a folder by an fsync of the folder. Of the rest any part may
be there or not: content may be missing or cut, a name may be absent or still the old one.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from commands import COMMANDS, Writing, made, make_inputs, readable
from failing import Case, Server, library

WHOLE = ("world", "world again", "world in an empty folder", "feed", "results", "results again")
MOST = 6  # unsynced changes of which every combination is tried; of more, as many drawn ones


@dataclass(frozen=True, slots=True)
class Call:
    """A recorded call: what it did, to which path or paths, and the inode of what it did it to."""

    what: str
    path: str
    other: str
    inode: int


@dataclass(slots=True)
class Disk:
    """Files and folders by inode; a crash leaves some of the changes that were not synced."""

    content: dict[int, bytes]  # of every file, whole
    names: dict[str, int] = field(default_factory=dict)  # path -> inode
    written: set[int] = field(default_factory=set)

    def apply(self, call: Call) -> None:
        if call.what in ("create", "mkdir"):
            self.names[call.path] = call.inode
        elif call.what == "remove":
            self.names.pop(call.path, None)
        elif call.what == "write":
            self.written.add(call.inode)
        elif call.what in ("rename", "exchange"):
            self._move(call.path, call.other, both=call.what == "exchange")

    def _move(self, first: str, second: str, *, both: bool) -> None:
        def taken(path: str) -> dict[str, int]:
            below = {name: inode for name, inode in self.names.items() if name == path or name.startswith(f"{path}/")}
            for name in below:
                del self.names[name]
            return {name[len(path) :]: inode for name, inode in below.items()}

        one, two = taken(first), taken(second)
        self.names |= {second + end: inode for end, inode in one.items()}
        if both:
            self.names |= {first + end: inode for end, inode in two.items()}

    def write(self, root: Path, torn: Mapping[int, float], folders: set[int]) -> None:
        """Lay the state out below `root`; of a torn file only this share of its content."""
        root.mkdir()
        for name, inode in sorted(self.names.items()):
            place = root / name
            if inode in folders:
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                whole = self.content.get(inode, b"")
                place.write_bytes(whole[: int(len(whole) * torn.get(inode, 1.0))])


def recorded(path: Path, root: Path) -> list[Call]:
    """The calls below a folder, by relative paths."""
    calls = []
    for line in path.read_text().splitlines():
        what, first, second, inode = line.split("\t")
        one, other = (str(Path(name).relative_to(root)) if name else "" for name in (first, second))
        calls.append(Call(what, one, other, int(inode)))
    return calls


def unsynced(calls: list[Call]) -> tuple[list[int], list[int]]:
    """Places of changes of names that no fsync of their folder followed, and inodes whose content none followed."""
    names: list[int] = []
    content: dict[int, bool] = {}
    for at, call in enumerate(calls):
        if call.what == "write":
            content[call.inode] = False
        elif call.what == "fsync":
            content.pop(call.inode, None)
            names = [n for n in names if str(Path(calls[n].other or calls[n].path).parent) != call.path]
        else:
            names.append(at)
    return names, list(content)


def lost(names: list[int], inodes: list[int], rng: random.Random) -> Iterator[tuple[set[int], dict[int, float]]]:
    """Which changes of names a crash takes away and how much of each content it leaves: every combination, if few."""
    n = len(names) + len(inodes)
    every = itertools.product((False, True), repeat=n)
    drawn = (tuple(rng.random() < 0.5 for _ in range(n)) for _ in range(2**MOST))
    for gone in every if n <= MOST else drawn:
        away = {name for name, is_gone in zip(names, gone, strict=False) if is_gone}
        cut = zip(inodes, gone[len(names) :], strict=True)
        yield away, {inode: rng.choice((0.0, 0.5)) for inode, is_gone in cut if is_gone}


def crashes(calls: list[Call], start: Disk, folders: set[int], place: Path) -> Iterator[Path]:
    """Every state that a crash after every call can leave."""
    rng = random.Random(0)
    seen = set()
    for end in range(len(calls) + 1):
        done = calls[:end]
        for away, torn in lost(*unsynced(done), rng):
            disk = Disk(start.content, dict(start.names))
            for at, call in enumerate(done):
                if at not in away:
                    disk.apply(call)
            state = (tuple(sorted(disk.names.items())), tuple(sorted(torn.items())))
            if state in seen:
                continue
            seen.add(state)
            disk.write(place, torn, folders)
            yield place
            shutil.rmtree(place)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(library(tmp_path_factory.mktemp("library")))
    yield found
    found.close()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_inputs(tmp_path_factory.mktemp("inputs") / "inputs")


def replayed(server: Server, inputs: Path, folder: Path, name: str, *, synced: bool = True) -> dict[str, int]:
    """What readers find in every state that a crash can leave: the old, the new, or nothing that they take."""
    writing: Writing = next(each for each in COMMANDS if each.name == name)
    start = writing.prepare(inputs, folder / "start")
    if writing.before is not None:
        assert server.run(Case(writing.before, str(start))).code == 0
    old = made(start, inputs)
    given = {start / each.name for each in inputs.iterdir()}
    before = {each: each.stat().st_ino for each in start.rglob("*") if each not in given}
    contents = {inode: each.read_bytes() for each, inode in before.items() if each.is_file()}
    folders = {inode for each, inode in before.items() if each.is_dir()}
    names = {each.relative_to(start).as_posix(): inode for each, inode in before.items()}
    assert server.run(Case(writing.words, str(start), record=str(folder / "record"))).code == 0
    new = made(start, inputs)
    calls = [call for call in recorded(folder / "record", start) if synced or call.what != "fsync"]
    contents |= {each.stat().st_ino: each.read_bytes() for each in start.rglob("*") if each.is_file()}
    folders |= {call.inode for call in calls if call.what == "mkdir"}
    found = {"old": 0, "new": 0, "refused": 0}
    for place in crashes(calls, Disk(contents, names), folders, folder / "crashed"):
        visible = {key: value for key, value in made(place, inputs).items() if ".part" not in key and key[0] != "."}
        if not readable(place):
            found["refused"] += 1
            if not synced:
                break  # one is enough to see that the check can fail
            continue
        assert visible in (old, new), f"a mix of {sorted(visible)} looks whole"
        found["old" if visible == old else "new"] += 1
    return found


def test_without_fsync_a_crash_would_lose_the_old_one(server: Server, inputs: Path, tmp_path: Path) -> None:
    """The check can fail: the same calls, but none of them synced."""
    seen = replayed(server, inputs, tmp_path, "results again", synced=False)
    assert seen["refused"] > 0


@pytest.mark.parametrize("name", WHOLE)
def test_a_crash_leaves_the_old_the_new_or_what_is_refused(
    server: Server, inputs: Path, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    seen = replayed(server, inputs, tmp_path, name)
    record_property("states", seen)
    assert seen["new"] > 0
    if "again" in name:  # between old and new there is never neither
        assert seen["old"] > 0
        assert seen["refused"] == 0
