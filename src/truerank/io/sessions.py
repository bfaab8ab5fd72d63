"""Sessions of a log of impressions: what they may hold, and tables by session, such as a target's, beside them.

A log is cut by users, and the other table names none: its rows are brought to the chunks of their sessions. Memory is
that of the ids of sessions, not of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError
from truerank.core.ids import Ids, joined_ids
from truerank.core.log import Array, Log, Logged
from truerank.core.progress import Progress
from truerank.core.record import record
from truerank.core.sizes import bytes_text
from truerank.core.wording import columns_option
from truerank.io.columns import table_columns
from truerank.io.partition import Absent, ChunkRule, Chunks, CutTable, Keyed, check_same_kind
from truerank.io.scan import Facts
from truerank.io.spill import Scratch, Spill


def check_sessions(log: Log) -> None:
    """What a session cannot have: an item twice, two items in one place, a reward without a view."""

    def refuse(bad: Array, what: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            place = f"a row of item {log.items.texts(log.item[[row]])[0]}"
            if log.sessions is not None and log.session_of_unit is not None:
                place = f"session {log.sessions.texts(log.session_of_unit[log.unit[[row]]])[0]}"
            raise InputError(f"{log.source}: {place} has {what}")

    if log.sessions is not None:
        again = (log.unit[1:] == log.unit[:-1]) & (log.item[1:] == log.item[:-1])
        item = log.items.texts(log.item[[int(np.argmax(again))]])[0] if again.any() else ""
        refuse(
            again,
            f"item {item} twice; expected each item once in a session. Keep its first row, or add up its rewards.",
        )
        if log.position is not None and len(log):
            place = log.position.astype(np.int64)
            if log.surface is not None:
                place = place + np.unique(log.surface, return_inverse=True)[1] * (int(place.max()) + 1)
            width = int(place.max()) + 1
            cell = log.unit * width + place
            cell = cell if (cell[1:] >= cell[:-1]).all() else np.sort(cell)
            twice = cell[1:][cell[1:] == cell[:-1]]
            refuse(
                log.unit == twice[0] // width if len(twice) else np.zeros(0, dtype=bool),
                "two items at one position; expected each position once in a session and surface. Give each list a "
                "session of its own, or name the surface: "
                f"{columns_option('surface', by='truerank.read_impressions')}.",
            )
    for name, values in log.rewards.items():
        refuse(
            (values != 0) & (False if log.viewed is None else ~log.viewed),
            f"a {name} on an item that was not viewed; expected rewards of viewed items only. Correct the column "
            "viewed or the reward.",
        )


def notes_of(
    log: Log, facts: Mapping[str, Facts], *, n_rows: int, n_units: int, n_users: int | None, n_empty: int
) -> tuple[str, ...]:
    """What there is in all; `log` is all of it or any part, and `facts` are of the rewards of all rows."""
    rows = "impressions" if log.logged is Logged.DISPLAYED or log.viewed is not None else "viewed items"
    people = f" of {n_users:,} users" if n_users is not None else ""
    notes = [f"{n_rows:,} {rows} in {n_units:,} {log.unit_name}s{people}, {len(log.items):,} items."]
    for name, values in facts.items():
        notes.append(f"{name}: {values.nonzero:,} rows with a reward, {values.total:g} in all.")
        if values.minimum < 0:
            notes.append(f"{name}: some rewards are negative, so that clipping can move the estimate either way.")
    if n_empty and log.sessions is not None:
        notes.append(f"{n_empty:,} sessions have no row: nothing was viewed in them, and they count.")
    return tuple(notes)


# -------------------------------------------------------------------------------------------------------------- chunks


@record(eq=False)
class RankedChunk:
    """Whole clusters of an impression log, and what the tables of targets say of their sessions.

    `place` is the place of each unit in the population. `made` keeps what was already made of the chunk.
    """

    log: Log
    tables: Mapping[str, Any] = field(default_factory=dict)
    place: Ints | None = None
    made: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def n_rows(self) -> int:
        return len(self.log)

    def places(self) -> Ints:
        return np.arange(self.log.n_units) if self.place is None else self.place

    def with_items(self, items: Ids) -> RankedChunk:
        """The same with other names of items."""
        return replace(self, log=replace(self.log, items=items))

    def to_send(self) -> RankedChunk:
        """The chunk without the names of all items, which travel once, and with the sessions and users of its own."""
        log = replace(self.log.with_own_ids(), items=Ids.places(0))
        return RankedChunk(log, {name: table_columns(table).table for name, table in self.tables.items()}, self.place)

    def clusters(self) -> Clusters:
        """The clusters of the log."""
        if "clusters" not in self.made:
            self.made["clusters"] = self.log.clusters()
        clusters: Clusters = self.made["clusters"]
        return clusters


@record
class SessionChunks:
    """The chunk of each session of a log that is cut by users, so that other tables by session can follow them."""

    log: Keyed
    sessions: Ids
    chunk: Ints

    @classmethod
    def of(cls, chunks: Chunks, name: str, log: Keyed, *, progress: Progress | None = None) -> SessionChunks:
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
        return cls(log, Ids(session.gather(order)), chunk[order.to_numpy()])

    def follow(
        self,
        chunks: Chunks,
        name: str,
        source: Keyed,
        *,
        scratch: Scratch,
        keep_absent: bool = False,
        progress: Progress | None = None,
    ) -> Chunks:
        """The chunks with one more table, each row of it in the chunk of its session.

        Rows of sessions that the log does not have are counted, and left out or (with `keep_absent`: declared sessions,
        of which each is a cluster of its own) spread over the chunks by their hash.
        """
        check_same_kind([self.log, source])
        table, spread = source.table, ChunkRule(chunks.n_chunks)
        placed = Spill.new(scratch.make(name), source.schema, n_parts=chunks.n_chunks)
        absent: list[pl.Series] = []
        n_absent = 0
        for batch, start in source.batches():
            session = source.ids(batch, start)
            place = self._locate(session)
            if (place < 0).any():
                lost = session.filter(pl.Series(place < 0))
                absent, n_absent = [joined_ids([*absent, lost]).unique()], n_absent + len(lost)
                if keep_absent:
                    place[place < 0] = spread.of_ids(lost)
            placed.add(batch, place)
            if progress is not None:
                progress(f"partitioning {table.where}", start + len(batch), table.n_rows)
        note = (
            f"{table.where}: {table.n_rows:,} rows brought to the sessions of {self.log.table.where} on disk: "
            f"{bytes_text(placed.n_bytes)} in {chunks.n_chunks:,} files."
        )
        return replace(
            chunks,
            tables={**chunks.tables, name: CutTable(placed.n_rows, placed.part)},
            notes=(*chunks.notes, note),
            absent={**chunks.absent, name: Absent(n_absent, sum(map(len, absent)))},
        )

    def _locate(self, session: pl.Series) -> Ints:
        """The chunk of each of these sessions, -1 where the log does not have it; by bisection: a hash table of all
        sessions would be made anew for every batch.
        """
        ids = self.sessions.values
        if not len(ids) or not len(session):
            return np.full(len(session), -1, dtype=np.int64)
        if ids.dtype != session.dtype:
            ids, session = ids.cast(pl.Int128), session.cast(pl.Int128)
        row = ids.search_sorted(session).clip(upper_bound=len(ids) - 1)
        return np.where((ids.gather(row) == session).to_numpy(), self.chunk[row.to_numpy()], -1)
