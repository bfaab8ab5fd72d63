"""What reaches a terminal: data never as sequences that it would obey, messages never longer than can be read."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from processes import NEVER, TRUERANK, environment

import truerank as tr
from truerank.core.errors import InputError
from truerank.core.escaping import LONGEST_SENTENCE, printable, sentence

EVIL = "\x1b]0;owned\x07\x1b[31mred\x9b\u202e\x7f"
OBEYED = (b"\x1b]", b"\x1b[31mred", b"\x07", "\x9b".encode(), "\u202e".encode(), b"\x7f")


def on_terminal(folder: Path, *words: str | bytes) -> tuple[int, bytes]:
    """The exit code of a command and all that a terminal got from it."""
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [*TRUERANK, *words], cwd=folder, env=environment({"TERM": "xterm-256color"}),
        stdin=terminal, stdout=terminal, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    parts = []
    while True:
        try:
            part = os.read(control, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(control)
    return process.wait(timeout=60), b"".join(parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels and scores whose users, items, columns and names hold what a terminal obeys."""
    folder = tmp_path_factory.mktemp("evil")
    users, items = [f"u{at}{EVIL}" for at in range(3)], [f"i{at}{EVIL}" for at in range(4)]
    pairs = [(user, item) for user in users for item in items]
    rows = [f"{user},{item},{at % 2},{at}" for at, (user, item) in enumerate(pairs)]
    (folder / "labels.csv").write_text("\n".join([f"user,item,label,x{EVIL}", *rows]) + "\n")
    rows = [f"{user},{item},{at * 7 % 5}" for at, (user, item) in enumerate(pairs)]
    (folder / "scores.csv").write_text("\n".join(["user,item,score", *rows]) + "\n")
    return folder


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (
            ("evaluate", "labels.csv", "--exposure", "full", "--scores", f"m{EVIL}=scores.csv", "--metric", "Recall@2"),
            0,
        ),
        ((f"{EVIL}",), 2),
    ],
)
def test_data_is_not_obeyed(words: tuple[str, ...], code: int, folder: Path) -> None:
    found, shown = on_terminal(folder, *words)
    assert found == code, shown
    assert not [each for each in OBEYED if each in shown], shown
    assert not NEVER.search(shown.decode(errors="replace")), shown


def test_a_message_never_fills_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("user,item,label\n" + "a,b," + "x" * 1_000_000 + "\n" + "c,d,1\n")
    with pytest.raises(InputError) as refused:
        tr.read(path, positive=">3")
    assert len(str(refused.value)) < LONGEST_SENTENCE
    path.write_text("user,item,label\n" + "a,b," + "x " * 500_000 + "\n" + "c,d,1\n")
    with pytest.raises(InputError) as refused:
        tr.read(path, positive=">3")
    assert len(str(refused.value)) < LONGEST_SENTENCE


def test_all_that_is_no_text_is_written_out() -> None:
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x2028, 0xDC80):
        shown = printable(f"a{chr(code)}b")
        assert shown.startswith("a\\")
        assert shown.isprintable()
        shown.encode()
    assert printable("a\nb\tc\x1b", lines=True) == "a\nb\tc\\x1b"
    assert printable("naïve 東京 👩\u200d🔬 é") == "naïve 東京 👩\u200d🔬 é"
    assert sentence("short") == "short"


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.parquet"])
def test_no_pipe_is_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    (tmp_path / "labels.csv").write_text("user,item,label\n1,2,1\n")
    for words in (["advise", name], ["evaluate", "labels.csv", "--exposure", "full", "--scores", f"m={name}"]):
        ended = subprocess.run(
            [*TRUERANK, *words],
            cwd=tmp_path,
            env=environment({}),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode == 2
        assert f"{name}: is a pipe or a device" in ended.stderr
