"""The local engine: threads of this machine, with memory for a few chunks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from truerank.core.threads import one_blas_thread
from truerank.engines.engine import Chunk, Chunked, Result


@dataclass(frozen=True, slots=True)
class Local:
    """This process, by threads; all cores by default.

    >>> str(Local()), Local(3).n_workers
    ('local', 3)
    """

    threads: int | None = None

    name: ClassVar[str] = "local"

    def __str__(self) -> str:
        return self.name

    @property
    def n_workers(self) -> int:
        return self.threads or os.cpu_count() or 1

    def open(self) -> AbstractContextManager[Threads]:
        return nullcontext(Threads(self.n_workers))


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of this process."""

    threads: int = 1
    here: bool = True

    def map(self, work: Callable[[Chunk], Result], chunks: Chunked[Chunk]) -> Iterator[tuple[int, Result]]:
        """The results of all chunks, in the order in which they are done.

        A chunk is read by the thread that works on it, with BLAS on one thread, and at most `threads + 1` chunks or
        results exist at a time: the next one begins when a result has been taken. An error or Ctrl-C ends it: chunks
        that have not begun are left, and those that have are waited for, so that what they read from can be removed.
        """
        with one_blas_thread():
            yield from mapped(lambda at: work(chunks.chunk(at)), chunks.n_chunks, threads=self.threads)


ONE_THREAD = Threads()


def mapped(
    task: Callable[[int], Result], n: int, *, threads: int, stop: Callable[[], None] | None = None
) -> Iterator[tuple[int, Result]]:
    """The results of tasks 0 ... n - 1 as they are done; `stop` ends those under way when they are not wanted more."""
    if threads <= 1 or n <= 1:
        try:
            for at in range(n):
                yield at, task(at)
        except BaseException:
            if stop is not None:
                stop()
            raise
        return
    waiting = iter(range(n))
    running: dict[Future[Result], int] = {}
    executor = ThreadPoolExecutor(threads, thread_name_prefix="chunks")
    try:
        for at in islice(waiting, threads + 1):
            running[executor.submit(task, at)] = at
        while running:
            future = next(iter(wait(running, return_when=FIRST_COMPLETED).done))
            at = running.pop(future)
            yield at, future.result()
            del future  # its result is the caller's now
            for following in islice(waiting, 1):
                running[executor.submit(task, following)] = following
    finally:
        if stop is not None and running:
            stop()
        executor.shutdown(wait=True, cancel_futures=True)
