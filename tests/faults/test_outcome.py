"""What the system refuses becomes one sentence and exit code 2, whichever library it comes through."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from refusals import refused

from truerank.cli import Interruption, outcome, terminal
from truerank.cli.outcome import told
from truerank.models import load


@pytest.mark.parametrize(
    ("error", "place", "reason"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a.json"), "a.json", "No space left on device"),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), "a file", "ulimit -f"),
        (OSError("4096 requested and 0 written"), "a file", "4096 requested and 0 written"),  # numpy has no number
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES), b"a\xff"), "a", "Permission denied"),
        (pl.exceptions.ComputeError("No space left on device (os error 28)"), "a file", "No space left on device"),
        (MemoryError("Unable to allocate 1 TiB"), "there is not enough memory", "Unable to allocate 1 TiB"),
        (MemoryError(), "there is not enough memory", "Take less"),
    ],
)
def test_what_the_system_refuses_is_no_internal_error(error: Exception, place: str, reason: str) -> None:
    sentence, code = told(error)
    assert code == 2
    assert sentence.startswith(place)
    assert reason in sentence
    assert sentence.endswith(".")


def test_other_errors_are_internal() -> None:
    assert told(KeyError("x"))[1] == 1
    assert told(pl.exceptions.ComputeError("a column is missing"))[1] == 1


def test_too_few_addresses_are_refused_before_anything_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    least = outcome.LEAST_SPACE + outcome.FOR_A_CORE * (os.cpu_count() or 1)
    for limit in (resource.RLIM_INFINITY, least):
        monkeypatch.setattr(resource, "getrlimit", lambda kind, limit=limit: (limit, limit))
        outcome.check_space()
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (least - 1, least))
    with refused("ulimit -v"):
        outcome.check_space()


def test_a_swallowed_interruption_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a destructor no exception can leave: the signal comes once more."""
    sent = threading.Event()
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.set() if number == signal.SIGTERM else None)
    Interruption()._unraisable(SimpleNamespace(exc_type=KeyboardInterrupt))
    assert sent.wait(timeout=10)


def test_messages_that_cannot_be_written_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", encoding="ascii") as stream:  # noqa: PTH123
        monkeypatch.setattr(sys, "stderr", stream)
        terminal.say("no room, X²")
        monkeypatch.undo()
        with pytest.raises(OSError, match="No space"):
            stream.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def test_libraries_load_where_the_user_has_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container whose user is a mere number: altair asks for a home when it loads."""

    def unknown(*_: object) -> Path:
        if "HOME" not in os.environ:
            raise RuntimeError("Could not determine home directory.")
        return Path(os.environ["HOME"])

    (tmp_path / "asks_for_home.py").write_text("from pathlib import Path\nhome = str(Path.home())\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert load("asks_for_home", install="it", who="a test").home == os.sep
    assert "HOME" not in os.environ
