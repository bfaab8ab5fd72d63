"""BLAS on one thread: sums of products then have the same bits whatever the machine's number of cores."""

from __future__ import annotations

from contextlib import AbstractContextManager
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
