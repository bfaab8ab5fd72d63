"""Rows of one key brought together: tables become chunks of whole users or sessions, of which one is in memory.

What is small stays in memory as one chunk. What is sorted by its key is cut where the key changes. What is neither is
partitioned once on disk, by a hash of the key. Chunk i of every table has the same keys.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Ints, frozen
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Keys, as_ids
from truerank.core.progress import Progress
from truerank.io.batches import LazyTable
from truerank.io.parts import RowsHeld, RowsOfPart, RowsSliced
from truerank.io.spill import Scratch, Spill

SEED = 20  # of the hash of texts; which chunk a row lies in changes no result


@dataclass(frozen=True, slots=True)
class Keyed:
    """A table and what keeps its rows together: the column of an id, or all columns that say what a row is.

    With one column, rows of equal ids stay together, integers of any width alike. With several (`content`), rows that
    say the same stay together. `columns` are those that chunks have; all by default.
    """

    table: LazyTable
    key: str
    columns: tuple[str, ...] = ()
    content: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return list(self.columns or self.table.columns)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: self.table.schema[name] for name in self.names}

    @property
    def key_columns(self) -> list[str]:
        return list(self.content) or [self.key]

    @property
    def is_text(self) -> bool:
        return isinstance(self.table.schema[self.key], pl.String | pl.Categorical | pl.Enum)

    def batches(self, *, all_columns: bool = True) -> Iterator[tuple[pl.DataFrame, int]]:
        """Batches of rows with the number of rows before each."""
        start = 0
        for batch in self.table.batches([*(self.names if all_columns else ()), *self.key_columns]):
            yield batch, start
            start += len(batch)

    def ids(self, batch: pl.DataFrame, start: int) -> pl.Series:
        """The ids of a batch of rows."""
        column, where = batch[self.key], f"{self.table.where}, column {self.key!r}"
        if column.null_count():
            row = start + int(column.is_null().arg_true()[0])
            raise InputError(f"{where}: row {row + 1} has no id; every row needs one. Remove or fill the empty ids.")
        return as_ids(column, where=where)

    def hashes(self, batch: pl.DataFrame, start: int) -> Keys:
        if not self.content:
            return hashed(self.ids(batch, start))
        flat = [name for name in self.content if not batch[name].dtype.is_nested()]
        return batch.select(flat).hash_rows(seed=SEED).to_numpy()


def check_same_kind(sources: Mapping[str, Keyed]) -> None:
    """Refuse keys of which some are text and some are numbers: no id of one would be found in the other."""
    by_id = [source for source in sources.values() if source.table.n_rows and not source.content]
    for first, other in itertools.pairwise(by_id):
        if other.is_text != first.is_text:
            words = {True: "text", False: "numbers"}
            raise InputError(
                f"{other.table.where}, column {other.key!r}: ids are {words[other.is_text]} where those of "
                f"{first.table.where} are {words[first.is_text]}; text never matches numbers. Store both as the same "
                "type."
            )


def hashed(ids: pl.Series) -> Keys:
    """A number of 64 bits for each id, the same for equal ids; fast, and good for nothing but spreading rows.

    >>> narrow, wide = (hashed(as_ids(pl.Series([7, -1], dtype=kind), where="")) for kind in (pl.Int8, pl.Int64))
    >>> bool((narrow == wide).all())
    True
    """
    if ids.dtype == pl.Int128:  # those that fit into 64 bits are found like all others of their value
        small = ids.cast(pl.Int64, strict=False)
        keys = hashed(small.fill_null(0)).copy()
        large = small.is_null().to_numpy()
        keys[large] = ids.filter(small.is_null()).cast(pl.String).hash(seed=SEED).to_numpy()
        return keys
    if ids.dtype == pl.Int64:
        return cell_keys(SEED, "chunks", ids.to_numpy().view(np.uint64), np.zeros(1, dtype=np.uint64))
    return ids.cast(pl.String).hash(seed=SEED).to_numpy()


class ChunkRule(Protocol):
    """Which of `n_chunks` chunks each row belongs to."""

    @property
    def n_chunks(self) -> int: ...

    def __call__(self, source: Keyed, batch: pl.DataFrame, start: int) -> Ints: ...

    def of_ids(self, ids: pl.Series) -> Ints:
        """The chunk of each id, whether or not a row has it: so users without rows find theirs."""
        ...


@dataclass(frozen=True, slots=True)
class ByHash:
    """Chunks by the hash of the key: any order of rows, chunks of about the same size."""

    n_chunks: int

    def __call__(self, source: Keyed, batch: pl.DataFrame, start: int) -> Ints:
        return self.of(source.hashes(batch, start))

    def of_ids(self, ids: pl.Series) -> Ints:
        return self.of(hashed(ids))

    def of(self, keys: Keys) -> Ints:
        """A hash of 64 bits as a number below `n_chunks`, by multiplication: no division is as fast."""
        return ((keys >> np.uint64(32)) * np.uint64(self.n_chunks) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ByRange:
    """Chunks by ranges of ids, for tables sorted by them: chunk i has the ids from border i - 1 on, below border i."""

    borders: pl.Series

    @property
    def n_chunks(self) -> int:
        return len(self.borders) + 1

    def __call__(self, source: Keyed, batch: pl.DataFrame, start: int) -> Ints:
        return self.of_ids(source.ids(batch, start))

    def of_ids(self, ids: pl.Series) -> Ints:
        borders = self.borders
        if len(ids) == 0 or len(borders) == 0:
            return np.zeros(len(ids), dtype=np.int64)
        if ids.dtype != borders.dtype:
            ids, borders = ids.cast(pl.Int128), borders.cast(pl.Int128)
        return borders.search_sorted(ids, side="right").to_numpy().astype(np.int64)


def sorted_borders(source: Keyed, *, size: int) -> pl.Series | None:
    """The ids that begin chunks of at least `size` rows in a table sorted by its ids; None where it is not sorted.

    One pass over the key column, which ends at the first row out of order.
    """
    borders: list[pl.Series] = []
    last: pl.Series | None = None
    wanted = size
    for batch, start in source.batches(all_columns=False):
        ids = source.ids(batch, start)
        if len(ids) == 0:
            continue
        joined = ids if last is None else _joined([last, ids])
        if not joined.is_sorted():
            return None
        first_row = start - (0 if last is None else 1)  # of what is joined
        changes = np.flatnonzero((joined != joined.shift(1)).fill_null(value=False).to_numpy())
        while (at := int(np.searchsorted(changes, wanted - first_row))) < len(changes):
            borders.append(joined.slice(int(changes[at]), 1))
            wanted = first_row + int(changes[at]) + size
        last = ids.tail(1)
    return _joined(borders) if borders else pl.Series([], dtype=pl.Int64 if last is None else last.dtype)


def _joined(parts: Sequence[pl.Series]) -> pl.Series:
    kinds = {str(part.dtype) for part in parts}
    return pl.concat([part if len(kinds) == 1 else part.cast(pl.Int128) for part in parts])


MEMORY_ROWS = 2**22
MEMORY_BYTES = 2**28
CHUNK_ROWS = 2**20
CHUNK_BYTES = 2**26
MOST_CHUNKS = 2**13


class Cut(Protocol):
    """A table cut into chunks; any of them can be read any number of times, from several threads."""

    @property
    def n_rows(self) -> Ints: ...

    def part(self, part: int) -> RowsOfPart:
        """The rows of a chunk, before they are read: what another process needs to read them."""
        ...

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

    def part(self, at: int, *, same_disk: bool) -> dict[str, RowsOfPart]:
        """The same before it is read: files where whoever reads it sees them (`same_disk`), else the rows."""
        parts = {name: cut.part(at) for name, cut in self.tables.items()}
        return {name: rows if same_disk or rows.portable else RowsHeld(rows.read()) for name, rows in parts.items()}


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

    >>> from truerank.io.batches import LazyTable
    >>> from truerank.io.spill import scratch
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

    def part(self, part: int) -> RowsHeld:
        return RowsHeld(self.read(part))

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

    def part(self, part: int) -> RowsSliced:
        start, end = self.start[part : part + 2].tolist()
        table, first = self.source.table.around(start, end)
        return RowsSliced(table, start - first, end - start, tuple(self.source.names))

    def read(self, part: int, columns: Collection[str] | None = None) -> pl.DataFrame:
        return self.part(part).read(columns)
