"""The one way to write a folder of several files: aside, on disk, marked with checksums, then renamed into its place.

A folder that `force` replaces is first renamed to a random name beside it, and removed entry by entry when the new one
is in its place. A kill leaves the old one, the new one or, between the two renames, the old one under its random name,
which the next call reports. Nothing is removed that was not made here under a random name or checked entry by entry.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from truerank.core.errors import InputError
from truerank.core.wording import option
from truerank.io.marker import MARKER, changed_files, files_in, marker_of, read_marker, said
from truerank.io.whole import make_private, real, sync, temporary_name, whole_file, writing


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder that truerank writes, and the names of all files in it; * stands for a part of a name."""

    name: str
    files: tuple[str, ...]

    def includes(self, name: str) -> bool:
        """Whether truerank writes a file of this relative name into such a folder.

        >>> split = FolderKind("split", ("train.csv", "fold-*/train.csv"))
        >>> [split.includes(name) for name in ("fold-2/train.csv", "train.csv", "notes.txt", "fold-2/a/train.csv")]
        [True, True, False, False]
        """
        parts = PurePosixPath(name).parts
        patterns = (PurePosixPath(pattern).parts for pattern in (*self.files, MARKER))
        return any(len(parts) == len(each) and all(map(fnmatchcase, parts, each)) for each in patterns)


@contextmanager
def whole_folder(path: Path, *, kind: FolderKind, force: bool = False) -> Iterator[Path]:
    """A folder to write into that takes the place of `path` if all goes well and vanishes if not.

    `path` may be new or empty. One that holds anything is refused; with `force` it is replaced if truerank made it:
    it has a marker of this kind, and nothing in it that the marker does not list or that was changed since.
    """
    path = real(path)
    check_place(path, kind=kind, force=force)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = temporary_name(path)
        part.mkdir()
        number = part.stat().st_ino
    try:
        with writing(path):
            mode = make_private(part, 0o700)
        try:
            yield part
        except InputError as error:  # by the name that the user gave
            raise type(error)(error.marked.replace(str(part), str(path))) from None
        with writing(path):
            _finish(part, kind=kind)
            check_place(path, kind=kind, force=force)
            part.chmod(stat.S_IMODE(path.stat().st_mode) if path.is_dir() else mode)
            _put_in_place(part, path, kind=kind)
    finally:
        with suppress(OSError):  # it has taken its place
            if part.lstat().st_ino == number:  # the very folder that was made above
                shutil.rmtree(part, ignore_errors=True)


def check_place(path: Path, *, kind: FolderKind, force: bool = False, inputs: Iterable[Path] = ()) -> None:
    """Refuse a place where no folder can be written without loss, before any work is done.

    A folder is replaced by one of its own kind only: a study of hours is none of a set of figures. `inputs` are what is
    read to make the new one: a folder that holds one of them is not replaced.
    """
    above = next((parent for parent in real(path).parents if parent.is_dir()), real(path))
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written, {above} is closed. Choose another place.")
    if not os.path.lexists(real(path)):
        _check_interrupted(path)
        return
    if not path.is_dir():
        what = "a link that leads nowhere" if path.is_symlink() and not path.exists() else "a file"
        raise InputError(f"{path}: is {what}; expected the name of a folder to write.")
    is_mount = os.path.ismount(path)
    if is_mount or path.samefile(Path()):
        what = "a mount point" if is_mount else "the current folder"
        raise InputError(f"{path}: is {what}, which cannot be replaced. Choose a folder inside it, or another one.")
    within = [each for each in inputs if real(each).is_relative_to(real(path))]
    if within:
        raise InputError(f"{path}: {within[0]} is read from there, and would be replaced. Choose another folder.")
    held = files_in(path)
    if not held and not (path / MARKER).exists():
        return
    found = read_marker(path)
    if found is None:
        raise InputError(f"{path}: holds {said(held)}; expected a new or empty folder. Choose another.")
    if found.kind != kind.name:
        raise InputError(
            f"{path}: holds a {found.kind}; expected a new or empty folder for a {kind.name}. Choose another."
        )
    foreign = [name for name in held if not kind.includes(name)]
    changed = foreign or changed_files(path, found)
    if changed:
        raise InputError(
            f"{path}: holds a {found.kind}, and {said(changed)} that truerank did not write so. Move that away, or "
            "choose another folder."
        )
    if not force:
        raise InputError(
            f"{path}: holds a {found.kind} already. Choose another folder, or replace it with "
            f"{option('force', 'force=True')}."
        )


def _check_interrupted(path: Path) -> None:
    """Report a folder that a killed call has renamed and not replaced: nothing but the user's hand removes it."""
    pattern = re.compile(re.escape(f".{real(path).name}.") + r"[0-9a-f]{16}\.old")
    try:
        renamed = sorted(entry.name for entry in real(path).parent.iterdir() if pattern.fullmatch(entry.name))
    except OSError:
        return
    if renamed:
        raise InputError(
            f"{path}: an interrupted call has renamed the earlier folder to {said(renamed)}, in the same place. Rename "
            "it back to keep it, or delete it, and start again."
        )


def seal(folder: Path, *, kind: str, names: Iterable[str], advice: str | None = None) -> None:
    """Mark a folder that grew in its place as finished, with these files."""
    with whole_file(folder / MARKER, advice=advice) as temporary:
        temporary.write_bytes(marker_of(folder, kind=kind, names=names).encoded())


def unseal(folder: Path) -> None:
    """A finished folder is about to change: until it is sealed again, readers refuse it."""
    if read_marker(folder) is None:
        return
    with writing(folder):
        (folder / MARKER).unlink(missing_ok=True)
        sync(folder)


# --------------------------------------------------------------------------------------------------------------- steps


def _finish(part: Path, *, kind: FolderKind) -> None:
    """All files and folders on disk, then the marker."""
    names = files_in(part)
    unnamed = [name for name in names if not kind.includes(name)]
    if unnamed:
        raise AssertionError(f"{said(unnamed)}: not among the files of a {kind.name}, so it could never be replaced")
    for name in names:
        sync(part / name)
    (part / MARKER).write_bytes(marker_of(part, kind=kind.name, names=names).encoded())
    sync(part / MARKER)
    for place, _, _ in os.walk(part, topdown=False):
        sync(Path(place))


def _put_in_place(part: Path, path: Path, *, kind: FolderKind) -> None:
    """By one rename where `path` is new or empty, else by two."""
    renamed = None
    if path.is_dir() and any(path.iterdir()):
        renamed = path.with_name(f".{path.name}.{secrets.token_hex(8)}.old")
        path.rename(renamed)
    try:
        part.rename(path)  # refused by the system where something has come there meanwhile
        try:
            sync(path.parent)
        except OSError:
            path.rename(part)
            raise
    except OSError:
        if renamed is not None:
            renamed.rename(path)
        raise
    if renamed is not None:
        _remove(renamed, kind=kind)


def _remove(folder: Path, *, kind: FolderKind) -> None:
    """Remove files that truerank has written there, and folders that are then empty; links are never followed."""
    for place, _, files in os.walk(folder, topdown=False):
        within = Path(place).relative_to(folder)
        for name in files:
            if kind.includes((within / name).as_posix()):
                with suppress(OSError):
                    (Path(place) / name).unlink()
        with suppress(OSError):  # what is not empty holds something of others
            Path(place).rmdir()
