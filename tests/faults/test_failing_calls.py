"""The n-th write, rename, open or fsync fails, or the process is killed there: an exit code, one sentence, no mix."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from calling import every_command
from commands import COMMANDS, Writing, copy, made, put_back, readable, visible
from failing import FAILURES, KINDS, Case, Ended, Server


@dataclass(frozen=True, slots=True)
class Known:
    """A command undisturbed: its starting point, what was there before it and after it, and how many calls it makes."""

    start: Path
    inputs: Path
    old: dict[str, bytes]
    new: dict[str, bytes]
    counts: dict[str, int]


def writes(option: click.Parameter) -> bool:
    """Whether an option names a place to write to."""
    return isinstance(option, click.Option) and isinstance(option.type, click.Path) and (
        "--out" in option.opts or re.search(r"\bwrite\b", option.help or "", flags=re.IGNORECASE) is not None
    )  # fmt: skip


def test_every_option_that_writes_is_tried() -> None:
    """A new command or option that writes belongs into `support/commands.py`: all these tests are then about it."""
    found = {
        (*path, option.opts[-1]) for path, command in every_command() for option in command.params if writes(option)
    }
    assert {("evaluate", "--units"), ("evaluate", "--save"), ("split", "--out")} <= found
    tried = {
        (*path, option)
        for path, _ in every_command()
        for each in COMMANDS
        if each.words[: len(path)] == path
        for option in each.words
        if option.startswith("--")
    }
    assert found <= tried


def known(server: Server, writing: Writing, inputs: Path, folder: Path) -> Known:
    start = writing.prepare(inputs, folder / "start")
    if writing.before is not None:
        assert server.run(Case(writing.before, str(start))).code == 0
    old = made(start, inputs)
    whole = copy(start, folder / "whole")
    ended = server.run(Case(writing.words, str(whole)))
    assert ended.code == 0, ended.err
    return Known(start, inputs, old, made(whole, inputs), ended.counts)


def judge(writing: Writing, of: Known, ended: Ended, place: Path) -> None:
    """What is allowed: done, with all that is made; or one sentence (or a kill) and the old, or nothing to be read."""
    put_back(place)
    found = made(place, of.inputs)
    if ended.code == 0:
        assert found == of.new
        return
    if ended.code != -9:
        said = ended.err.strip().splitlines()
        assert ended.code == 2, ended.err
        assert said[-1].startswith("truerank: ")
        assert sum(line.startswith("truerank: ") for line in said) == 1
        assert "internal error" not in ended.err
        assert "Traceback" not in ended.err
        assert ".part" not in said[-1]
        assert found == visible(found), "half-written files were left"
    if writing.grows:
        return  # judged by going on
    seen = visible(found)
    if not (place / "made").is_dir():
        # single files: each is as before or as after
        assert all(content in (of.old.get(name), of.new.get(name)) for name, content in seen.items())
    else:
        assert seen in (of.old, of.new)
        assert readable(place) or not seen, f"{sorted(seen)} cannot be read"


def goes_on(server: Server, writing: Writing, of: Known, place: Path) -> None:
    """The same call again, undisturbed: the same bytes as if nothing had been, and nothing else left."""
    again = server.run(Case(writing.words, str(place)))
    if again.code == 2 and "already" in again.err:  # it was complete, and is not replaced
        assert readable(place)
    else:
        assert again.code == 0, again.err
    assert visible(made(place, of.inputs)) == of.new


def check(server: Server, writing: Writing, inputs: Path, folder: Path) -> int:
    """Let every n-th call of every kind fail in every way (of heavy commands some); how many cases that were."""
    of = known(server, writing, inputs, folder)
    ran = 0
    for at, (kind, failure) in enumerate(itertools.product(KINDS, FAILURES)):
        n = of.counts[kind]
        every = range(1, n + 1)
        for nth in every[at % n :: max(n // 2, 1)] if writing.heavy and n else every:
            place = copy(of.start, folder / "case")
            ended = server.run(Case(writing.words, str(place), kind, nth, failure))
            try:
                judge(writing, of, ended, place)
                goes_on(server, writing, of, place)
            except AssertionError as error:
                raise AssertionError(f"{writing.name}: {kind} {nth} of {n}, {failure}: {error}") from error
            shutil.rmtree(place)
            ran += 1
    return ran


@pytest.mark.parametrize("writing", [each for each in COMMANDS if not each.heavy], ids=lambda each: each.name)
def test_some_calls_that_fail(server: Server, inputs: Path, tmp_path: Path, writing: Writing) -> None:
    # turns over kinds and failures, so that all commands together stay quick
    of = known(server, writing, inputs, tmp_path)
    assert sum(of.counts.values()) > 0
    turn = COMMANDS.index(writing)
    for at, kind in enumerate((KINDS[turn % 4], KINDS[(turn + 2) % 4])):
        n, failure = of.counts[kind], list(FAILURES)[(turn // 4 + at) % len(FAILURES)]
        if not n:
            continue
        nth = 1 + (7 * turn + 3 * at) % n
        place = copy(of.start, tmp_path / f"case {at}")
        judge(writing, of, server.run(Case(writing.words, str(place), kind, nth, failure)), place)
        goes_on(server, writing, of, place)


@pytest.mark.slow
@pytest.mark.parametrize("writing", COMMANDS, ids=lambda each: each.name)
def test_every_call_that_fails(
    server: Server, inputs: Path, tmp_path: Path, writing: Writing, record_property: Callable[[str, object], None]
) -> None:
    ran = check(server, writing, inputs, tmp_path)
    record_property("cases", ran)
    assert ran > 0
