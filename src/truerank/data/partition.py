"""Rows of one key brought together: tables become chunks of whole users or sessions, of which one is in memory.

What is small stays in memory as one chunk. What is sorted by its key is cut where the key changes. What is neither is
partitioned once on disk, by a hash of the key. Chunk i of every table has the same keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Ints, frozen
from truerank.data.keyed import ByHash, ByRange, ChunkRule, Keyed, check_same_kind, sorted_borders
from truerank.data.spill import Scratch, Spill

MEMORY_ROWS = 2**22
MEMORY_BYTES = 2**28
CHUNK_ROWS = 2**20
CHUNK_BYTES = 2**26
MOST_CHUNKS = 2**13

Progress = Callable[[str, int, int], None]
"""What is done, rows done, rows in all."""


class Cut(Protocol):
    """A table cut into chunks; any of them can be read any number of times, from several threads."""

    @property
    def n_rows(self) -> Ints: ...

    def read(self, part: int, columns: Collection[str] | None = None) -> pl.DataFrame: ...


@dataclass(frozen=True, slots=True)
class Chunks:
    """Tables in chunks of whole keys: chunk i of each has the same keys.

    `notes` say what had to be done for it. `absent` counts, for tables that were placed by their sessions, the rows
    and the sessions of which the log has no row.
    """

    tables: Mapping[str, Cut]
    place: ChunkRule
    notes: tuple[str, ...] = ()
    absent: Mapping[str, Absent] = field(default_factory=dict)

    @property
    def n_chunks(self) -> int:
        return self.place.n_chunks

    @property
    def n_rows(self) -> Ints:
        """Rows of each chunk, those of all tables together: what progress counts."""
        total: Ints = np.stack([cut.n_rows for cut in self.tables.values()]).sum(axis=0)
        return total

    def chunk(self, at: int) -> dict[str, pl.DataFrame]:
        """The rows of a chunk, by the name of their table."""
        return {name: cut.read(at) for name, cut in self.tables.items()}


@dataclass(frozen=True, slots=True)
class Absent:
    """Rows of a table whose session the log does not have."""

    rows: int = 0
    sessions: int = 0


def together(
    sources: Mapping[str, Keyed],
    *,
    scratch: Scratch,
    n_chunks: int | None = None,
    progress: Progress | None = None,
) -> Chunks:
    """Tables cut alike by their keys: in as many chunks as keep each small, or in `n_chunks` by the hash of the key.

    >>> from truerank.data.batches import LazyTable
    >>> from truerank.data.spill import scratch
    >>> labels, train = (LazyTable.of(pl.DataFrame({"user": users})) for users in ([1, 2, 1], [2]))
    >>> with scratch() as place:
    ...     chunks = together({"labels": Keyed(labels, "user"), "train": Keyed(train, "user")}, scratch=place)
    >>> chunks.n_chunks, {name: len(rows) for name, rows in chunks.chunk(0).items()}
    (1, {'labels': 3, 'train': 1})
    """
    check_same_kind(sources)
    sizes = {name: source.table.n_rows * source.table.row_bytes(source.names) for name, source in sources.items()}
    rows, size = sum(source.table.n_rows for source in sources.values()), sum(sizes.values())
    if n_chunks is None and rows <= MEMORY_ROWS and size <= MEMORY_BYTES:
        n_chunks = 1
    if n_chunks is not None:
        place: ChunkRule = ByHash(n_chunks)
    else:
        wanted = min(max(math.ceil(rows / CHUNK_ROWS), math.ceil(size / CHUNK_BYTES), 1), MOST_CHUNKS)
        largest = sources[max(sizes, key=lambda name: sizes[name])]
        place = _place(largest, wanted)
    cut, notes = {}, []
    for name, source in sources.items():
        cut[name], note = _cut(source, place, scratch=scratch, name=name, progress=progress)
        notes += [note] if note else []
    return Chunks(cut, place, tuple(notes))


def _place(largest: Keyed, n_chunks: int) -> ChunkRule:
    if largest.content or not largest.table.seekable:
        return ByHash(n_chunks)
    borders = sorted_borders(largest, size=math.ceil(largest.table.n_rows / n_chunks))
    return ByHash(n_chunks) if borders is None else ByRange(borders)


def _cut(
    source: Keyed, place: ChunkRule, *, scratch: Scratch, name: str, progress: Progress | None
) -> tuple[Cut, str | None]:
    table = source.table
    if place.n_chunks == 1 or table.in_memory or _is_small(source):
        return _InMemory.of(source, place), None
    if isinstance(place, ByRange) and table.seekable:
        sliced = _Sliced.of(source, place)
        if sliced is not None:
            return sliced, f"{table.where}: sorted by {source.key}, read in {place.n_chunks:,} chunks."
    spill = Spill.new(scratch.make(name), source.schema, n_parts=place.n_chunks)
    for batch, start in source.batches():
        spill.add(batch, place(source, batch, start))
        if progress is not None:
            progress(f"partitioning {table.where}", start + len(batch), table.n_rows)
    by = "content" if source.content else source.key
    return spill, (
        f"{table.where}: {table.n_rows:,} rows in no order of {by}, partitioned once on disk: "
        f"{in_bytes(spill.n_bytes)} in {place.n_chunks:,} files."
    )


def _is_small(source: Keyed) -> bool:
    """Whether a table may stay in memory beside chunks of larger ones."""
    n = source.table.n_rows
    return n <= CHUNK_ROWS and n * source.table.row_bytes(source.names) <= CHUNK_BYTES


def in_bytes(n: float) -> str:
    """A number of bytes in words.

    >>> in_bytes(1_234_567_890), in_bytes(700)
    ('1.2 GB', '0.0 MB')
    """
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"


# -------------------------------------------------------------------------------------------------------- without disk


@dataclass(frozen=True, slots=True)
class _InMemory:
    """A table in memory and the rows of each chunk, in the order of the table."""

    rows: pl.DataFrame
    order: Ints | None
    n_rows: Ints

    @classmethod
    def of(cls, source: Keyed, place: ChunkRule) -> _InMemory:
        if place.n_chunks == 1:
            rows = source.table.read(source.names)
            return cls(rows, None, frozen(np.array([len(rows)])))
        rows = source.table.read([*source.names, *source.key_columns])
        return cls.at(rows.select(source.names), place(source, rows, 0), n_chunks=place.n_chunks)

    @classmethod
    def at(cls, rows: pl.DataFrame, part: Ints, *, n_chunks: int) -> _InMemory:
        """From the chunk of each row; rows of chunk -1 belong to none."""
        count = np.bincount(part + 1, minlength=n_chunks + 1)
        return cls(rows, frozen(np.argsort(part, kind="stable")[count[0] :]), frozen(count[1:]))

    def read(self, part: int, columns: Collection[str] | None = None) -> pl.DataFrame:
        rows = self.rows if columns is None else self.rows.select(columns)
        if self.order is None:
            return rows
        start = int(self.n_rows[:part].sum())
        return rows[self.order[start : start + int(self.n_rows[part])]]


@dataclass(frozen=True, slots=True)
class _Sliced:
    """A table sorted by its key, of which a chunk is a range of rows."""

    source: Keyed
    start: Ints

    @classmethod
    def of(cls, source: Keyed, place: ByRange) -> _Sliced | None:
        """None where the rows are not in the order of chunks."""
        count, last = np.zeros(place.n_chunks, dtype=np.int64), 0
        for batch, start in source.batches(all_columns=False):
            part = place(source, batch, start)
            if len(part) and (part[0] < last or (part[1:] < part[:-1]).any()):
                return None
            last = int(part[-1]) if len(part) else last
            count += np.bincount(part, minlength=place.n_chunks)
        return cls(source, frozen(np.concatenate([[0], np.cumsum(count)])))

    @property
    def n_rows(self) -> Ints:
        return np.diff(self.start)

    def read(self, part: int, columns: Collection[str] | None = None) -> pl.DataFrame:
        start, end = self.start[part : part + 2].tolist()
        return self.source.table.slice(start, end - start, self.source.names if columns is None else columns)
