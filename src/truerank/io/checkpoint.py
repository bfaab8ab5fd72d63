"""Checkpoints of a long command in a folder that it can go on with: one process, one question, checked blocks."""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.io.atomic_write import whole_file, writing

BLOCK = ".block"  # the ending of the files of blocks
FORMAT = "truerank block 1"


class DamagedBlockError(InputError):
    """A block that is not as it was written, or stands in the place of another: it can be made again."""


class OtherBlockError(InputError):
    """A block as it was written, but of another question."""


@contextmanager
def working(path: Path) -> Iterator[Path]:
    """The folder of a long command, made where it is missing, for this process alone; free when the process ends.

    The folder itself is locked, no file in it. Windows cannot do that: there nothing is locked.
    """
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield path
        return
    import fcntl

    with writing(path):
        handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(handle)
        raise InputError(
            f"{path}: another process is working in this folder. Wait for it, or choose another."
        ) from None
    except OSError:
        pass  # a file system without locks
    try:
        yield path
    finally:
        os.close(handle)


def keep_question(path: Path, question: Mapping[str, Any], *, what: str, advice: str | None = None) -> bytes:
    """Write down the question in a new folder, or refuse one that holds the answers of something else.

    Gives the question as it is written, to tell blocks of other questions by.
    """
    wanted = msgspec.json.format(msgspec.json.encode(question), indent=1)
    written = b""
    if path.is_file():
        try:
            written = path.read_bytes()
            before = msgspec.json.decode(written, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
            raise InputError(f"{path}: cannot be read ({error}). Choose a new folder.") from None
        now = msgspec.json.decode(wanted, type=dict[str, Any])
        # a key that is missing is not one without a value: its name was altered
        changed = [key for key in {**before, **now} if (key, before.get(key)) not in now.items() or key not in before]
        if changed:
            changes = "; ".join(_change(key, before.get(key), now.get(key)) for key in changed[:3])
            raise InputError(
                f"{path.parent}: holds a {what} of something else ({changes}). Use the same inputs and settings to go "
                "on with it, or choose a new folder."
            )
    elif any(not entry.name.startswith(".") for entry in path.parent.iterdir()):
        raise InputError(f"{path.parent}: holds files of something else. Choose an empty or a new folder.")
    if written != wanted:
        with whole_file(path, advice=advice) as temporary:
            temporary.write_bytes(wanted)
    return wanted


@record
class Blocks:
    """Tables that belong to one question: each file says whose it is and what its bytes must be."""

    question: bytes
    advice: str  # what to do where one cannot be written

    def write(self, table: pl.DataFrame, path: Path) -> None:
        """A line with name, question and checksum, then the table as Parquet."""
        stream = io.BytesIO()
        table.write_parquet(stream, compression="zstd")
        content = stream.getvalue()
        with whole_file(path, advice=self.advice) as temporary:
            temporary.write_bytes(_head(path.name, self._digest(), content) + content)

    def read(self, path: Path, columns: list[str] | None = None) -> pl.DataFrame:
        """The table, if not a byte of it has changed and it is this block of this question."""
        return pl.read_parquet(io.BytesIO(self._content(path)), columns=columns)

    def drop_damaged(self, paths: Iterable[Path]) -> list[str]:
        """Remove blocks that are not as they were written, and name them; those of another question are refused.

        `paths` are of files whose names truerank alone gives: others of the same ending may be the user's.
        """
        names = []
        for path in paths:
            try:
                self._content(path)
            except DamagedBlockError:
                names.append(path.name)
                path.unlink(missing_ok=True)
        return names

    def _content(self, path: Path) -> bytes:
        try:
            line, end, content = path.read_bytes().partition(b"\n")
        except OSError as error:
            raise DamagedBlockError(
                f"{path}: cannot be read ({error.strerror}). Start again to make it anew."
            ) from None
        _, _, question, *_ = (*line.decode(errors="replace").split(" / "), "", "", "")
        if line + end != _head(path.name, question, content):
            raise DamagedBlockError(f"{path}: is not the block that was written. Start again to make it anew.")
        if question != self._digest():
            raise OtherBlockError(f"{path}: was made for another version of the question. Choose a new folder.")
        return content

    def _digest(self) -> str:
        return hashlib.sha256(self.question).hexdigest()


def _head(name: str, question: str, content: bytes) -> bytes:
    """The first line of a block; its checksum is of the line before it and of the content.

    >>> _head("a.block", "q", b"")[:33]
    b'truerank block 1 / a.block / q / '
    """
    line = f"{FORMAT} / {name} / {question} / ".encode()
    return line + hashlib.sha256(line + content).hexdigest().encode() + b"\n"


def _change(key: str, before: Any, now: Any) -> str:
    """What is different, in words; of several things by name, which of them."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return f"{key}: {_short(names)} changed"
    return f"{key}: {_short(before)}, now {_short(now)}"


def _short(value: Any) -> str:
    text = "absent" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
