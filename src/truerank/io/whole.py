"""Files that are written whole or not at all, and stay written when the power goes."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from truerank.core.errors import InputError, error_number

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNSYNCED = (errno.EINVAL, errno.ENOTSUP)  # file systems that have nothing to sync for a folder


@contextmanager
def whole_file(path: Path, *, advice: str | None = None) -> Iterator[Path]:
    """A temporary name beside `path` that becomes `path` if all goes well and vanishes if not.

    The name is random and the file is made by this process, for its user alone while it is written. The content is on
    disk before the name is, so that no crash leaves a file that is empty or cut. A file that is replaced keeps its
    permissions, and one that may not be written to is not replaced. `advice` is what to do where it cannot be written.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with writing(path, advice=advice):
            yield path  # a pipe or a device is written to, never replaced
        return
    path = real(path)
    with writing(path, advice=advice):
        mode = _permissions(path)
        temporary = temporary_name(path)
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600))
    renamed = False
    try:
        with writing(path, advice=advice):
            final = make_private(temporary, 0o600) if mode is None else mode
            yield temporary
            temporary.chmod(final)
            sync(temporary)
            temporary.replace(path)
            renamed = True
            sync(path.parent)
    finally:
        if not renamed:
            temporary.unlink(missing_ok=True)


def temporary_name(path: Path) -> Path:
    """A name beside `path` for what is being written: random, so that it is nobody else's."""
    return path.with_name(f".truerank-{secrets.token_hex(8)}.part")


def make_private(path: Path, mode: int) -> int:
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


def _permissions(path: Path) -> int | None:
    """Those of the file that is there, if it may be written to: a rename alone would not ask."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return stat.S_IMODE(status.st_mode)


def sync(path: Path) -> None:
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


def is_free(handle: int) -> bool:
    """Take the lock of an open folder; False where another process has it. It is free when its process ends."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # a file system without locks
    return True
