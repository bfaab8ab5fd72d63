"""Files and folders that are written whole or not at all, and stay written when the power goes.

A file is written under a random name beside its own and renamed. A folder of several files is written aside, marked
with the checksum of every file, and renamed. A folder that `force` replaces is first renamed to a random name beside
it, and removed entry by entry when the new one is in its place: a kill between the two renames leaves it under that
name, which the next call reports. Nothing is removed that was not made here or checked entry by entry.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import msgspec
import polars as pl

from truerank.core.errors import InputError, error_number, some
from truerank.core.record import record
from truerank.core.wording import option
from truerank.io.paths import hash_of
from truerank.version import __version__

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNSYNCED = (errno.EINVAL, errno.ENOTSUP)  # file systems that have nothing to sync for a folder
MARKER = "truerank.json"
FORMAT = 1
WRITTEN_BY = b'"made_by": "truerank '  # in every marker, and in no results
HASHED = 2**28  # bytes of a single file up to which its checksum is taken before it is read
NEAR = 2  # how far up the marker of a single file is looked for: a folder may have folders


@contextmanager
def whole_file(path: Path, *, advice: str | None = None) -> Iterator[Path]:
    """A temporary name beside `path` that becomes `path` if all goes well and vanishes if not.

    The name is random and the file is made by this process, for its user alone while it is written. The content is on
    disk before the name is, so that no crash leaves a file that is empty or cut. A file that is replaced keeps its
    permissions, and one that may not be written to is not replaced. `advice` is what to do where it cannot be written.
    """
    with writing(path, advice=advice):
        if path.exists() and not path.is_file() and not path.is_dir():
            yield path  # a pipe or a device is written to, never replaced
            return
        path, mode = real(path), None
        temporary = path.with_name(f".truerank-{secrets.token_hex(8)}.part")
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(path.stat().st_mode)
            if not os.access(path, os.W_OK):  # a rename alone would not ask
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600))
        try:
            final = _make_private(temporary, 0o600) if mode is None else mode
            yield temporary
            temporary.chmod(final)
            _sync(temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def _make_private(path: Path, mode: int) -> int:
    """Close a new file or folder to all other users; gives the permissions that the umask has left it."""
    final = stat.S_IMODE(path.stat().st_mode)
    path.chmod(mode)
    return final


@contextmanager
def writing(path: Path, *, advice: str | None = None) -> Iterator[None]:
    """What goes wrong while something is written, in one sentence; a reader that has left is none of it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, pl.exceptions.ComputeError) as error:
        number = error_number(error)
        reason = os.strerror(number) if number else str(error).strip().split("\n")[0]
        usual = "Make room, or choose another place." if number in FULL else "Choose another place."
        raise InputError(f"{path}: cannot be written ({reason}). {advice or usual}") from None


def real(path: Path) -> Path:
    """Where links lead; of links that lead to each other one of them, which the system then refuses."""
    return Path(os.path.realpath(path))


def _sync(path: Path) -> None:
    """Have a file's content, or a folder's names, on disk."""
    if sys.platform == "win32" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise
    finally:
        os.close(handle)


# ------------------------------------------------------------------------------------------------------------- folders


@record
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
        return any(len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern)) for pattern in patterns)


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
        part = path.with_name(f".truerank-{secrets.token_hex(8)}.part")
        part.mkdir()
    try:
        with writing(path):
            mode = _make_private(part, 0o700)
        try:
            yield part
        except InputError as error:  # by the name that the user gave
            raise type(error)(error.marked.replace(str(part), str(path))) from None
        with writing(path):
            names = _files_in(part)
            assert all(map(kind.includes, names)), f"not all of {names} are files of a {kind.name}"
            for name in names:
                _sync(part / name)
            (part / MARKER).write_bytes(_encoded_marker(part, kind=kind.name, names=names))
            _sync(part / MARKER)
            for place, _, _ in os.walk(part, topdown=False):
                _sync(Path(place))
            check_place(path, kind=kind, force=force)
            part.chmod(stat.S_IMODE(path.stat().st_mode) if path.is_dir() else mode)
            _put_in_place(part, path, kind=kind)
    finally:
        shutil.rmtree(part, ignore_errors=True)  # unless it has taken its place


