"""Chunks mapped over threads: all of them, a few at a time, and none after an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest

from truerank.core.errors import TruerankError
from truerank.engines.engine import Chunked, Local, map_chunks


class Numbers(Chunked[Mapping[str, pl.DataFrame]]):
    """Chunk i holds the number i; `begun` are those that were read."""

    begun: list[int]

    def __init__(self, n: int) -> None:
        begun: list[int] = []

        def chunk(at: int) -> Mapping[str, pl.DataFrame]:
            begun.append(at)
            return {"x": pl.DataFrame({"x": [at]})}

        super().__init__(np.arange(n) + 1, chunk, lambda at, **_: chunk(at))
        object.__setattr__(self, "begun", begun)


def number(chunk: Mapping[str, pl.DataFrame]) -> int:
    return int(chunk["x"]["x"][0])


def chunk_threads() -> int:
    """Threads that work on chunks; those of other engines come and go."""
    return sum(thread.name.startswith("chunks") for thread in threading.enumerate())


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 50])
def test_every_chunk_once(threads: int, n: int) -> None:
    seen: list[tuple[str, int, int]] = []
    chunks = Numbers(n)
    results = list(map_chunks(Local(threads), number, chunks, progress=lambda *each: seen.append(each)))
    assert sorted(results) == sorted(chunks.begun) == list(range(n))
    total = n * (n + 1) // 2
    assert len(seen) == n
    assert not n or seen[-1] == ("measuring", total, total)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_it(threads: int, error: type[BaseException]) -> None:
    def fails(chunk: Mapping[str, pl.DataFrame]) -> int:
        if number(chunk) == 4:
            raise error("four")
        return number(chunk)

    chunks, before = Numbers(1000), chunk_threads()
    with pytest.raises(error, match="four"):
        list(map_chunks(Local(threads), fails, chunks))
    assert len(chunks.begun) < 30
    assert chunk_threads() == before


@pytest.mark.parametrize("threads", [1, 3])
def test_who_stops_taking_stops_the_work(threads: int) -> None:
    chunks, before = Numbers(1000), chunk_threads()
    results = map_chunks(Local(threads), number, chunks)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(chunks.begun) <= threads + 2
    assert chunk_threads() == before


def test_blas_has_one_thread() -> None:
    from threadpoolctl import threadpool_info

    def most(_: Mapping[str, pl.DataFrame]) -> int:
        return max((each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"), default=1)

    np.ones((2, 2)) @ np.ones((2, 2))
    assert set(map_chunks(Local(2), most, Numbers(5))) == {1}


@dataclass
class Careless:
    """Workers that lose a chunk, or give one twice."""

    given: list[int]
    threads: int = 1
    here: bool = True

    def map(self, work: Any, chunks: Any) -> Iterator[tuple[int, Any]]:
        yield from ((at, work(chunks.chunk(at))) for at in self.given)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(("given", "said"), [([0, 2], "did not come back"), ([0, 1, 1, 2], "came back twice")])
def test_a_chunk_that_is_lost_or_doubled_is_an_error(given: list[int], said: str, ordered: bool) -> None:
    with pytest.raises(TruerankError, match=said):
        list(map_chunks(Careless(given), number, Numbers(3), ordered=ordered))


def test_in_the_order_of_chunks_where_that_is_asked() -> None:
    assert list(map_chunks(Careless([2, 0, 1]), number, Numbers(3), ordered=True)) == [0, 1, 2]
    assert list(map_chunks(Careless([2, 0, 1]), number, Numbers(3))) == [2, 0, 1]
