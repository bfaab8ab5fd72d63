"""Files that are written whole or not at all, and stay written when the power goes."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from truerank.core.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNSYNCED = (errno.EINVAL, errno.ENOTSUP)  # file systems that have nothing to sync for a folder


@contextmanager
def whole_file(path: Path, *, advice: str | None = None) -> Iterator[Path]:
    """A temporary name beside `path` that becomes `path` if all goes well and vanishes if not.

    The content is on disk before the name is, so that no crash leaves a file that is empty or cut. What a killed
    process has left under the temporary name is removed. A file that is replaced keeps its permissions, and one that
    may not be written to is not replaced. `advice` is what to do where it cannot be written.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with writing(path, advice=advice):
            yield path  # a pipe or a device is written to, never replaced
        return
    path = real(path)
    with writing(path, advice=advice):
        mode = _permissions(path)
        handle, temporary = _beside(path)
    if sys.platform == "win32":
        os.close(handle)  # a name of an open file cannot be changed there
    placed = False
    try:
        with writing(path, advice=advice):
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            sync(temporary)
            temporary.replace(path)
            placed = True
            sync(path.parent)
    finally:
        if not placed:
            temporary.unlink(missing_ok=True)
        if sys.platform != "win32":
            os.close(handle)


@contextmanager
def writing(path: Path, *, advice: str | None = None) -> Iterator[None]:
    """What goes wrong while something is written, in one sentence; a reader that has left is none of it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, pl.exceptions.ComputeError) as error:
        number = _number(error)
        reason = os.strerror(number) if number else str(error).strip().split("\n")[0]
        usual = "Make room, or choose another place." if number in FULL else "Choose another place."
        raise InputError(f"{path}: cannot be written ({reason}). {advice or usual}") from None


def _number(error: Exception) -> int | None:
    """The number of a system error; polars has it in its text.

    >>> _number(pl.exceptions.ComputeError("underlying IO error: No space left on device (os error 28)"))
    28
    """
    if isinstance(error, OSError) and error.errno:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return None if found is None else int(found[1])


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
    """Take the lock of an open file; False where another process has it. It is free when its process ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # a file system without locks
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))  # noqa: PTH116
    return False


def _beside(path: Path) -> tuple[int, Path]:
    """A new file beside `path`, open and locked as long as its process lives; permissions as the umask has them.

    Its name is always the same, so that what a dead process left is found; where a living one writes the same file at
    this moment, another name, and the last of both stays.
    """
    for end in ("", *(f".{os.getpid()}.{n}" for n in range(99))):
        temporary = path.with_name(f".{path.name}{end}.part")
        while True:
            try:
                handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                if _was_left(temporary):
                    continue
                break
            if is_free(handle) and is_at(handle, temporary):
                return handle, temporary
            os.close(handle)  # another process took it for one that was left
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _was_left(temporary: Path) -> bool:
    """Remove a file whose process is dead; False where it lives, or the file is not ours."""
    try:
        handle = os.open(temporary, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if not is_free(handle):
            return False
        if is_at(handle, temporary):
            temporary.unlink(missing_ok=True)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