def _put_in_place(part: Path, path: Path, *, kind: FolderKind) -> None:
    """By one rename where `path` is new or empty, else by two; then what truerank has written into the old one goes."""
    renamed = None
    if path.is_dir() and any(path.iterdir()):
        renamed = path.with_name(f".{path.name}.{secrets.token_hex(8)}.old")
        path.rename(renamed)
    try:
        part.rename(path)  # refused by the system where something has come there meanwhile
        try:
            _sync(path.parent)
        except OSError:
            path.rename(part)
            raise
    except OSError:
        if renamed is not None:
            renamed.rename(path)
        raise
    for place, _, files in os.walk(renamed, topdown=False) if renamed is not None else ():
        folder = Path(place)
        for name in files:
            if kind.includes((folder / name).relative_to(renamed or folder).as_posix()):
                with suppress(OSError):
                    (folder / name).unlink()
        with suppress(OSError):  # what is not empty holds something of others
            folder.rmdir()


def check_place(path: Path, *, kind: FolderKind, force: bool = False, inputs: Iterable[Path] = ()) -> None:
    """Refuse a place where no folder can be written without loss, before any work is done.

    A folder is replaced by one of its own kind only: a study of hours is none of a set of figures. `inputs` are what is
    read to make the new one: a folder that holds one of them is not replaced.
    """
    above = next((parent for parent in real(path).parents if parent.is_dir()), real(path))
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written, {above} is closed. Choose another place.")
    if not os.path.lexists(real(path)):
        pattern = f".{glob.escape(real(path).name)}.{'[0-9a-f]' * 16}.old"
        with suppress(OSError):
            # a killed call has renamed it and not replaced it: nothing but the user's hand removes that
            renamed = sorted(entry.name for entry in real(path).parent.glob(pattern))
            if renamed:
                raise InputError(
                    f"{path}: an interrupted call has renamed the earlier folder to {some(renamed, most=3)}, in the "
                    "same place. Rename it back to keep it, or delete it, and start again."
                )
        return
    if not path.is_dir():
        what = "a link that leads nowhere" if path.is_symlink() and not path.exists() else "a file"
        raise InputError(f"{path}: is {what}; expected the name of a folder to write.")
    is_mount = os.path.ismount(path)
    if is_mount or path.samefile(Path()):
        what = "a mount point" if is_mount else "the current folder"
        raise InputError(f"{path}: is {what}, which cannot be replaced. Choose a folder inside it, or another one.")
    within = [source for source in inputs if real(source).is_relative_to(real(path))]
    if within:
        raise InputError(f"{path}: {within[0]} is read from there, and would be replaced. Choose another folder.")
    names = _files_in(path)
    if not names and not (path / MARKER).exists():
        return
    marker = read_marker(path)
    if marker is None:
        raise InputError(f"{path}: holds {some(names, most=3)}; expected a new or empty folder. Choose another.")
    if marker.kind != kind.name:
        raise InputError(
            f"{path}: holds a {marker.kind}; expected a new or empty folder for a {kind.name}. Choose another."
        )
    foreign = [name for name in names if not kind.includes(name)] or [
        name
        for name in names
        if (file := path / name).is_symlink() or not file.is_file() or _marked_file(file) != marker.files.get(name)
    ]
    if foreign:
        raise InputError(
            f"{path}: holds a {marker.kind}, and {some(foreign, most=3)} that truerank did not write so. Move that "
            "away, or choose another folder."
        )
    if not force:
        raise InputError(
            f"{path}: holds a {marker.kind} already. Choose another folder, or replace it with "
            f"{option('force', 'force=True')}."
        )


def seal(folder: Path, *, kind: str, names: Iterable[str], advice: str | None = None) -> None:
    """Mark a folder that grew in its place as finished, with these files."""
    with whole_file(folder / MARKER, advice=advice) as temporary:
        temporary.write_bytes(_encoded_marker(folder, kind=kind, names=names))


