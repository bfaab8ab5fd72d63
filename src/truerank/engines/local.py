"""The local engine: a pure function mapped over chunks by threads of this process, with memory for a few chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Protocol, TypeVar

from truerank.core.arrays import Ints
from truerank.core.progress import Progress
from truerank.core.threads import one_blas_thread

Result = TypeVar("Result")
Chunk_co = TypeVar("Chunk_co", covariant=True)


class Chunked(Protocol[Chunk_co]):
    """Data in chunks of whole units, each read when it is its turn; `data.partition.Chunks` is one."""

    @property
    def n_chunks(self) -> int: ...

    @property
    def n_rows(self) -> Ints: ...

    def chunk(self, at: int) -> Chunk_co: ...


def map_chunks(
    work: Callable[[Chunk_co], Result],
    chunks: Chunked[Chunk_co],
    *,
    threads: int,
    progress: Progress | None = None,
    what: str = "measuring",
) -> Iterator[Result]:
    """The results of all chunks, in the order in which they are done; adding them must not depend on it.

    A chunk is read by the thread that works on it, with BLAS on one thread, and at most `threads + 1` chunks or results
    exist at a time: the next one begins when a result has been taken. An error or Ctrl-C ends it: chunks that have not
    begun are left, and those that have are waited for, so that what they read from can be removed.
    """
    rows = chunks.n_rows
    done, total = 0, int(rows.sum())
    with one_blas_thread():
        for at, result in _mapped(lambda at: work(chunks.chunk(at)), chunks.n_chunks, threads=threads):
            done += int(rows[at])
            if progress is not None:
                progress(what, done, total)
            yield result


def _mapped(task: Callable[[int], Result], n: int, *, threads: int) -> Iterator[tuple[int, Result]]:
    if threads <= 1 or n <= 1:
        for at in range(n):
            yield at, task(at)
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
        executor.shutdown(wait=True, cancel_futures=True)
