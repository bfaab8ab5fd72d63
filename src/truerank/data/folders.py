"""The one way to write a folder of several files: aside, on disk, marked with checksums, and then in its place at once.

A new folder appears by one rename. One that is replaced (`force`) changes places with the new one in one step, where
the system can do that; a folder that was there and empty stays the folder it is, and is filled: its marker comes first,
so that readers know what is still missing. A kill at any moment leaves the old, the new, or what readers refuse and
the next call clears; never a mix that looks whole.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from truerank.core.errors import InputError
from truerank.data.marker import LOCK, MARKER, Marker, changed_files, files_in, marker_of, read_marker, said
from truerank.data.whole import is_at, is_free, real, sync, whole_file, writing

INSIDE = ".truerank.part"  # where an empty folder is filled from
EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


@contextmanager
def whole_folder(path: Path, *, kind: str, force: bool = False) -> Iterator[Path]:
    """A folder to write into that takes the place of `path` if all goes well and vanishes if not.

    `path` may be new or empty. One that holds anything is refused; with `force` it is replaced if truerank made it:
    it has a marker of this kind, and nothing in it that the marker does not list or that was changed since.
    """
    path = real(path)
    check_place(path, kind=kind, force=force)
    inside = path.is_dir() and (not force or read_marker(path) is None or _is_interrupted(path))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path / INSIDE if inside else path.with_name(f".{path.name}.part"), of=path) as part:
        with writing(path):
            _recover(path)
            _empty(part)
        try:
            yield part
        except InputError as error:  # by the name that the user knows
            raise type(error)(error.text.replace(str(part), str(path))) from None
        with writing(path):
            _finish(part, kind=kind)
            check_place(path, kind=kind, force=force)
            if inside:
                _fill(part, path)
            elif path.is_dir():
                _replace(part, path)
            else:
                _appear(part, path)


def check_place(path: Path, *, kind: str, force: bool = False, inputs: Iterable[Path] = ()) -> None:
    """Refuse a place where no folder can be written without loss, before any work is done.

    A folder is replaced by one of its own kind only: a study of hours is none of a set of figures. `inputs` are what is
    read to make the new one: a folder that holds one of them is not replaced.
    """
    if not os.path.lexists(real(path)):
        return
    if not path.is_dir():
        what = "a link that leads nowhere" if path.is_symlink() and not path.exists() else "a file"
        raise InputError(f"{path}: is {what}; expected the name of a folder to write.")
    within = [each for each in inputs if real(each).is_relative_to(real(path))]
    if within:
        raise InputError(f"{path}: {within[0]} is read from there, and would be replaced. Choose another folder.")
    held = [name for name in files_in(path) if not name.startswith(INSIDE)]
    if (not held and not (path / MARKER).exists()) or _is_interrupted(path):
        return
    found = read_marker(path)
    if found is None:
        raise InputError(f"{path}: holds {said(held)}; expected a new or empty folder. Choose another.")
    changed = changed_files(path, found)
    if changed:
        raise InputError(
            f"{path}: holds a {found.kind}, and {said(changed)} that truerank did not write so. Move that away, or "
            "choose another folder."
        )
    if found.kind != kind:
        raise InputError(f"{path}: holds a {found.kind}; expected a new or empty folder for a {kind}. Choose another.")
    if not force:
        raise InputError(
            f"{path}: holds a {found.kind} already. Choose another folder, or replace it with "
            "{option:force|force=True}."
        )


@contextmanager
def locked(path: Path, *, of: Path | None = None) -> Iterator[Path]:
    """A folder, made where it is missing, for this process alone; free again when the process ends.

    One that stands aside `of` another is removed at the end, unless it has taken its place.
    """
    named = path if of is None else of
    with writing(named):
        handle = _lock(path, of=named)
    try:
        yield path
    finally:
        if of is not None and is_at(handle, path / LOCK):
            shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def _lock(path: Path, *, of: Path) -> int:
    while True:
        path.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # its last owner has just finished
        if not is_free(handle):
            os.close(handle)
            raise InputError(f"{of}: another process is working in this folder. Wait for it, or choose another.")
        if is_at(handle, path / LOCK):
            return handle
        os.close(handle)


def seal(folder: Path, *, kind: str, names: Iterable[str], advice: str | None = None) -> None:
    """Mark a folder that grew in its place as finished, with these files."""
    with whole_file(folder / MARKER, advice=advice) as temporary:
        temporary.write_bytes(marker_of(folder, kind=kind, names=names).encoded())


def unseal(folder: Path) -> None:
    """A finished folder is about to change: until it is sealed again, readers refuse it."""
    with writing(folder):
        (folder / MARKER).unlink(missing_ok=True)
        sync(folder)


# --------------------------------------------------------------------------------------------------------------- steps


def _finish(part: Path, *, kind: str) -> None:
    """All files and folders on disk, then the marker."""
    names = files_in(part)
    for name in names:
        sync(part / name)
    (part / MARKER).write_bytes(marker_of(part, kind=kind, names=names).encoded())
    sync(part / MARKER)
    for place, _, _ in os.walk(part, topdown=False):
        sync(Path(place))


def _appear(part: Path, path: Path) -> None:
    os.rename(part, path)  # noqa: PTH104 - refused by the system where something has come there meanwhile
    sync(path.parent)
    _unlock(path)


def _replace(part: Path, path: Path) -> None:
    """New and old change places in one step; else the old one goes aside first, and `_recover` finds it there."""
    part.chmod(stat.S_IMODE(path.stat().st_mode))
    if exchange(part, path):
        try:
            sync(path.parent)
        except BaseException:
            exchange(part, path)  # what failed leaves the old one
            raise
        _unlock(path)
        shutil.rmtree(part, ignore_errors=True)
        return
    aside = _aside(path)
    path.rename(aside)
    try:
        part.rename(path)
    except OSError:
        aside.rename(path)
        raise
    sync(path.parent)
    _unlock(path)
    shutil.rmtree(aside, ignore_errors=True)


def _fill(part: Path, path: Path) -> None:
    """Into an empty folder: what it will hold is said first, then its files come one by one."""
    names = sorted(each.name for each in part.iterdir() if each.name not in (LOCK, MARKER))
    try:
        for at, name in enumerate((MARKER, *names)):
            (part / name).rename(path / name)
            if at == 0:
                sync(path)
        sync(path)
    except BaseException:
        for name in (*names, MARKER):  # it was empty: what is there now is ours, and a full disk lets it go
            with suppress(OSError):
                _remove(path / name)
        raise
    shutil.rmtree(part, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _unlock(path: Path) -> None:
    with suppress(OSError):  # a lock that nobody holds is in nobody's way
        (path / LOCK).unlink(missing_ok=True)


def exchange(first: Path, second: Path) -> bool:
    """Let two folders change their names in one step; False where the system or the file system cannot."""
    here = -2 if sys.platform == "darwin" else -100  # AT_FDCWD
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
    if call is None:
        return False
    if call(here, os.fsencode(first), here, os.fsencode(second), EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV):
        return False
    raise OSError(number, os.strerror(number), str(second))


# ------------------------------------------------------------------------------------------------------ after a kill


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _recover(path: Path) -> None:
    """What a killed process left: the old folder comes back where it stands aside, a half-filled one is emptied."""
    aside = _aside(path)
    if aside.is_dir() and read_marker(aside) is not None:
        if path.exists():
            shutil.rmtree(aside)
        else:
            aside.rename(path)
    if _is_interrupted(path):
        marker = read_marker(path)
        for name in () if marker is None else marker.files:
            (path / name).unlink(missing_ok=True)
        for place, _, _ in os.walk(path, topdown=False):
            if Path(place) not in (path, path / INSIDE) and INSIDE not in Path(place).relative_to(path).parts:
                Path(place).rmdir()
        (path / MARKER).unlink(missing_ok=True)


def _is_interrupted(path: Path) -> bool:
    """Whether filling an empty folder was cut short: some of its files are still aside, and none is another."""
    if not (path / INSIDE).is_dir():
        return False
    marker = read_marker(path)
    if marker is None:
        return not [name for name in files_in(path) if not name.startswith(INSIDE)]
    others = [name for name in changed_files(path, marker) if not name.startswith(INSIDE)]
    return not others and _is_incomplete(path, marker)


def _is_incomplete(path: Path, marker: Marker) -> bool:
    return not all((path / name).is_file() for name in marker.files)


def _empty(part: Path) -> None:
    for each in part.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != LOCK:
            each.unlink()
