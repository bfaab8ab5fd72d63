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
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
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
        except (
            Exception
        ) as error:  # numba says RuntimeError where no folder can be written, others come from the system
            _say_once(error)
        return cast(Function, dispatcher)

    return decorate


@cache
def _logger() -> logging.Logger:
    return logging.getLogger("truerank")


def _say_once(error: Exception) -> None:
    """Say why compiled code is not kept, once: later failures have the same cause and the same remedy."""
    if _SAID:
        return
    _SAID.append(error)
    reason = "no folder for it can be written" if isinstance(error, RuntimeError) else str(error)
    _logger().warning(
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


class _Kept(FunctionCache):
    """numba's cache of one function, whose failures are misses and whose files are whole or not there."""

    _impl_class = _Place

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _WholeFiles(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), all_sources()),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling makes of code that another machine or version wrote
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a folder that is full, closed or gone
            _say_once(error)


class _WholeFiles(IndexDataCacheFile):
    """Files that end in a digest of themselves: damaged machine code would give wrong numbers, or crash.

    The digest is also of the source, and code is stored with the key it was compiled for: a process that ended between
    its two writes, or two that wrote at once, would otherwise leave the code of something else under this name.
    """

    def load(self, key: Any) -> Any:
        stored = super().load(key)
        return stored[1] if stored is not None and stored[0] == key else None

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return content + self._digest(content)

    def _load_index(self) -> Any:
        try:
            with Path(self._index_path).open("rb") as stream:
                pickle.load(stream)  # the version stands before what is digested
                self._check(stream.read())
            return super()._load_index()
        except Exception:
            return {}  # written anew by the next save

    def _load_data(self, name: str) -> Any:
        self._check(Path(self._data_path(name)).read_bytes())
        return super()._load_data(name)

    def _check(self, content: bytes) -> None:
        if content[-DIGEST:] != self._digest(content[:-DIGEST]):
            raise OSError("compiled code is damaged")

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(repr(self._source_stamp).encode() + content).digest()
