"""What an engine is: workers that map a pure function over chunks of whole units, and nothing else; and the local one.

Statistics never ask which engine it is. A chunk is worked on wherever a worker is free; every result comes back exactly
once, or the run is refused: a chunk that was lost or came twice never makes a smaller or a larger result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import islice
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.errors import TruerankError
from truerank.core.progress import Progress
from truerank.core.record import record
from truerank.core.threads import one_blas_thread

Result = TypeVar("Result")
Chunk = TypeVar("Chunk")


def as_it_is(part: Any) -> Any:
    """The reader of parts that are chunks."""
    return part


@record(eq=False)
class Chunked(Generic[Chunk]):
    """Data in chunks of whole units, each read when it is its turn, here or by another process.

    `read(part(at, same_disk))` is `chunk(at)`: `read` has what all chunks share and travels once; a part is the rest.
    Where workers see the files of this machine (`same_disk`) a part names files, else it holds the rows, unless they
    lie where every machine can read them.
    """

    n_rows: Ints
    chunk: Callable[[int], Chunk]
    part: Callable[..., Any]  # of (at, same_disk=...)
    read: Callable[[Any], Chunk] = as_it_is
    notes: tuple[str, ...] = ()

    @property
    def n_chunks(self) -> int:
        return len(self.n_rows)


def as_chunks(
    values: Sequence[Chunk],
    *,
    n_rows: Ints | None = None,
    send: Callable[[Chunk], Any] = as_it_is,
    read: Callable[[Any], Chunk] = as_it_is,
) -> Chunked[Chunk]:
    """Values in memory as chunks; other processes `read` what `send` makes of them."""
    rows = np.ones(len(values), dtype=np.int64) if n_rows is None else n_rows
    return Chunked(rows, values.__getitem__, lambda at, **_: send(values[at]), read)


class Workers(Protocol):
    """Workers that are there: a few of them, while they are open."""

    @property
    def here(self) -> bool:
        """Whether they are threads of this process, which share its memory."""
        ...

    @property
    def threads(self) -> int:
        """How many chunks are worked on at a time."""
        ...

    def map(self, work: Callable[[Chunk], Result], chunks: Chunked[Chunk]) -> Iterator[tuple[int, Result]]:
        """The number and the result of every chunk, as they are done."""
        ...


class Engine(Protocol):
    """Where the work is done: a frozen value, whose text form parses back; `open` gives its workers."""

    name: ClassVar[str]

    def open(self) -> AbstractContextManager[Workers]: ...


def chunks_wanted(workers: Workers) -> int:
    """Into how many chunks data in memory are cut, at least: two for each worker, so that none waits long for the last.

    Threads of this process share a chunk, and need no more than one.
    """
    return 1 if workers.here else 2 * workers.threads


def map_chunks(
    workers: Workers,
    work: Callable[[Chunk], Result],
    chunks: Chunked[Chunk],
    *,
    progress: Progress | None = None,
    what: str = "measuring",
    ordered: bool = False,
) -> Iterator[Result]:
    """The results of all chunks, each exactly once; in the order of chunks, or (default) as they are done.

    >>> list(map_chunks(Local(2), lambda number: number * number, as_chunks([1, 2, 3]), ordered=True))
    [1, 4, 9]
    """
    rows = chunks.n_rows
    done, total, following = 0, int(rows.sum()), 0
    missing, waiting = set(range(chunks.n_chunks)), dict[int, Result]()
    with closing(workers.map(work, chunks)) as results:  # type: ignore[type-var]
        for number, result in results:
            if number not in missing:
                raise TruerankError(
                    f"chunk {number + 1:,} of {chunks.n_chunks:,} came back twice; nothing was added up."
                )
            missing.discard(number)
            done += int(rows[number])
            if progress is not None:
                progress(what, done, total)
            if not ordered:
                yield result
                continue
            waiting[number] = result
            while following in waiting:
                yield waiting.pop(following)
                following += 1
    if missing:
        raise TruerankError(
            f"{len(missing):,} of {chunks.n_chunks:,} chunks did not come back; nothing was added up. Start it again."
        )


# --------------------------------------------------------------------------------------------------------------- local


CORES = os.cpu_count() or 1


@record
class Local:
    """Threads of this process; all cores by default.

    >>> str(Local())
    'local'
    """

    threads: int = CORES
    here: bool = True

    name: ClassVar[str] = "local"

    def __str__(self) -> str:
        return self.name

    def open(self) -> AbstractContextManager[Local]:
        return nullcontext(self)

    def map(self, work: Callable[[Chunk], Result], chunks: Chunked[Chunk]) -> Iterator[tuple[int, Result]]:
        """The results of all chunks, in the order in which they are done.

        A chunk is read by the thread that works on it, with BLAS on one thread, and at most `threads + 1` chunks or
        results exist at a time: the next one begins when a result has been taken. An error or Ctrl-C ends it: chunks
        that have not begun are left, and those that have are waited for, so that what they read from can be removed.
        """
        with one_blas_thread():
            yield from mapped(lambda at: work(chunks.chunk(at)), chunks.n_chunks, threads=self.threads)


ONE_THREAD = Local(1)


def mapped(
    task: Callable[[int], Result], n: int, *, threads: int, stop: Callable[[], None] | None = None
) -> Iterator[tuple[int, Result]]:
    """The results of tasks 0 ... n - 1 as they are done; `stop` ends those under way when they are not wanted more."""
    if threads <= 1 or n <= 1:
        try:
            for number in range(n):
                yield number, task(number)
        except BaseException:
            if stop is not None:
                stop()
            raise
        return
    waiting = iter(range(n))
    running: dict[Future[Result], int] = {}
    executor = ThreadPoolExecutor(threads, thread_name_prefix="chunks")
    try:
        for number in islice(waiting, threads + 1):
            running[executor.submit(task, number)] = number
        while running:
            future = next(iter(wait(running, return_when=FIRST_COMPLETED).done))
            number = running.pop(future)
            yield number, future.result()
            del future  # its result is the caller's now
            for following in islice(waiting, 1):
                running[executor.submit(task, following)] = following
    finally:
        if stop is not None and running:
            stop()
        executor.shutdown(wait=True, cancel_futures=True)
