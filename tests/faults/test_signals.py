"""Ctrl-C, SIGTERM and SIGHUP at any moment: exit code 3 without a traceback, and nothing half-written."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from processes import COMMANDS, NEVER, TRUERANK, copy, environment, made, run

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks /proc when handlers are set")


def handles(process: subprocess.Popen[str], number: signal.Signals) -> bool:
    """Whether a process has set a handler for a signal: before that, Python itself is still starting."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return False
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt")), "0")
    return bool(int(caught, 16) & 1 << (number - 1))


def _as_in_a_terminal() -> None:
    """Tests may run in the background or under nohup, where signals are ignored, and children inherit that."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def interrupt(words: tuple[str, ...], folder: Path, number: signal.Signals, *, after: float) -> tuple[int, str]:
    """The exit code and messages of a command that gets a signal so long after it began to handle signals."""
    process = subprocess.Popen(
        [*TRUERANK, *words], cwd=folder, env=environment({}), text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=_as_in_a_terminal,  # noqa: PLW1509 - takes no lock
    )  # fmt: skip
    while process.poll() is None and not handles(process, signal.SIGHUP):
        time.sleep(0.002)
    time.sleep(after)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def at_many_moments(inputs: Path, folder: Path, names: tuple[str, ...], *, count: int, seed: int) -> dict[int, int]:
    """How often each exit code came."""
    chance, codes = random.Random(seed), dict[int, int]()
    for name in names:
        command = COMMANDS[name]
        begin = time.monotonic()
        expected = run(command, copy(inputs, folder / name))
        took = time.monotonic() - begin
        for at in range(count):
            number, here = SIGNALS[at % 3], copy(inputs, folder / f"{name}-{at}")
            before = {str(each.relative_to(here)) for each in here.rglob("*")}
            after = took * chance.random()
            code, said = interrupt(command.call(), here, number, after=after)
            info = f"{name}, {number.name} after {after:.3f} of {took:.3f} s: {code}, {said[-1500:]}"
            assert code in (0, 3), info
            assert not NEVER.search(said), info
            assert code == 0 or "truerank: interrupted." in said, info
            left = made(here / command.made)
            assert left in ({}, expected.made), info
            assert {str(each.relative_to(here)) for each in here.rglob("*")} - before <= {command.made}, info
            codes[code] = codes.get(code, 0) + 1
    return codes


def test_a_signal_at_any_moment_ends_in_good_order(inputs: Path, tmp_path: Path) -> None:
    codes = at_many_moments(inputs, tmp_path, ("evaluate", "train"), count=6, seed=14)
    assert codes.get(3, 0) >= 4, codes


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_while_modules_load_is_no_traceback(number: signal.Signals, inputs: Path) -> None:
    code, said = interrupt(COMMANDS["evaluate"].call(), inputs, number, after=0.0)
    assert (code, said) == (3, "truerank: interrupted.\n")


def test_signals_that_were_ignored_stay_ignored(inputs: Path, tmp_path: Path) -> None:
    """nohup: a terminal that goes away does not stop the command."""
    here = copy(inputs, tmp_path / "here")
    words = ["bash", "-c", 'trap "" HUP; "$@" & pid=$!; sleep 0.7; kill -HUP $pid; wait $pid', "bash", *TRUERANK]
    ended = subprocess.run(
        [*words, *COMMANDS["evaluate"].call()], cwd=here, env=environment({}), capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert made(here / "made.json")
