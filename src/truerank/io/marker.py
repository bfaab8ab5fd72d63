"""The marker of a folder that was written whole: what it is, and the size and checksum of every file in it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

import msgspec

from truerank.core.errors import InputError, some
from truerank.version import __version__

MARKER = "truerank.json"
FORMAT = 1
WRITTEN_BY = b'"made_by": "truerank '  # in every marker, and in no results
HASHED = 2**28  # bytes of a single file up to which its checksum is taken before it is read
NEAR = 2  # how far up the marker of a single file is looked for: a folder may have folders


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as it was written."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Marker:
    """What a folder holds; a folder without its marker is not finished."""

    kind: str
    files: Mapping[str, Entry]
    made_by: str = f"truerank {__version__}"
    format: int = FORMAT

    def encoded(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def marker_of(folder: Path, *, kind: str, names: Iterable[str] | None = None) -> Marker:
    """The marker that fits what a folder holds now: all its files, or those named."""
    listed = files_in(folder) if names is None else sorted(names)
    return Marker(kind, {name: _entry(folder / name) for name in listed})


def read_marker(folder: Path) -> Marker | None:
    """The marker of a folder, None where it has none."""
    path = folder / MARKER
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    found = _decoded(content)
    if found is None:
        raise InputError(f"{path}: is no marker that truerank wrote. Make the folder again.")
    if found.format != FORMAT:
        raise InputError(f"{path}: format {found.format}, expected {FORMAT}: of another version. Make it again.")
    return found


def _decoded(content: bytes) -> Marker | None:
    """A marker whose names all lie in its folder; None for any other content."""
    try:
        found = msgspec.json.decode(content, type=Marker)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if all(_is_inside(name) for name in found.files) else None


def _is_inside(name: str) -> bool:
    """
    >>> [_is_inside(name) for name in ("a.csv", "fold-1/a.csv", "../a.csv", "/etc/passwd", "")]
    [True, True, False, False, False]
    """
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in name


def files_in(folder: Path) -> list[str]:
    """The files of a folder and of those in it, by their relative names, without its marker.

    A folder without files is listed too, with a / at its end: it is something that no marker lists.
    """
    found = []
    for place, folders, files in os.walk(folder):
        within = Path(place).relative_to(folder)
        names = [(within / name).as_posix() for name in files]
        linked = [(within / name).as_posix() for name in folders if (Path(place) / name).is_symlink()]
        found += [name for name in (*names, *linked) if name != MARKER]
        if not files and not folders and Path(place) != folder:
            found.append(f"{within.as_posix()}/")
    return sorted(found)


def check_folder(folder: Path, *, kind: str, expected: str) -> Marker:
    """The marker of a folder whose files are all there as they were written; else a refusal that names the file.

    Files that the marker does not list are no part of the folder, and may lie there.
    """
    found = read_marker(folder)
    if found is None:
        raise InputError(f"{folder}: is not complete (it has no {MARKER}); expected {expected}.")
    if found.kind != kind:
        raise InputError(f"{folder}: holds a {found.kind}; expected {expected}.")
    for name, entry in found.files.items():
        _check(folder / name, entry, most=None)
    return found


def changed_files(folder: Path, marker: Marker) -> list[str]:
    """Files that are not as the marker says, or that it does not list; those that are gone are no matter."""
    others = [name for name in files_in(folder) if name not in marker.files]
    return [*others, *(name for name, entry in marker.files.items() if _is_other(folder / name, entry))]


def check_member(path: Path) -> None:
    """Refuse a single file that is not what truerank wrote into the folder it lies in.

    The size is always compared, the checksum of files up to 256 MB: reading them once more costs little, and larger
    ones are mostly read in chunks. A file that no marker lists is the user's own, and not looked at, and so is a file
    of the marker's name that truerank did not write as one.
    """
    parents = Path(os.path.abspath(path)).parents[:NEAR]  # noqa: PTH100 - as the user named it, links and all
    for folder in parents:
        if (folder / MARKER).is_file() and not _is_foreign(folder / MARKER):
            name = Path(os.path.abspath(path)).relative_to(folder).as_posix()  # noqa: PTH100
            found = read_marker(folder)
            if found is not None and name in found.files:
                _check(path, found.files[name], most=HASHED)
                return


def _is_foreign(path: Path) -> bool:
    """Whether a file of the marker's name is something else, such as results of `--out truerank.json`."""
    try:
        return WRITTEN_BY not in path.read_bytes()
    except OSError:
        return False  # reading it reports why


def _check(path: Path, entry: Entry, *, most: int | None) -> None:
    try:
        status = path.stat()
    except OSError:
        raise InputError(
            f"{path}: is missing, and {MARKER} there lists it: the folder is incomplete. Make it again."
        ) from None
    same = status.st_size == entry.bytes
    if same and (most is None or status.st_size <= most):
        same = digest(path, status.st_size, status.st_mtime_ns, status.st_ino) == entry.sha256
    if not same:
        raise InputError(
            f"{path}: was altered after truerank wrote it (it does not fit {MARKER} there). Make the folder again; if "
            f"the change was meant, remove {MARKER}."
        )


def _is_other(path: Path, entry: Entry) -> bool:
    return os.path.lexists(path) and (path.is_symlink() or not path.is_file() or _entry(path) != entry)


def _entry(path: Path) -> Entry:
    status = path.stat()
    return Entry(status.st_size, digest(path, status.st_size, status.st_mtime_ns, status.st_ino))


@lru_cache(maxsize=256)
def digest(path: Path, size: int, changed: int, number: int) -> str:
    """The SHA-256 of a file; size, time of change and inode say that it is still the one that was read before."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


def said(names: list[str]) -> str:
    """A few names for a message."""
    return some(names, most=3)
