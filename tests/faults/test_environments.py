"""Commands wherever they run: a promised exit code, one sentence or none, and the bytes of a plain run."""

from __future__ import annotations

import resource
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from processes import COMMANDS, PLAIN, QUICK, Ended, Surroundings, as_user, copy, judge, run

NO_HOME = {"HOME": None, "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None}
NOBODY, STRANGER = 65534, 54321  # the second has no entry among the users, and so no home at all
PLAIN_LETTERS = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LITTLE = 600_000 * 1024  # bytes of addresses in which polars used to spin for ever, deaf to SIGTERM
REFUSED = frozenset({2})
CLOSED_ERR, FULL_ERR = "2>&-", "2>/dev/full"
ENVIRONMENTS = [
    Surroundings("no home", variables=NO_HOME),
    Surroundings("nobody", before=as_user(NOBODY), variables=NO_HOME),
    Surroundings("stranger", before=as_user(STRANGER), variables=NO_HOME),
    Surroundings("closed input", redirections="<&-"),
    Surroundings("closed messages", redirections=CLOSED_ERR),
    Surroundings("full messages", redirections=FULL_ERR),
    Surroundings("all closed", redirections=f"<&- {CLOSED_ERR}"),
    Surroundings("plain letters", variables=PLAIN_LETTERS),
    Surroundings("ascii streams", variables={"PYTHONIOENCODING": "ascii"}),
    Surroundings("wide streams", variables={"PYTHONIOENCODING": "utf-16"}),
    Surroundings("little memory", limits={resource.RLIMIT_AS: LITTLE}, codes=REFUSED),
    Surroundings("no large files", limits={resource.RLIMIT_FSIZE: 0}, codes=REFUSED),
]
OUTPUTS = [
    Surroundings("reader left", redirections="| true", shown=True),
    Surroundings("reader left early", redirections="| head -c 1", shown=True),
    Surroundings("full output", redirections=">/dev/full", shown=True, codes=REFUSED),
    Surroundings("closed output", redirections=">&-", shown=True, codes=REFUSED),
    Surroundings("closed output and messages", redirections=f">&- {CLOSED_ERR}", shown=True, codes=REFUSED),
]
# a spread: each surrounding once, the commands in turn
SPREAD = [(place, QUICK[at % len(QUICK)]) for at, place in enumerate(ENVIRONMENTS)]
SHOWN_SPREAD = [(place, ("plan", "describe")[at % 2]) for at, place in enumerate(OUTPUTS)]


@cache
def plain(name: str, inputs: Path) -> Ended:
    """What a command gives where all is well."""
    folder = copy(inputs, inputs.parent / f"plain-{inputs.name}-{name}")
    found = run(COMMANDS[name], folder)
    assert found.code == 0, found.err
    assert found.made, name
    return found


def check(name: str, place: Surroundings, inputs: Path, folder: Path) -> Ended:
    found = run(COMMANDS[name], copy(inputs, folder / "here"), within=place)
    judge(found, PLAIN_ENDED if place.shown or place.codes == REFUSED else plain(name, inputs), within=place)
    return found


PLAIN_ENDED = Ended(0, b"", "", {})  # where no file is compared


@pytest.mark.parametrize(("place", "name"), SPREAD, ids=[f"{place.name}-{name}" for place, name in SPREAD])
def test_a_command_does_the_same_wherever_it_runs(place: Surroundings, name: str, inputs: Path, tmp_path: Path) -> None:
    check(name, place, inputs, tmp_path)


@pytest.mark.parametrize(("place", "name"), SHOWN_SPREAD, ids=[f"{place.name}-{name}" for place, name in SHOWN_SPREAD])
def test_results_that_cannot_be_shown_are_refused_and_readers_may_leave(
    place: Surroundings, name: str, inputs: Path, tmp_path: Path
) -> None:
    check(name, place, inputs, tmp_path)


def test_a_reader_that_left_changes_no_verdict(inputs: Path, tmp_path: Path) -> None:
    """What --require asks is answered by the exit code, whoever reads the rest: random scores are no better."""
    require = ("--require", "m1 > m0: Recall@3")
    command = replace(COMMANDS["evaluate"], words=(*COMMANDS["evaluate"].words, *require))
    expected = run(command, copy(inputs, tmp_path / "plain"), within=Surroundings("shown", shown=True))
    assert expected.code in (4, 5)
    found = run(command, copy(inputs, tmp_path / "here"), within=OUTPUTS[0])
    assert found.code == expected.code, found.err


def test_plain_surroundings_are_judged_too(inputs: Path) -> None:
    """The judge can fail: what differs in a byte is found, and a code that was not promised."""
    found = plain("describe", inputs)
    changed = Ended(0, b"", "", {name: content + b"x" for name, content in found.made.items()})
    with pytest.raises(AssertionError):
        judge(changed, found, within=PLAIN)
    with pytest.raises(AssertionError):
        judge(Ended(1, b"", "truerank: internal error", {}), found, within=PLAIN)
