"""Dask: chunks worked on by the processes of a cluster, one that is started here or one that is joined."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from truerank.core.errors import InputError, TruerankError, extra
from truerank.core.record import record
from truerank.core.wording import either, option
from truerank.engines.engine import Chunk, Chunked, Result, mapped
from truerank.engines.serialization import Packing, Parcel, carry_out
from truerank.io.spill import scratch

AHEAD = 2  # chunks that wait for each worker, so that none is idle while a result is fetched
SUSPECT = object()  # in place of the result of a chunk that may have ended its worker
RETRIES = 2  # of a chunk whose worker raised; Dask itself tries again when a worker dies
PATIENCE = 30.0  # seconds until a scheduler must have answered
TRIES, PAUSE = 20, 0.5  # of asking workers, and seconds between
# for those who call from a script; what Python itself says of it is a page long, and said by the process that ends
UNGUARDED = either(
    "",
    " Where a script starts it, its calls must stand below if __name__ == '__main__':, because every process loads the "
    "script again.",
)
# Dask starts an HTTP server in every process: it has no pages until it is stopped
WITHOUT_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
UNTRIMMED = "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_"  # bytes from which freed memory goes back


@record
class Dask:
    """A cluster of worker processes on this machine, or (with an address or a `Client`) the one that is there.

    A cluster that is started listens on 127.0.0.1 only, without dashboard, and ends with the run. Its processes accept
    connections by TLS only, from those that have the key of this run: what they receive they execute.

    >>> str(Dask()), str(Dask("tls://10.0.0.7:8786"))
    ('dask', 'dask:tls://10.0.0.7:8786')
    """

    address: str | None = None
    workers: int | None = None
    client: Any = field(default=None, repr=False)  # that the caller has opened, and closes

    name: ClassVar[str] = "dask"

    def __str__(self) -> str:
        address = self.address if self.client is None else self.client.scheduler.address
        return self.name if address is None else f"{self.name}:{address}"

    @contextmanager
    def open(self) -> Iterator[DaskWorkers]:
        if self.client is not None:
            with scratch() as space:
                yield DaskWorkers(self.client, space.make("parcels"))
            return
        distributed = _distributed()
        n = self.workers or os.cpu_count() or 1
        cluster = _cluster(distributed, n) if self.address is None else _joined(distributed, self.address)
        with cluster as client, Dask(client=client).open() as workers:
            yield workers


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(
            f"the dask engine needs Dask; install it with: pip install {extra('dask')}, or use "
            f"{option('engine local')}."
        ) from None
    return distributed


@contextmanager
def _cluster(distributed: Any, n: int) -> Iterator[Any]:
    """One thread in each process: chunks are sized for it, and BLAS works on one thread anyway.

    Workers keep a little of the memory that they have freed, as any process does: Dask would have them give back every
    array at once, and to get it again, page by page, takes as long as the work.
    """
    from dask import config

    with _quiet(), config.set({UNTRIMMED: None, **WITHOUT_PAGES}):
        try:
            started = distributed.LocalCluster(
                security=_temporary_keys(distributed),
                n_workers=n,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # any port: there is an HTTP server even without dashboard
                scheduler_kwargs={"dashboard": False, "preload": __name__},
                worker_dashboard_address=None,
                preload=__name__,
                silence_logs=logging.CRITICAL,
            )
        except (RuntimeError, OSError) as error:
            raise TruerankError(
                f"no Dask cluster could be started on this machine ({_first_line(error)}).{UNGUARDED}"
            ) from None
        with started as cluster, distributed.Client(cluster) as client:
            yield client


def _temporary_keys(distributed: Any) -> Any:
    """A key and a certificate made for this run, held in memory."""
    try:
        return distributed.Security.temporary()
    except ImportError:
        raise InputError(
            f"the dask engine needs cryptography, so that nobody else can send work to its processes; install it with: "
            f"pip install {extra('dask')}, or use {option('engine local')}."
        ) from None


def dask_setup(process: Any) -> None:
    """What Dask calls in the scheduler and in every worker before it works: stops the HTTP server that it has started.

    That server asks nobody for a key.
    """
    process.http_server.stop()


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask tells of workers and schedulers that end in its own logs; what matters is said as an error.

    Some of its loggers have a level of their own, so that of the first is not enough.
    """
    named = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [logging.getLogger(name) for name in ("distributed", *named)]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _joined(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # a TimeoutError is an OSError
        raise InputError(
            f"dask:{address}: no scheduler answers there ({_first_line(error)}). Check the address and, for tls://, "
            "the certificates that Dask is configured with."
        ) from None
    with _quiet(), client:
        yield client


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


class EndedWorkerError(TruerankError):
    """A chunk, or another one that waited beside it, has ended its worker several times."""


@record
class DaskWorkers:
    """The workers of a cluster, and how chunks come to them."""

    client: Any
    folder: Path  # for values on their way, where workers see it
    here: bool = False

    @property
    def threads(self) -> int:
        with _reporting(self.client):
            return max(1, int(sum(self.client.nthreads().values())))

    def map(self, work: Callable[[Chunk], Result], chunks: Chunked[Chunk]) -> Iterator[tuple[int, Result]]:
        """Results as they are done; a few chunks are under way at a time, and none is left behind."""
        if not chunks.n_chunks:
            return
        from cloudpickle import dump

        packing = Packing(self._seen(), dump)
        shared = packing.pack((work, chunks.read))
        there: Any = shared
        if packing.folder is None:  # bytes that all chunks share are sent to the workers once
            with _reporting(self.client):
                there = self.client.scatter(shared, broadcast=True, hash=False)
        running: set[Any] = set()

        def carry(part: Parcel, what: str) -> Parcel:
            with _reporting(self.client, what):
                future = self.client.submit(carry_out, there, part, packing.folder, pure=False, retries=RETRIES)
                running.add(future)
                parcel: Parcel = future.result()
            running.discard(future)
            return parcel

        def first_try(number: int) -> Any:
            try:
                return packing.send(chunks, number, carry)
            except EndedWorkerError:
                return SUSPECT

        def stop() -> None:
            with suppress(Exception):  # the cluster may be gone, which is told already
                self.client.cancel(list(running), force=True)

        suspects = []
        try:
            for number, result in mapped(first_try, chunks.n_chunks, threads=AHEAD * self.threads, stop=stop):
                if result is SUSPECT:
                    suspects.append(number)
                else:
                    yield number, result
            # Dask blames all that wait on a worker when it ends: one at a time it is certain who ends it, and it has
            # the memory that others had
            for number in suspects:
                yield number, packing.send(chunks, number, carry)
        finally:
            stop()
            shared.remove()

    def _seen(self) -> Path | None:
        """The folder, if every worker sees it and may write there: then files need not travel.

        A worker may end just now, and is asked again when another one has taken its place.
        """
        for _ in range(TRIES):
            with _reporting(self.client):
                self.client.wait_for_workers(1, timeout=PATIENCE)
            with suppress(OSError):
                seen = self.client.run(
                    os.access, str(self.folder), os.R_OK | os.W_OK | os.X_OK, on_error="return"
                ).values()
                if seen and all(isinstance(answer, bool) for answer in seen):
                    return self.folder if all(seen) else None
            time.sleep(PAUSE)
        raise TruerankError("the workers of the Dask cluster end as soon as they begin; look at their logs.")


@contextmanager
def _reporting(client: Any, what: str = "the work") -> Iterator[None]:
    """What can go wrong with a cluster, in one sentence."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        times = getattr(error, "allowed_failures", 0) + 1
        raise EndedWorkerError(
            f"{what} ended its worker {times} times, also with nothing beside it, most likely for want of memory; give "
            f"workers more memory, or start fewer of them ({option('threads N')}), and start it again."
        ) from None
    except MemoryError:
        raise TruerankError(
            f"{what}: its worker has no memory left; start fewer workers ({option('threads N')}) or give each more."
        ) from None
    except (CommClosedError, CancelledError, TimeoutError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        where = client.scheduler.address if client.scheduler else "its address"
        # what is cancelled is told under a name of Dask's own, which says nothing
        reason = "" if isinstance(error, CancelledError) else f" ({_first_line(error)})"
        raise TruerankError(
            f"the connection to the Dask scheduler at {where} was lost during {what}{reason}; start it again when the "
            "cluster is there."
        ) from None
