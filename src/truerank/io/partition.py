"""Rows of one key brought together: tables become chunks of whole users or sessions, of which one is in memory.

What is small stays in memory as one chunk. What is sorted by its key is cut where the key changes. What is neither is
partitioned once on disk, by a hash of the key. Chunk i of every table has the same keys.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Keys, as_ids, joined_ids
from truerank.core.progress import Progress
from truerank.core.record import record
from truerank.core.sizes import bytes_text, check_size
from truerank.io.batches import LazyTable
from truerank.io.facts import Distinct
from truerank.io.spill import RowsHeld, Scratch, Spill, SpilledRows

SEED = 20  # of hashes; which chunk a row lies in changes no result
MEMORY_ROWS = 2**22
MEMORY_BYTES = 2**28
CHUNK_ROWS = 2**20
CHUNK_BYTES = 2**26
COPIES = 3  # of the rows of a chunk that are in memory at once, at least: as read, in order, as a log
MOST_CHUNKS = 2**13

# rows of one chunk of a table before they are read: what another process needs to `read` them; if they are `portable`
# on any machine
RowsOfPart = LazyTable | SpilledRows | RowsHeld


@record
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

    @property
    def n_bytes(self) -> float:
        return self.table.n_rows * self.table.row_bytes(self.names)

    def batches(self, *, all_columns: bool = True) -> Iterator[tuple[pl.DataFrame, int]]:
        """Batches of rows with the number of rows before each."""
        start = 0
        for batch in self.table.batches(dict.fromkeys([*(self.names if all_columns else ()), *self.key_columns])):
            yield batch, start
            start += len(batch)

    def ids(self, batch: pl.DataFrame, start: int = 0) -> pl.Series:
        """The ids of a batch of rows, `start` of which come before it."""
        return as_ids(batch[self.key], where=f"{self.table.where}, column {self.key!r}", before=start)


def check_same_kind(sources: Collection[Keyed]) -> None:
    """Refuse keys of which some are text and some are numbers: no id of one would be found in the other."""
    by_id = [source for source in sources if source.table.n_rows and not source.content]
    for first, second in itertools.pairwise(by_id):
        if second.is_text != first.is_text:
            words = {True: "text", False: "numbers"}
            raise InputError(
                f"{second.table.where}, column {second.key!r}: ids are {words[second.is_text]} where those of "
                f"{first.table.where} are {words[first.is_text]}; text never matches numbers. Store both as the same "
                "type."
            )


def hashed(ids: pl.Series) -> Keys:
    """A number of 64 bits for each id, the same for equal ids; fast, and good for nothing but spreading rows.

    >>> narrow, wide = (hashed(as_ids(pl.Series([7, -1], dtype=kind), where="")) for kind in (pl.Int8, pl.Int128))
    >>> bool((narrow == wide).all())
    True
    """
    return (ids if ids.dtype == pl.String else ids.cast(pl.Int128)).hash(seed=SEED).to_numpy()


@record
class ChunkRule:
    """Which of `n_chunks` chunks each row belongs to: by the hash of its key, in chunks of about the same size, or by
    ranges of ids, for tables sorted by them: chunk i has the ids from border i - 1 on, below border i.
    """

    n_chunks: int
    borders: pl.Series | None = None

    def of_ids(self, ids: pl.Series) -> Ints:
        """The chunk of each id, whether or not a row has it: so users without rows find theirs."""
        borders = self.borders
        if borders is None:
            return self._of(hashed(ids))
        if len(ids) == 0 or len(borders) == 0:
            return np.zeros(len(ids), dtype=np.int64)
        if ids.dtype != borders.dtype:
            ids, borders = ids.cast(pl.Int128), borders.cast(pl.Int128)
        return borders.search_sorted(ids, side="right").to_numpy().astype(np.int64)

    def of_rows(self, source: Keyed, batch: pl.DataFrame, start: int = 0) -> Ints:
        if not source.content:
            return self.of_ids(source.ids(batch, start))
        flat = [name for name in source.content if not batch[name].dtype.is_nested()]
        return self._of(batch.select(flat).hash_rows(seed=SEED).to_numpy())

    def _of(self, keys: Keys) -> Ints:
        """A hash of 64 bits as a number below `n_chunks`, by multiplication: no division is as fast."""
        return ((keys >> np.uint64(32)) * np.uint64(self.n_chunks) >> np.uint64(32)).astype(np.int64)


def _rule(largest: Keyed, n_chunks: int) -> ChunkRule:
    """By ranges of at least the wanted size where the largest table is sorted by its ids, else by hash.

    One pass over the key column, which ends at the first row out of order.
    """
    by_hash = ChunkRule(n_chunks)
    if largest.content or not largest.table.seekable:
        return by_hash
    borders: list[pl.Series] = []
    last = pl.Series([], dtype=pl.Int64)
    size = math.ceil(largest.table.n_rows / n_chunks)
    for batch, start in largest.batches(all_columns=False):
        ids = largest.ids(batch, start)
        if not joined_ids([part for part in (last, ids) if len(part)]).is_sorted():
            return by_hash
        borders.append(ids.gather_every(size, -start % size))
        last = ids.tail(1)
    after_first = joined_ids([part for part in borders if len(part)]).unique().sort()[1:]
    return ChunkRule(len(after_first) + 1, after_first)


@record
class CutTable:
    """A table cut into chunks: how many rows each has, and its rows before they are read.

    Any chunk can be read any number of times, from several threads.
    """

    n_rows: Ints
    part: Callable[[int], RowsOfPart]

    def read(self, at: int, columns: Collection[str] | None = None) -> pl.DataFrame:
        return self.part(at).read(columns)


@record
class Chunks:
    """Tables in chunks of whole keys: chunk i of each has the same keys.

    `notes` say what had to be done for it. `absent` counts, for tables that were placed by their sessions, those of
    which the log has no row.
    """

    tables: Mapping[str, CutTable]
    place: ChunkRule
    notes: tuple[str, ...] = ()
    absent: Mapping[str, int] = field(default_factory=dict)

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
    check_same_kind(sources.values())
    rows = sum(source.table.n_rows for source in sources.values())
    size = sum(source.n_bytes for source in sources.values())
    if n_chunks is None and rows <= MEMORY_ROWS and size <= MEMORY_BYTES:
        n_chunks = 1
    if n_chunks is not None:
        rule = ChunkRule(n_chunks)
    else:
        wanted = min(max(math.ceil(rows / CHUNK_ROWS), math.ceil(size / CHUNK_BYTES), 1), MOST_CHUNKS)
        rule = _rule(max(sources.values(), key=lambda source: source.n_bytes), wanted)
    cut, notes = {}, []
    for name, source in sources.items():
        if rule.n_chunks == 1:
            _check_largest(source, source.table.n_rows)
            held = RowsHeld(source.table.read(source.names))
            cut[name] = CutTable(frozen(np.array([len(held.rows)])), {0: held}.__getitem__)
            continue
        cut[name], note = _cut(source, rule, scratch=scratch, name=name, progress=progress)
        notes += note
        _check_largest(source, int(cut[name].n_rows.max()))
    return Chunks(cut, rule, tuple(notes))


def _check_largest(source: Keyed, largest: int) -> None:
    """Refuse a table of which one key has more rows than memory holds: no chunk is smaller than a key."""
    if largest > CHUNK_ROWS and not source.table.in_memory:
        check_size(
            f"{source.table.where}: {largest:,} rows with one {source.key}, or a few,",
            memory=COPIES * source.n_bytes * largest / source.table.n_rows,
            instead=f"Check the column {source.key}; repeated rows may be dropped.",
        )


def _cut(
    source: Keyed, rule: ChunkRule | SessionRule, *, scratch: Scratch, name: str, progress: Progress | None
) -> tuple[CutTable, list[str]]:
    """The table in memory, by ranges of its rows or partitioned on disk; and what to report of that."""
    table, n = source.table, rule.n_chunks
    if table.in_memory or (table.n_rows <= CHUNK_ROWS and source.n_bytes <= CHUNK_BYTES):
        rows = table.read(dict.fromkeys([*source.names, *source.key_columns]))
        chunk = rule.of_rows(source, rows)
        starts, order = np.cumsum(np.bincount(chunk + 1, minlength=n + 1)), np.argsort(chunk, kind="stable")
        rows = rows.select(source.names)
        return CutTable(np.diff(starts), lambda at: RowsHeld(rows[order[starts[at] : starts[at + 1]]])), []
    starts = _ranges(source, rule) if rule.borders is not None and table.seekable else np.zeros(0, dtype=np.int64)
    if len(starts):
        sliced = replace(table, schema=source.schema)
        cut = CutTable(np.diff(starts), lambda at: sliced.between(int(starts[at]), int(starts[at + 1])))
        return cut, [f"{table.where}: sorted by {source.key}, read in {n:,} chunks."]
    spill = Spill.new(scratch.make(name), source.schema, n_parts=n)
    for batch, start in source.batches():
        spill.add(batch, rule.of_rows(source, batch, start))
        if progress is not None:
            progress(f"partitioning {table.where}", start + len(batch), table.n_rows)
    by = "content" if source.content else source.key
    return CutTable(spill.n_rows, spill.part), [
        f"{table.where}: {table.n_rows:,} rows in no order of {by}, partitioned once on disk: "
        f"{bytes_text(spill.n_bytes)} in {n:,} chunks."
    ]


def _ranges(source: Keyed, rule: ChunkRule | SessionRule) -> Ints:
    """The first row of each chunk in a table sorted as chunks are; nothing where it is not."""
    count, last = np.zeros(rule.n_chunks, dtype=np.int64), 0
    for batch, start in source.batches(all_columns=False):
        chunk = rule.of_rows(source, batch, start)
        if len(chunk) and (chunk[0] < last or (chunk[1:] < chunk[:-1]).any()):
            return np.zeros(0, dtype=np.int64)
        last = int(chunk[-1]) if len(chunk) else last
        count += np.bincount(chunk, minlength=rule.n_chunks)
    return np.concatenate([[0], np.cumsum(count)])


# ------------------------------------------------------------------------------------------------------------ sessions


@record
class SessionRule:
    """The chunk of each session of a log that is cut by users, so that tables by session (a target's) follow it.

    Such a table names no users. Memory is that of the ids of sessions, not of rows. Sessions that the log does not have
    are counted, and left out or, if they are `kept` (declared sessions, of which each is a cluster of its own), spread
    over the chunks by their hash.
    """

    log: Keyed
    n_chunks: int
    sessions: pl.Series  # sorted
    chunk: Ints
    absent: Distinct
    kept: bool = False

    borders: ClassVar[None] = None

    @classmethod
    def of(cls, chunks: Chunks, name: str, log: Keyed, *, progress: Progress | None = None) -> SessionRule:
        """Of the sessions of the table `name` of the chunks; `log` names their column.

        A session that lies in two chunks has two users, and is refused; one with two users in one chunk is found
        where the chunk is read.
        """
        cut, parts, done = chunks.tables[name], [], 0
        for number in range(chunks.n_chunks):
            parts.append(log.ids(cut.read(number, [log.key])).unique())
            done += int(cut.n_rows[number])
            if progress is not None:
                progress(f"looking up sessions of {log.table.where}", done, int(cut.n_rows.sum()))
        session = joined_ids([part for part in parts if len(part)])
        twice = session.filter(session.is_duplicated())
        if len(twice):
            raise InputError(
                f"{log.table.where}: session {twice[0]!r} belongs to two users; expected one user for each "
                "session. Make session ids that differ between users."
            )
        order = session.arg_sort()
        chunk = np.repeat(np.arange(chunks.n_chunks), [len(part) for part in parts])
        return cls(log, chunks.n_chunks, session.gather(order), chunk[order.to_numpy()], Distinct(log.table.where))

    def of_rows(self, source: Keyed, batch: pl.DataFrame, start: int = 0) -> Ints:
        """The chunk of each row, -1 for those that are left out."""
        session = source.ids(batch, start)
        place = self._locate(session)
        lost = session.filter(pl.Series(place < 0))
        self.absent.add(lost)
        if self.kept:
            place[place < 0] = ChunkRule(self.n_chunks).of_ids(lost)
        return place

    def _locate(self, session: pl.Series) -> Ints:
        """By bisection: a hash table of all sessions would be made anew for every batch."""
        ids = self.sessions
        if not len(ids) or not len(session):
            return np.full(len(session), -1, dtype=np.int64)
        if ids.dtype != session.dtype:
            ids, session = ids.cast(pl.Int128), session.cast(pl.Int128)
        row = ids.search_sorted(session).clip(upper_bound=len(ids) - 1)
        return np.where((ids.gather(row) == session).to_numpy(), self.chunk[row.to_numpy()], -1)

    def follow(
        self,
        chunks: Chunks,
        name: str,
        source: Keyed,
        *,
        scratch: Scratch,
        kept: bool = False,
        progress: Progress | None = None,
    ) -> Chunks:
        """The chunks with one more table, each row of it in the chunk of its session."""
        check_same_kind([self.log, source])
        rule = replace(self, absent=Distinct(source.table.where), kept=kept)
        cut, notes = _cut(source, rule, scratch=scratch, name=name, progress=progress)
        absent = {**chunks.absent, name: len(rule.absent.ids())}
        return replace(chunks, tables={**chunks.tables, name: cut}, notes=(*chunks.notes, *notes), absent=absent)
