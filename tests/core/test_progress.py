"""Progress in Python: a bar, lines or a function; and a stop at any moment leaves nothing behind."""

from __future__ import annotations

import io
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core import progress as module
from truerank.core.progress import watching
from truerank.exposure.policies.targets import RankColumn

RNG = np.random.default_rng(0)
TRUTH = RNG.random((40, 12)) < 0.3
USER, ITEM = (part.ravel() for part in np.indices(TRUTH.shape))
LABELS = pl.DataFrame({"user": USER, "item": ITEM, "label": TRUTH.ravel().astype(int)})
SCORES = {"a": RNG.normal(size=TRUTH.shape), "b": RNG.normal(size=TRUTH.shape)}
LOG = pl.DataFrame(
    {"session": USER, "item": ITEM, "position": ITEM + 1, "reward": TRUTH.ravel().astype(int), "new": 12 - ITEM}
)


def evaluated(how: Any) -> tr.Results:
    return tr.evaluate(SCORES, LABELS, metrics=["Recall@5"], progress=how)


def off_policy(how: Any) -> tr.Results:
    return tr.off_policy(LOG, {"new": RankColumn("new")}, position="exp:0.9", progress=how)


def fitted(how: Any) -> Any:
    return tr.models.IALS(iterations=3).fit(tr.read(LABELS), seed=0, progress=how).user


CALLS: dict[str, Callable[[Any], Any]] = {"evaluate": evaluated, "off_policy": off_policy, "fit": fitted}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", -1.0)


@pytest.fixture
def untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What was there before is there after: threads, temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("untouched")
def test_a_function_is_told_and_changes_nothing(name: str) -> None:
    seen: list[tuple[str, int, int]] = []
    told = CALLS[name](lambda *each: seen.append(each))
    plain = CALLS[name](None)
    assert np.array_equal(told, plain) if name == "fit" else told == plain
    assert seen
    assert all(0 <= done <= total for _, done, total in seen)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("untouched")
def test_lines_where_there_is_no_terminal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    CALLS[name](True)
    assert " of " in capsys.readouterr().err
    CALLS[name](False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.usefixtures("untouched")
def test_a_stop_leaves_nothing_and_the_next_call_works(name: str, at: int) -> None:
    calls = iter(range(at))

    def stop(what: str, done: int, total: int) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    try:
        CALLS[name](stop)
    except KeyboardInterrupt:
        pass
    else:
        assert at == 1  # it was told once only
    CALLS[name](None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("untouched")
def test_a_bar_in_a_terminal_goes_away_however_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    with suppress(KeyboardInterrupt), watching(True) as say:
        assert say is not None
        say("ranking \x1b[31m", 1, 2)
        raise KeyboardInterrupt
    assert "ranking" in screen.getvalue()
    assert "\x1b[31m " not in screen.getvalue()
