"""A crash of the machine: what was not synced may be missing, in every combination; a reader sees old, new or refuses.

The calls of a command are written down as they come. A crash after any of them keeps all that an fsync has covered:
the content of a file by an fsync of the file, the names in a folder by an fsync of the folder. Of the rest any part may
be there or not: content may be missing or cut, a name may be absent or still the old one.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from commands import COMMANDS, Writing, made, put_back, readable, visible
from failing import Case, Server

WHOLE = [each for each in COMMANDS if not each.grows]
QUICK = ("world again", "world in an empty folder", "results", "results again", "parts", "folds instead of parts",
         "units of offpolicy", "one file again")  # fmt: skip
STATES = 40  # that a crash may leave in a growing folder and that are gone on with
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


@dataclass(frozen=True, slots=True)
class Replay:
    """A command as it was recorded: what was there before and after it, and every state that a crash can leave."""

    old: dict[str, bytes]
    new: dict[str, bytes]
    states: Iterator[Path]


def replay(server: Server, inputs: Path, folder: Path, writing: Writing, *, synced: bool = True) -> Replay:
    start = writing.prepare(inputs, folder / "start")
    if writing.before is not None:
        assert server.run(Case(writing.before, str(start))).code == 0
    old = made(start, inputs)
    given = {start / each.relative_to(inputs) for each in inputs.rglob("*")}
    before = {each: each.stat().st_ino for each in start.rglob("*") if each not in given}
    contents = {inode: each.read_bytes() for each, inode in before.items() if each.is_file()}
    folders = {inode for each, inode in before.items() if each.is_dir()}
    names = {each.relative_to(start).as_posix(): inode for each, inode in before.items()}
    assert server.run(Case(writing.words, str(start), record=str(folder / "record"))).code == 0
    new = made(start, inputs)
    calls = [call for call in recorded(folder / "record", start) if synced or call.what != "fsync"]
    contents |= {each.stat().st_ino: each.read_bytes() for each in start.rglob("*") if each.is_file()}
    folders |= {call.inode for call in calls if call.what == "mkdir"}
    return Replay(old, new, crashes(calls, Disk(contents, names), folders, folder / "crashed"))


def in_folder(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name.startswith("made/")}


def judged(of: Replay, place: Path, inputs: Path) -> str:
    """What a reader finds: the old, the new, of several files some of each, or a folder that is refused."""
    put_back(place)
    seen = visible(made(place, inputs))
    for name, content in seen.items():
        if not name.startswith("made/"):
            assert content in (of.old.get(name), of.new.get(name)), f"{name} is cut or missing"
    if in_folder(of.new) and not readable(place):
        return "refused"
    whole = in_folder(seen)
    assert whole in (in_folder(of.old), in_folder(of.new)), f"a mix of {sorted(whole)} looks whole"
    return "new" if seen == of.new else "old" if seen == of.old else "some of each"


def named(name: str) -> Writing:
    return next(each for each in COMMANDS if each.name == name)


def test_without_fsync_a_crash_would_lose_the_old_one(server: Server, inputs: Path, tmp_path: Path) -> None:
    """The check can fail: the same calls, but none of them synced."""
    of = replay(server, inputs, tmp_path, named("results again"), synced=False)
    assert "refused" in (judged(of, place, inputs) for place in of.states)


def test_without_fsync_a_crash_would_cut_a_file(server: Server, inputs: Path, tmp_path: Path) -> None:
    of = replay(server, inputs, tmp_path, named("one file again"), synced=False)
    with pytest.raises(AssertionError, match="made is cut or missing"):
        assert [judged(of, place, inputs) for place in of.states]


def check(server: Server, inputs: Path, folder: Path, writing: Writing) -> Counter[str]:
    of = replay(server, inputs, folder, writing)
    seen = Counter(judged(of, place, inputs) for place in of.states)
    assert seen["new"] > 0
    if writing.before is not None:  # the old one or the new one, at its name or to be renamed back
        assert seen["old"] > 0
        assert seen["refused"] == 0
    return seen


@pytest.mark.parametrize("name", QUICK)
def test_a_crash_leaves_the_old_the_new_or_what_is_refused(
    server: Server, inputs: Path, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("states", dict(check(server, inputs, tmp_path, named(name))))


@pytest.mark.slow
@pytest.mark.parametrize("writing", WHOLE, ids=lambda each: each.name)
def test_a_crash_of_every_command(
    server: Server, inputs: Path, tmp_path: Path, writing: Writing, record_property: Callable[[str, object], None]
) -> None:
    record_property("states", dict(check(server, inputs, tmp_path, writing)))


@pytest.mark.slow
@pytest.mark.parametrize("writing", [each for each in COMMANDS if each.grows], ids=lambda each: each.name)
def test_after_a_crash_a_growing_folder_is_gone_on_with(
    server: Server, inputs: Path, tmp_path: Path, writing: Writing, record_property: Callable[[str, object], None]
) -> None:
    """The same call ends with the same bytes, whatever the crash has left; of all states every so manieth."""
    total = sum(1 for _ in replay(server, inputs, tmp_path / "counted", writing).states)
    of = replay(server, inputs, tmp_path / "tried", writing)
    ran = 0
    for place in itertools.islice(of.states, 0, None, max(total // STATES, 1)):
        shutil.copytree(inputs, place, copy_function=os.link, dirs_exist_ok=True)
        ended = server.run(Case(writing.words, str(place)))
        assert ended.code == 0, ended.err
        assert visible(made(place, inputs)) == of.new
        ran += 1
    record_property("states", f"{ran} of {total}")
    assert ran >= min(STATES, total)
