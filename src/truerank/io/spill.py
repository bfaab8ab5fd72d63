"""Rows set aside on disk: numbered parts in a temporary folder that vanishes whatever happens."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError

UNKNOWN = "0"  # when a process started, where the system does not tell
SCRATCH = re.compile(r"truerank-(?P<machine>[0-9a-f]{8})-(?P<process>\d+)-(?P<started>\d+)-\w{8}")


@dataclass(slots=True)
class Scratch:
    """A temporary folder, made when something is written for the first time; use it with `scratch()`."""

    within: Path | None = None
    folder: Path | None = None
    n_folders: int = 0

    def make(self, name: str) -> Path:
        """A new folder inside."""
        with writing(self.folder or self.within):
            if self.folder is None:
                self.folder = new_scratch(self.within)
            self.n_folders += 1
            folder = self.folder / f"{self.n_folders}-{name}"
            folder.mkdir()
        return folder


@contextmanager
def scratch(within: Path | None = None) -> Iterator[Scratch]:
    """A place for parts; what was written is removed at the end, after errors and Ctrl-C, too.

    What killed processes have left is removed, once for each process and place.
    """
    place = Scratch(within)
    _remove_abandoned(within)
    try:
        yield place
    finally:
        if place.folder is not None:
            shutil.rmtree(place.folder, ignore_errors=True)


def new_scratch(within: Path | None = None) -> Path:
    """A new temporary folder whose name says whose process it belongs to; those of ended processes are removed.

    The name has the machine (with the namespace of its process ids), the process id and when that process started.
    """
    _remove_abandoned(within)
    owner = f"truerank-{_machine()}-{os.getpid()}-{_started(os.getpid())}-"
    return Path(tempfile.mkdtemp(prefix=owner, dir=within))


def _remove_abandoned(within: Path | None) -> None:
    with suppress(OSError):  # there may be no place for temporary files, which is reported when one is needed
        _remove_abandoned_in(tempfile.gettempdir() if within is None else str(within))


@cache
def _remove_abandoned_in(parent: str) -> None:
    """Remove temporary folders that this user's killed processes have left on this machine, and nothing else."""
    if not hasattr(os, "getuid"):
        return  # nobody can tell there whether a process is still alive
    with os.scandir(parent) as entries:
        for entry in entries:
            owner = SCRATCH.fullmatch(entry.name)
            if owner is None or owner["machine"] != _machine() or not entry.is_dir(follow_symlinks=False):
                continue
            is_mine = entry.stat(follow_symlinks=False).st_uid == os.getuid()
            if is_mine and not _is_running(int(owner["process"]), owner["started"]):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_running(process: int, started: str) -> bool:
    """Whether a process is alive and the one that started then: ids are given again."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # of another user
    return _started(process) in (started, UNKNOWN)


def _started(process: int) -> str:
    """When a process started, in ticks since the machine did; Linux alone tells."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return UNKNOWN


@cache
def _machine() -> str:
    """The machine, and of containers each: process ids mean nothing elsewhere, but temporary folders may be shared."""
    namespace = ""
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return hashlib.blake2b(f"{platform.node()} {namespace}".encode(), digest_size=4).hexdigest()


@contextmanager
def writing(folder: Path | None) -> Iterator[None]:
    """What goes wrong while parts are written, in one sentence."""
    try:
        yield
    except OSError as error:
        where = "temporary files" if folder is None else folder
        if folder is None:
            with suppress(OSError):  # none of the usual places may be written to
                where = tempfile.gettempdir()
        reason = "no space left" if error.errno == errno.ENOSPC else error.strerror or str(error)
        raise InputError(
            f"{where}: rows cannot be set aside there ({reason}). Set TMPDIR to a folder with space for a copy of them."
        ) from None


class RowsOfPart(Protocol):
    """Rows of one chunk of a table before they are read: what another process needs to read them.

    `portable` says that they can be read on any machine, not on this one alone.
    """

    @property
    def portable(self) -> bool: ...

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame: ...


@dataclass(frozen=True, slots=True)
class RowsHeld:
    """Rows in memory, which go wherever they are sent."""

    rows: pl.DataFrame

    portable: ClassVar[bool] = True

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame:
        return self.rows if columns is None else self.rows.select(columns)


@dataclass(frozen=True, slots=True)
class SpilledRows:
    """The rows of one part: segments of a file, each a stream of Arrow IPC."""

    path: Path
    schema: Mapping[str, pl.DataType]
    segments: tuple[tuple[int, int], ...]

    portable: ClassVar[bool] = False  # the file is on this machine

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame:
        """The rows in the order in which they were added."""
        names = list(self.schema) if columns is None else list(columns)
        if not self.segments:
            return pl.DataFrame(schema={name: self.schema[name] for name in names})
        try:
            with self.path.open("rb") as file:
                frames = []
                for start, length in self.segments:
                    file.seek(start)
                    content = file.read(length)
                    if len(content) != length:
                        raise OSError(f"{length:,} bytes were written, {len(content):,} are there")
                    frames.append(pl.read_ipc_stream(io.BytesIO(content), columns=names))
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            reason = str(error).strip().split("\n")[0]
            raise InputError(
                f"{self.path}: rows that were set aside there cannot be read again ({reason}). Check the disk, or name "
                "another place with TMPDIR, and start it again."
            ) from None
        return pl.concat(frames, rechunk=True)


@dataclass(slots=True)
class Spill:
    """Parts that rows are added to, one file for each; a part is read when all rows are in.

    Every batch adds a segment to each file: a stream of Arrow IPC whose place is kept here. So no file stays open, and
    memory is that of one batch.
    """

    folder: Path
    schema: Mapping[str, pl.DataType]
    n_rows: Ints
    segments: list[list[tuple[int, int]]] = field(default_factory=list)
    n_bytes: int = 0

    @classmethod
    def new(cls, folder: Path, schema: Mapping[str, pl.DataType], *, n_parts: int) -> Spill:
        return cls(folder, dict(schema), np.zeros(n_parts, dtype=np.int64), [[] for _ in range(n_parts)])

    def add(self, rows: pl.DataFrame, part: Ints) -> None:
        """Add rows to their parts, in their order; those of part -1 are left out."""
        n_parts = len(self.n_rows)
        narrow = part.astype(np.int16 if n_parts < 2**15 else np.int64)  # sorted by radix
        order = np.argsort(narrow, kind="stable")
        count = np.bincount(part + 1, minlength=n_parts + 1)
        end = np.cumsum(count)
        ordered = rows.select(list(self.schema))[order]
        for number in np.flatnonzero(count[1:]).tolist():
            stream = io.BytesIO()
            ordered.slice(int(end[number]), int(count[number + 1])).write_ipc_stream(stream, compression="lz4")
            with writing(self.folder), self._path(number).open("ab") as file, stream.getbuffer() as view:
                start = file.tell()
                length = file.write(view)
            self.segments[number].append((start, length))
            self.n_rows[number] += count[number + 1]
            self.n_bytes += length

    def part(self, part: int) -> SpilledRows:
        """The rows of a part, in the order in which they were added; any process of this machine can read them."""
        return SpilledRows(self._path(part), self.schema, tuple(self.segments[part]))

    def _path(self, part: int) -> Path:
        return self.folder / f"{part}.arrow"
