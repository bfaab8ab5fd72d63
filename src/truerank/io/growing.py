"""Folders that grow while a long command works, and can be gone on with: one process, one question, checked blocks."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from truerank.core.errors import InputError
from truerank.io.whole import is_free, whole_file, writing

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
        handle = os.open(path, os.O_RDONLY) if os.name == "posix" else None
    try:
        if handle is not None and not is_free(handle):
            raise InputError(f"{path}: another process is working in this folder. Wait for it, or choose another.")
        yield path
    finally:
        if handle is not None:
            os.close(handle)


def keep_question(path: Path, asked: Mapping[str, Any], *, what: str, advice: str | None = None) -> bytes:
    """Write down what is asked in a new folder, or refuse one that holds the answers of something else.

    Gives the question as it is written, to tell blocks of other questions by.
    """
    wanted = msgspec.json.format(msgspec.json.encode(asked), indent=1)
    if not path.is_file():
        if any(not each.name.startswith(".") for each in path.parent.iterdir()):
            raise InputError(f"{path.parent}: holds files of something else. Choose an empty or a new folder.")
        with whole_file(path, advice=advice) as temporary:
            temporary.write_bytes(wanted)
        return wanted
    try:
        written = path.read_bytes()
        known = msgspec.json.decode(written, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read ({error}). Choose a new folder.") from None
    now = msgspec.json.decode(wanted, type=dict[str, Any])
    # a key that is missing is not one without a value: its name was altered
    changed = [key for key in {**known, **now} if key not in known or key not in now or known[key] != now[key]]
    if changed:
        said = "; ".join(_change(key, known.get(key), now.get(key)) for key in changed[:3])
        raise InputError(
            f"{path.parent}: holds a {what} of something else ({said}). Use the same inputs and settings to go on with "
            "it, or choose a new folder."
        )
    if written != wanted:
        with whole_file(path, advice=advice) as temporary:
            temporary.write_bytes(wanted)
    return wanted


@dataclass(frozen=True, slots=True)
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
            temporary.write_bytes(self._head(path.name, content) + content)

    def read(self, path: Path, columns: list[str] | None = None) -> pl.DataFrame:
        """The table, if not a byte of it has changed and it is this block of this question."""
        return pl.read_parquet(io.BytesIO(self._content(path)), columns=columns)

    def drop_damaged(self, paths: Iterable[Path]) -> list[str]:
        """Remove blocks that are not as they were written, and name them; those of another question are refused.

        `paths` are of files whose names truerank alone gives: others of the same ending may be the user's.
        """
        found = []
        for path in paths:
            try:
                self._content(path)
            except DamagedBlockError:
                found.append(path.name)
                path.unlink(missing_ok=True)
        return found

    def _content(self, path: Path) -> bytes:
        try:
            head, end, content = path.read_bytes().partition(b"\n")
        except OSError as error:
            raise DamagedBlockError(
                f"{path}: cannot be read ({error.strerror}). Start again to make it anew."
            ) from None
        if head + end != self._head(path.name, content):
            _, name, question, *_ = (*head.decode(errors="replace").split(" / "), "", "")
            if head + end != _head(name, question, content) or name != path.name:
                raise DamagedBlockError(f"{path}: is not the block that was written. Start again to make it anew.")
            raise OtherBlockError(f"{path}: was made for another version of the question. Choose a new folder.")
        return content

    def _head(self, name: str, content: bytes) -> bytes:
        return _head(name, hashlib.sha256(self.question).hexdigest(), content)


def _head(name: str, question: str, content: bytes) -> bytes:
    """The first line of a block; its checksum is of the line before it and of the content.

    >>> _head("a.block", "q", b"")[:33]
    b'truerank block 1 / a.block / q / '
    """
    line = f"{FORMAT} / {name} / {question} / ".encode()
    return line + hashlib.sha256(line + content).hexdigest().encode() + b"\n"


def _change(key: str, known: Any, asked: Any) -> str:
    """What is different, in words; of several things by name, which of them."""
    if isinstance(known, dict) and isinstance(asked, dict):
        names = [name for name in {**known, **asked} if known.get(name) != asked.get(name)]
        return f"{key}: {_short(names)} changed"
    return f"{key}: {_short(known)}, now {_short(asked)}"


def _short(value: Any) -> str:
    text = "absent" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