def unseal(folder: Path) -> None:
    """A finished folder is about to change: until it is sealed again, readers refuse it."""
    if read_marker(folder) is not None:
        with writing(folder):
            (folder / MARKER).unlink(missing_ok=True)
            _sync(folder)


# ------------------------------------------------------------------------------------------------------------- markers


@record
class MarkedFile:
    """A file as it was written."""

    bytes: int
    sha256: str


@record
class Marker:
    """What a folder holds, with the checksum of every file; a folder without its marker is not finished."""

    kind: str
    files: Mapping[str, MarkedFile]
    made_by: str = f"truerank {__version__}"
    format: int = FORMAT


def _encoded_marker(folder: Path, *, kind: str, names: Iterable[str]) -> bytes:
    marker = Marker(kind, {name: _marked_file(folder / name) for name in sorted(names)})
    return msgspec.json.format(msgspec.json.encode(marker), indent=1) + b"\n"


def read_marker(folder: Path) -> Marker | None:
    """The marker of a folder, None where it has none; a file of its name that truerank did not write is none."""
    path = folder / MARKER
    try:
        content = path.read_bytes()
        if WRITTEN_BY not in content:
            return None
        marker = msgspec.json.decode(content, type=Marker)
        is_marker = marker.format == FORMAT and all(map(_is_inside, marker.files))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        is_marker = False
    if not is_marker:
        raise InputError(f"{path}: is no marker that this version of truerank wrote. Make the folder again.")
    return marker


def _is_inside(name: str) -> bool:
    """
    >>> [_is_inside(name) for name in ("a.csv", "fold-1/a.csv", "../a.csv", "/etc/passwd", "")]
    [True, True, False, False, False]
    """
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _files_in(folder: Path) -> list[str]:
    """The files of a folder and of those in it, by their relative names, without its marker.

    A folder without files is listed too, with a / at its end: it is something that no marker lists.
    """
    names = []
    for place, folders, files in os.walk(folder):
        within = Path(place).relative_to(folder)
        linked = [name for name in folders if (Path(place) / name).is_symlink()]
        names += [(within / name).as_posix() for name in (*files, *linked)]
        if not files and not folders and Path(place) != folder:
            names.append(f"{within.as_posix()}/")
    return sorted(name for name in names if name != MARKER)


def check_folder(folder: Path, *, kind: str, expected: str) -> Marker:
    """The marker of a folder whose files are all there as they were written; else a refusal that names the file.

    Files that the marker does not list are no part of the folder, and may lie there.
    """
    marker = read_marker(folder)
    if marker is None:
        raise InputError(f"{folder}: is not complete (it has no {MARKER}); expected {expected}.")
    if marker.kind != kind:
        raise InputError(f"{folder}: holds a {marker.kind}; expected {expected}.")
    for name, entry in marker.files.items():
        _check(folder / name, entry)
    return marker


def check_member(path: Path) -> None:
    """Refuse a single file that is not what truerank wrote into the folder it lies in.

    The size is always compared, the checksum of files up to 256 MB: reading them once more costs little, and larger
    ones are mostly read in chunks. A file that no marker lists is the user's own, and not looked at, and so is a file
    of the marker's name that truerank did not write as one, such as results of `--out truerank.json`.
    """
    file = Path(os.path.abspath(path))  # noqa: PTH100 - as the user named it, links and all
    for folder in file.parents[:NEAR]:
        marker, name = read_marker(folder), file.relative_to(folder).as_posix()
        if marker is not None and name in marker.files:
            _check(path, marker.files[name], most=HASHED)
            return


def _check(path: Path, entry: MarkedFile, *, most: float = float("inf")) -> None:
    try:
        size = path.stat().st_size
    except OSError:
        raise InputError(
            f"{path}: is missing, and {MARKER} there lists it: the folder is incomplete. Make it again."
        ) from None
    if size != entry.bytes or (size <= most and _marked_file(path) != entry):
        raise InputError(
            f"{path}: was altered after truerank wrote it (it does not fit {MARKER} there). Make the folder again; if "
            f"the change was meant, remove {MARKER}."
        )


def _marked_file(path: Path) -> MarkedFile:
    return MarkedFile(*hash_of(path))
