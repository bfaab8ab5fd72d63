"""What an engine is: workers that map a pure function over chunks of whole units, and nothing else.

Statistics never ask which engine it is. A chunk is worked on wherever a worker is free; every result comes back exactly
once, or the run is refused: a chunk that was lost or came twice never makes a smaller or a larger result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.errors import TruerankError
from truerank.core.progress import Progress

Result = TypeVar("Result")
Chunk = TypeVar("Chunk")
Chunk_co = TypeVar("Chunk_co", covariant=True)


class Chunked(Protocol[Chunk_co]):
    """Data in chunks of whole units, each read when it is its turn."""

    @property
    def n_chunks(self) -> int: ...

    @property
    def n_rows(self) -> Ints: ...

    def chunk(self, at: int) -> Chunk_co: ...


class Sendable(Chunked[Chunk_co], Protocol[Chunk_co]):
    """Chunks that other processes can read: `reader()(part(at))` is `chunk(at)`.

    A reader has what all chunks share and travels once; a part is the rest. Where workers see the files of this machine
    (`same_disk`) a part names files, else it holds the rows, unless they lie where every machine can read them. Parts
    of data that are held in memory (`held`) may be kept by workers for the next pass over them.
    """

    @property
    def held(self) -> bool: ...

    def reader(self) -> Callable[[Any], Chunk_co]: ...

    def part(self, at: int, *, same_disk: bool) -> Any: ...


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

    def map(self, work: Callable[[Chunk], Result], chunks: Sendable[Chunk]) -> Iterator[tuple[int, Result]]:
        """The number and the result of every chunk, as they are done."""
        ...


class Engine(Protocol):
    """Where the work is done: a frozen value, whose text form parses back; `open` gives its workers."""

    name: ClassVar[str]

    def open(self) -> AbstractContextManager[Workers]: ...


@dataclass(frozen=True, slots=True)
class Values(Generic[Chunk]):
    """Values that are small, as chunks; `size` is how much work each is."""

    values: Sequence[Chunk]
    size: int = 1

    held: ClassVar[bool] = False

    @property
    def n_chunks(self) -> int:
        return len(self.values)

    @property
    def n_rows(self) -> Ints:
        return np.full(len(self.values), self.size, dtype=np.int64)

    def chunk(self, at: int) -> Chunk:
        return self.values[at]

    def reader(self) -> Callable[[Any], Chunk]:
        return as_it_is

    def part(self, at: int, *, same_disk: bool) -> Chunk:
        return self.values[at]


def as_it_is(part: Any) -> Any:
    """The reader of parts that are chunks."""
    return part


def chunks_wanted(workers: Workers) -> int:
    """Into how many chunks data in memory are cut, at least: two for each worker, so that none waits long for the last.

    Threads of this process share a chunk, and need no more than one.
    """
    return 1 if workers.here else 2 * workers.threads


def map_chunks(
    workers: Workers,
    work: Callable[[Chunk], Result],
    chunks: Sendable[Chunk],
    *,
    progress: Progress | None = None,
    what: str = "measuring",
    ordered: bool = False,
) -> Iterator[Result]:
    """The results of all chunks, each exactly once; in the order of chunks, or (default) as they are done.

    >>> from truerank.engines.local import Threads
    >>> list(map_chunks(Threads(2), lambda number: number * number, Values([1, 2, 3]), ordered=True))
    [1, 4, 9]
    """
    rows = chunks.n_rows
    done, total, following = 0, int(rows.sum()), 0
    missing, held = set(range(chunks.n_chunks)), dict[int, Result]()
    with closing(workers.map(work, chunks)) as results:  # type: ignore[type-var]
        for at, result in results:
            if at not in missing:
                raise TruerankError(f"chunk {at + 1:,} of {chunks.n_chunks:,} came back twice; nothing was added up.")
            missing.discard(at)
            done += int(rows[at])
            if progress is not None:
                progress(what, done, total)
            if not ordered:
                yield result
                continue
            held[at] = result
            while following in held:
                yield held.pop(following)
                following += 1
    if missing:
        raise TruerankError(
            f"{len(missing):,} of {chunks.n_chunks:,} chunks did not come back; nothing was added up. Start it again."
        )
