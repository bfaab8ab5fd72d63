"""Workers that have really no memory left: killed by their keeper, or refused by the system. A chunk is tried again, or
told by its number in one sentence; a result is never smaller, and nobody waits for ever.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engines_there import require

from truerank.core.errors import TruerankError
from truerank.engines.engine import as_chunks, map_chunks
from truerank.engines.named import as_engine

N_CHUNKS = 6
GREEDY = 2  # the chunk that wants more than there is
SQUARES = [number * number for number in range(N_CHUNKS)]
LIMIT = "600MB"
PATIENCE = 120  # seconds until a test must be over


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Whatever takes longer is ended by a signal: a worker that nobody hears of must not be waited for."""

    def over(*_: object) -> None:
        raise AssertionError(f"not over after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ------------------------------------------------------------------------------------------------ killed by its keeper


@pytest.fixture(scope="module")
def kept_small() -> Iterator[Any]:
    """A cluster of which each worker is killed when it has more than its share; what ends two of them is given up."""
    require("dask")
    from dask import config
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {
        "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "worker_dashboard_address": None,
        "silence_logs": logging.CRITICAL,
    }  # fmt: skip
    with config.set({"distributed.scheduler.allowed-failures": 1}):
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=LIMIT, **options)
    with cluster, Client(cluster) as client:
        yield client


def filling(marker: Path | None) -> Callable[[int], int]:
    """Work that fills two gigabytes in one of its chunks: whenever it comes to it, or once."""

    def work(number: int) -> int:

        if number == 2 and (marker is None or not marker.exists()):
            if marker is not None:
                marker.touch()
            held: list[bytearray] = []
            while len(held) < 64:  # slowly: whoever looks after it looks ten times a second
                held.append(bytearray(b"x") * 2**25)
                time.sleep(0.05)
            return len(held)
        return number * number

    return work


def test_a_worker_that_is_killed_for_its_memory_is_tried_again(tmp_path: Path, kept_small: Any) -> None:
    with within(PATIENCE), as_engine(kept_small).open() as workers:
        found = sorted(map_chunks(workers, filling(tmp_path / "filled"), as_chunks(range(N_CHUNKS))))
    assert (tmp_path / "filled").exists()
    assert found == SQUARES


def test_a_chunk_that_never_fits_is_named_and_no_other(kept_small: Any) -> None:
    """Dask blames all chunks that wait beside it; they are done all the same."""
    found: list[int] = []
    said = rf"^chunk {GREEDY + 1} of {N_CHUNKS} ended its worker \d times, .* for want of memory"
    told = pytest.raises(TruerankError, match=said)
    with within(PATIENCE), as_engine(kept_small).open() as workers, told as raised:
        found.extend(map_chunks(workers, filling(None), as_chunks(range(N_CHUNKS))))
    assert "\n" not in str(raised.value)
    assert set(found) <= set(SQUARES) - {GREEDY * GREEDY}


# ------------------------------------------------------------------------------------------------ refused by the system


def asking_for_too_much() -> Callable[[int], int]:
    """Work whose process may have no more than it has, and wants more; sent whole, as executors see no tests."""

    def work(number: int) -> int:
        import resource

        import numpy

        if number != 2:
            return number * number
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as status:  # noqa: PTH123
            now = int(status.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + 2**26, hard))
        try:
            return int(numpy.ones(2**28).sum())
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    return work


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_worker_that_gets_no_more_memory_is_named(engine: Any) -> None:
    told = pytest.raises(TruerankError, match=rf"chunk {GREEDY + 1} of {N_CHUNKS}")
    with within(PATIENCE), as_engine(engine).open() as workers, told as raised:
        list(map_chunks(workers, asking_for_too_much(), as_chunks(range(N_CHUNKS))))
    assert "no memory left" in str(raised.value)
    assert "\n" not in str(raised.value)
    with as_engine(engine).open() as workers:  # and the cluster is as good as before
        assert sorted(map_chunks(workers, abs, as_chunks([-1, -2]))) == [1, 2]
