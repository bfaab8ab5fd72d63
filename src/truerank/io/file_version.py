"""The version of a file that is read: taken when it is opened, and compared after it was read.

A file that changes in between would give values of neither version. Objects of a store have none: polars does not give
their ETag, and to ask for it would need another library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from truerank.core.errors import InputError

END, LONGEST = 8, 2**16  # bytes: after the footer, and of a footer that are compared


class ChangedInputError(InputError):
    """A file changed while it was read."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file as it is now; of Parquet also its footer, which tells versions of the same size and time apart."""

    path: Path
    inode: int
    size: int
    modified_ns: int
    footer: bytes

    @classmethod
    def of(cls, path: Path) -> FileVersion:
        """The version that has this name now; an OSError where it cannot be read."""
        status = path.stat()
        footer = _footer(path, status.st_size) if path.name.lower().endswith(".parquet") else b""
        return cls(path, status.st_ino, status.st_size, status.st_mtime_ns, footer)

    def check(self) -> None:
        """Refuse the file if it has changed, or is gone."""
        try:
            is_same = FileVersion.of(self.path) == self
        except OSError:
            is_same = False
        if not is_same:
            raise changed_input(self.path)


def _footer(path: Path, size: int) -> bytes:
    """A digest of the footer of a Parquet file, whose length stands 8 bytes before its end."""
    with path.open("rb", buffering=0) as stream:
        stream.seek(max(size - END, 0))
        end = stream.read(END)
        length = min(int.from_bytes(end[:4], "little"), LONGEST, size)
        stream.seek(max(size - END - length, 0))
        return hashlib.blake2b(stream.read(length) + end, digest_size=16).digest()


def changed_input(path: Path) -> ChangedInputError:
    return ChangedInputError(
        f"{path}: changed while it was read, so there are no results. Start again when nothing writes to it, or read a "
        "copy of it."
    )


def versions_of(paths: Iterable[Path]) -> tuple[FileVersion, ...]:
    """The versions of files that are there; one that cannot be read is reported by what reads it."""
    versions = []
    for path in paths:
        try:
            versions.append(FileVersion.of(path))
        except OSError:
            continue
    return tuple(versions)


@contextmanager
def unchanged(versions: Iterable[FileVersion]) -> Iterator[None]:
    """Refuse files that have changed when they were read here, also where reading fails because of that."""
    versions = tuple(versions)
    try:
        yield
    except (Exception, pl.exceptions.PanicException):
        check_unchanged(versions)
        raise
    check_unchanged(versions)


def check_unchanged(versions: Iterable[FileVersion]) -> None:
    for version in versions:
        version.check()
