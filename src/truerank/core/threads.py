"""What the process does not do meanwhile: BLAS on several threads, and searches for cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """While it is entered, BLAS works on one thread."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    """Finding the loaded libraries costs milliseconds: once is enough."""
    return ThreadpoolController()


@contextmanager
def without_collecting() -> Iterator[None]:
    """While it is entered, cycles are not looked for; afterwards as before."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
