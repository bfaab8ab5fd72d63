"""One machine: a function mapped over chunks on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from truerank.core.threads import one_blas_thread

Made = TypeVar("Made")


def map_chunks(
    work: Callable[[Any], Made], chunks: Sequence[Any], *, threads: int, progress: Any = None
) -> Iterator[Made]:
    with one_blas_thread():
        if threads == 1:
            yield from map(work, chunks)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(work, chunks)
