"""The local engine: threads or processes of this machine, with memory for a few chunks."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from typing import Any, ClassVar

from truerank.core.errors import TruerankError
from truerank.core.threads import one_blas_thread
from truerank.engines.engine import Chunk, Chunked, Result, Sendable

ATTEMPTS = 3  # of a chunk whose process ends
# for those who call from a script; what Python itself says of it is a page long, and said by the process that ends
UNGUARDED = (
    "{cli:| Where a script starts it, its calls must stand below if __name__ == '__main__':, because every process "
    "loads the script again.}"
)


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


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes of this machine, for work that threads cannot share: many small evaluations, all of them Python."""

    threads: int = 1
    here: bool = False

    def map(self, work: Callable[[Chunk], Result], chunks: Sendable[Chunk]) -> Iterator[tuple[int, Result]]:
        """The results of all chunks as they are done; what a process was at when it was killed is done again."""
        task, waiting = partial(_done, work, chunks.reader()), deque(range(chunks.n_chunks))
        ended, any_done = Counter[int](), False  # how often a process ended with a chunk under way
        while waiting:
            with _executor(self.threads) as executor:
                if executor is None:
                    yield from ((at, task(chunks.part(at, same_disk=True))) for at in waiting)
                    return
                running: dict[Future[Result], int] = {}
                try:
                    while waiting or running:
                        while waiting and len(running) <= self.threads:  # one more, so that none is idle
                            future = executor.submit(task, chunks.part(waiting[0], same_disk=True))
                            running[future] = waiting.popleft()
                        future = next(iter(wait(running, return_when=FIRST_COMPLETED).done))
                        result = future.result()
                        any_done = True
                        yield running.pop(future), result
                except BrokenProcessPool:
                    ended.update(running.values())
                    waiting.extendleft(sorted(running.values(), reverse=True))
                    _check_ended(ended, chunks.n_chunks, any_done=any_done)


def _done(work: Callable[[Any], Result], read: Callable[[Any], Any], part: Any) -> Result:
    return work(read(part))


def _check_ended(ended: Counter[int], n: int, *, any_done: bool) -> None:
    """Give up a chunk whose process ends every time."""
    at, times = ended.most_common(1)[0]
    if times >= ATTEMPTS:
        raise TruerankError(
            f"chunk {at + 1:,} of {n:,}: its process ended {times} times, most likely for want of memory; start fewer "
            f"({{option:threads N}}).{'' if any_done else UNGUARDED}"
        ) from None


@contextmanager
def _executor(n: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes to share the work, none of which outlives it; None where one is enough, or the system has no place for
    what they share.

    A hardened container has no /dev/shm that can be written to. Results are the same either way.
    """
    before, executor = set(active_children()), None
    if n > 1:
        with suppress(OSError, NotImplementedError):  # the second: concurrent.futures where there are no semaphores
            # spawned, because the threads of polars do not survive a fork
            executor = ProcessPoolExecutor(n, get_context("spawn"), initializer=_serve)
    if executor is None:
        yield None
        return
    try:
        yield executor
    except BaseException:
        for child in set(active_children()) - before:
            child.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _serve() -> None:
    """In a process of an executor: Ctrl-C is for the one that started it, without which there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
