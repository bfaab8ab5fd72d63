"""Processes of this machine: one that is killed is replaced, none outlives the work, and no run waits for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest
from engines_there import require

from truerank.core.errors import TruerankError
from truerank.engines.engine import Values, map_chunks
from truerank.engines.local import ATTEMPTS, Processes

N_CHUNKS = 6
UNGUARDED = """
import truerank as tr
from truerank.engines.engine import Values, map_chunks
from truerank.engines.local import Processes

{call}
"""
KILLED = """
import os, time
from truerank.engines.engine import Values, map_chunks
from truerank.engines.local import Processes

def work(number):
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    list(map_chunks(Processes(2), work, Values([1, 2])))
"""
CALLS = {
    "local": "print(list(map_chunks(Processes(2), abs, Values([1, 2, 3]))))",
    "dask": "tr.evaluate({'a': {1: [2]}}, {'user': [1], 'item': [2], 'label': [1]}, exposure='holdout', engine='dask')",
}


def squared(number: int) -> int:
    return number * number


def killed(folder: Path, times: int, number: int) -> int:
    """The process that comes to chunk 2 dies without a word, the first few times."""
    if number == 2:
        seen = len(list(folder.iterdir()))
        if seen < times:
            (folder / str(seen)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def endless(number: int) -> int:
    time.sleep(600 if number else 0)
    return number


@pytest.mark.parametrize("processes", [1, 2])
def test_every_chunk_once(processes: int) -> None:
    found = list(map_chunks(Processes(processes), squared, Values(range(N_CHUNKS)), ordered=True))
    assert found == [number * number for number in range(N_CHUNKS)]


@pytest.mark.parametrize("times", [1, ATTEMPTS - 1])
def test_a_killed_process_changes_nothing(tmp_path: Path, times: int) -> None:
    found = sorted(map_chunks(Processes(2), partial(killed, tmp_path, times), Values(range(N_CHUNKS))))
    assert len(list(tmp_path.iterdir())) == times
    assert found == [number * number for number in range(N_CHUNKS)]


def test_a_chunk_that_always_ends_its_process_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TruerankError, match=rf"chunk \d of 6: its process ended {ATTEMPTS} times.*memory") as told:
        list(map_chunks(Processes(2), partial(killed, tmp_path, 100), Values(range(N_CHUNKS))))
    assert "__main__" not in told.value.text  # others came back, so the script is not the reason


def test_who_stops_taking_ends_the_processes() -> None:
    before = set(active_children())
    results = map_chunks(Processes(2), endless, Values([0, 1, 1]))
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert not set(active_children()) - before


@pytest.mark.parametrize("name", CALLS)
def test_a_script_that_every_process_would_start_again_is_told_so(name: str, tmp_path: Path) -> None:
    if name == "dask":
        require("dask")
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(call=CALLS[name]))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert (
        "because every process loads the script again.\n" in done.stderr
    )  # a leaked semaphore may be told of after it


def test_who_types_a_command_is_told_nothing_of_scripts(tmp_path: Path) -> None:
    with pytest.raises(TruerankError) as raised:
        list(map_chunks(Processes(2), partial(killed, tmp_path, 100), Values([2])))
    assert "script" in str(raised.value)
    assert raised.value.said(for_cli=True).endswith("start fewer (--threads N).")


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Killed outright it can tell them nothing."""
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        workers = [int(started.stdout.readline()) for _ in range(2)]
        started.kill()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)
