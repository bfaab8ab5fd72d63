"""Checkpoints of a long command in a folder that it can go on with: one process, one question, checked blocks."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.io.atomic_write import whole_file, writing
from truerank.io.paths import locked

BLOCK = ".block"  # the ending of the files of blocks
FORMAT = "truerank block 2"


class DamagedBlockError(InputError):
    """A block that is not as it was written for this question and this place: it can be made again."""


@contextmanager
def working(path: Path) -> Iterator[Path]:
    """The folder of a long command, made where it is missing, for this process alone; free when the process ends."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        try:
            handle = locked(path)
        except BlockingIOError:
            raise InputError(
                f"{path}: another process is working in this folder. Wait for it, or choose another."
            ) from None
    try:
        yield path
    finally:
        if handle is not None:
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
            temporary.write_bytes(self._head(path, content) + content)

    def read(self, path: Path, columns: list[str] | None = None) -> pl.DataFrame:
        """The table, if not a byte of it has changed and it is this block of this question."""
        return pl.read_parquet(io.BytesIO(self._content(path)), columns=columns)

    def drop_damaged(self, paths: Iterable[Path]) -> list[str]:
        """Remove blocks that are not as they were written, and name them.

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
        if line + end != self._head(path, content):
            raise DamagedBlockError(f"{path}: is not the block that was written. Start again to make it anew.")
        return content

    def _head(self, path: Path, content: bytes) -> bytes:
        """The first line of a block; its checksum is of the question, of the line before it and of the content.

        >>> Blocks(b"q", "")._head(Path("a.block"), b"")[:29]
        b'truerank block 2 / a.block / '
        """
        line = f"{FORMAT} / {path.name} / ".encode()
        return line + hashlib.sha256(self.question + line + content).hexdigest().encode() + b"\n"


def _change(key: str, before: Any, now: Any) -> str:
    """What is different, in words; of several things by name, which of them."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return f"{key}: {_short(names)} changed"
    return f"{key}: {_short(before)}, now {_short(now)}"


def _short(value: Any) -> str:
    text = "absent" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
