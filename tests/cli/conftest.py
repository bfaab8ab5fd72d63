"""A small valid world of files, and the command line called as a user calls it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from calling import Called, Run, with_exposure, words_of

import truerank.cli

USERS = (1, 2, 3, 4)
ITEMS = (10, 20, 30, 40, 50)
RELEVANT = {(1, 10), (1, 30), (2, 20), (3, 50), (4, 10), (4, 40)}
SCORES = np.array(
    [
        [5.0, 4.0, 3.0, 2.0, 1.0],
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [2.0, 1.0, 5.0, 4.0, 3.0],
        [3.0, 5.0, 1.0, 2.0, 4.0],
    ]
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four users and five items, every pair labelled and scored; the current folder, so that names stay short."""
    pairs = [(user, item) for user in USERS for item in ITEMS]
    _table(tmp_path / "labels.csv", "label", [(*pair, int(pair in RELEVANT)) for pair in pairs])
    _table(tmp_path / "sample.csv", "label", [(*pair, int(pair in RELEVANT)) for pair in pairs if sum(pair) % 3])
    _table(tmp_path / "b.csv", "score", [(*pair, sum(pair) % 7) for pair in pairs])
    _table(tmp_path / "top.csv", "rank", [(user, ITEMS[(user + r) % 5], r) for user in USERS for r in (1, 2)])
    (tmp_path / "train.csv").write_text("user,item\n1,20\n2,30\n")
    np.savez(tmp_path / "a.npz", scores=SCORES, users=np.array(USERS), items=np.array(ITEMS))
    (tmp_path / "result").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Call `truerank ARGS` in this process, in the folder of the files; labels are full where nothing else is said.

    ARGS are one text, or words.
    """

    def call(*args: str) -> Called:
        monkeypatch.setattr(sys, "argv", ["truerank", *with_exposure(words_of(args))])
        capfd.readouterr()
        try:
            truerank.cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        return Called(code, *capfd.readouterr())

    monkeypatch.delenv("TRUERANK_DEBUG", raising=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _table(path: Path, value: str, rows: list[tuple[int, ...]]) -> None:
    lines = [f"user,item,{value}", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
