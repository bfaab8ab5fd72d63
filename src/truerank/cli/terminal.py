"""The edge of the process: what is written to standard output and standard error, and what happens when it cannot be.

Results that cannot be written are an error, a message that cannot be written is not: results are never lost for it. A
reader that has left (`truerank train --list | head -1`) has all it wanted. What people read holds nothing that a
terminal would obey (`core/escaping.py`); documents (JSON, CSV) are data and go out as they are.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import Any, TextIO

from truerank.core.errors import InputError
from truerank.core.escaping import printable, sentence


def say(text: str) -> None:
    """One line to standard error, if it can be written; in a terminal as many as its words need."""
    line = sentence(text)
    if sys.stderr is not None and sys.stderr.isatty():
        from textwrap import fill

        line = fill(line, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    tell(f"{line}\n")


def tell(text: str) -> None:
    """Lines to standard error as they are, if they can be written."""
    with suppress(OSError, ValueError):  # full, closed, or its reader has left
        letters = sys.stderr.encoding or "utf-8"
        sys.stderr.write(text.encode(letters, "backslashreplace").decode(letters))
        sys.stderr.flush()


def show(text: str) -> None:
    """A line for people to standard output."""
    write(f"{printable(text)}\n".encode())


def write(content: bytes) -> None:
    """Content to standard output, all of it, unless its reader has left."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        drop_output()
        raise InputError(
            f"standard output: cannot be written ({error.strerror}). Make room, or name a file with --out."
        ) from None


def width() -> int | None:
    """The columns of the terminal that standard output is; None where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def flush() -> None:
    """Write what is still held back, before the process says that it is done."""
    write(b"")


def drop_output() -> None:
    """Standard output leads nowhere from now on, so that what is held back can do no more harm at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    with suppress(OSError):
        sys.stdout.flush()


def open_closed() -> None:
    """Give each standard stream that the process was started without its descriptor back.

    A file would get it otherwise, and then what others print. Nothing comes in, messages go nowhere; a write to
    standard output fails, as it does for any program that is started so.
    """
    for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, _stream(number, flags))


def _stream(number: int, flags: int) -> TextIO | Any:
    try:
        os.fstat(number)
    except OSError:
        nowhere = os.open(os.devnull, flags)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
    return open(number, "r" if number == 0 else "w", encoding="utf-8", errors="backslashreplace", closefd=False)
