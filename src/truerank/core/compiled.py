"""Functions compiled by numba, kept on disk where that can be and in memory where it cannot.

Compiled code that is kept makes the next start fast; that is all it is for. So nothing about it is ever an error: where
no folder can be written (a read-only installation without a home), where the disk is full, where files are damaged or
vanish, a function is compiled again, which takes seconds. One note says so. Only modules called `fast*.py` import this
one, so that numba loads when it is first of use.
"""

# numba has types for some of its names and none for the functions of its cache
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba as nb
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    InTreeCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

Function = TypeVar("Function", bound=Callable[..., Any])

DIGEST = hashlib.sha256().digest_size
Index = np.uint64  # of what is read often: a signed index is asked each time whether it counts from the end


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function when it is first called, with `options` of `numba.njit`; threads run it side by side.

    >>> @compiled(boundscheck=False)
    ... def twice(number: int) -> int:
    ...     return 2 * number
    >>> twice(21)
    42
    """

    def decorate(function: Function) -> Function:
        dispatcher: Any = nb.njit(nogil=True, **options)(function)
        try:
            dispatcher._cache = _Kept(function)
        except Exception as error:  # numba says RuntimeError where no folder can be written, others are the system's
            _say_once(error)
        return cast(Function, dispatcher)

    return decorate


def _say_once(error: Exception) -> None:
    """Say why compiled code is not kept, once: later failures have the same cause and the same remedy."""
    if not _SAID:
        _SAID.append(error)
        reason = "no folder for it can be written" if isinstance(error, RuntimeError) else str(error)
        logging.getLogger("truerank").warning(
            "compiled code is kept in memory only (%s), so each start compiles anew, which takes seconds; "
            "NUMBA_CACHE_DIR=FOLDER names a folder to keep it in.",
            reason,
        )


_SAID: list[Exception] = []


class _HomeLocator(UserWideCacheLocator):
    """The cache folder of the user; none where no home is known, which numba would take for a folder called `~`."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        folder = Path(AppDirs(appname="numba").user_cache_dir)
        return super().from_function(py_func, py_file) if folder.is_absolute() else None


class _Place(CompileResultCacheImpl):
    _locator_classes = [UserProvidedCacheLocator, InTreeCacheLocator, _HomeLocator]  # noqa: RUF012, as numba has it


@cache
def all_sources() -> str:
    """A digest of all modules that are compiled: code that is kept has what it calls in other modules built in.

    numba itself asks for the time and size of a function's own module alone.
    """
    every = sorted(Path(__file__).parents[1].rglob("fast*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in every)).hexdigest()


class _Kept(NullCache):
    """The compiled code of one function: a file for each signature, read only where it is whole.

    A file begins with a digest of what it is of and of its content: damaged machine code would give wrong numbers, or
    crash, and a file that was half written, or is of another function or source, is a miss.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._impl = _Place(function)
        self._source = self._impl.locator.get_source_stamp(), all_sources(), nb.__version__

    def _path(self, sig: Any, codegen: Any) -> Path:
        kind = hashlib.sha256(repr((sig, codegen.magic_tuple())).encode()).hexdigest()
        return Path(self._impl.locator.get_cache_path()) / f"{self._impl.filename_base}.{kind[:16]}.nbc"

    def _sealed(self, name: str, content: bytes) -> bytes:
        return hashlib.sha256(repr((name, self._source)).encode() + content).digest() + content

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            target_context.refresh()
            path = self._path(sig, target_context.codegen())
            stored = path.read_bytes()
            content = stored[DIGEST:]
            whole = stored == self._sealed(path.name, content)
            return self._impl.rebuild(target_context, pickle.loads(content)) if whole else None
        except Exception:  # whatever unpickling makes of code that another machine or version wrote
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            if self._impl.check_cachable(data):
                self._impl.locator.ensure_cache_path()
                path = self._path(sig, data.codegen)
                path.write_bytes(self._sealed(path.name, dumps(self._impl.reduce(data))))
        except Exception as error:  # a folder that is full, closed or gone
            _say_once(error)
