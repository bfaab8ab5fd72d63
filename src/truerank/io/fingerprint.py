"""What a file is: its size and a hash of its bytes, by which results name it, and its version while it is read.

A file that changes while it is read would give values of neither version, so the version is taken when it is opened and
compared after it was read. Objects of a store have none: polars does not give their ETag, and to ask for it would need
another library.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from truerank.core.errors import InputError
from truerank.core.provenance import Input
from truerank.io.paths import is_remote, parts_of, url_of

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


# -------------------------------------------------------------------------------------------------------------- hashes


def fingerprint(path: Path) -> tuple[int, str] | None:
    """Size and hash of a file, or of the part files of a folder or a glob; None for what can be read only once.

    Of one file the hash is that of `sha256sum FILE`; of parts it is that of the lines which `sha256sum` prints for them
    in the order of their names, given relative to the folder they share. Bytes are streamed, so memory does not grow.
    """
    parts = parts_of(path)
    if parts is None:
        return _of_file(path) if path.is_file() or not path.exists() else None
    hashes = [_of_file(part) for part in parts]
    shared = path if path.is_dir() else Path(os.path.commonpath([part.parent for part in parts]))
    names = (part.relative_to(shared).as_posix() for part in parts)
    lines = "".join(f"{sha256}  {name}\n" for (_, sha256), name in zip(hashes, names, strict=True))
    return sum(size for size, _ in hashes), hashlib.sha256(lines.encode()).hexdigest()


def input_of(path: Path, *, role: str, name: str | None = None, most: int | None = None, **counts: int | None) -> Input:
    """What results say of a file that was read.

    A hash reads every byte, so files of more than `most` bytes can be left without one.
    """
    parts = parts_of(path)
    files = parts or [path]
    endings = {"".join(file.suffixes[-2 if file.suffix == ".gz" else -1 :]).lower() for file in files}
    kind = ", ".join(sorted(ending.lstrip(".") for ending in endings if ending)) or None
    size = hashed = None
    if not is_remote(path) and (parts is not None or path.is_file() or not path.exists()):
        try:
            size = sum(file.stat().st_size for file in files)
        except OSError:
            raise InputError(f"{path}: no such file. Check the path.") from None
        hashed = fingerprint(path) if most is None or size <= most else None
    sha256 = None if hashed is None else hashed[1]
    return Input(role=role, source=url_of(path), name=name, format=kind, bytes=size, sha256=sha256, **counts)


def _of_file(path: Path) -> tuple[int, str]:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
            return stream.tell(), digest.hexdigest()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
