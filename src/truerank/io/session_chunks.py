"""Sessions whose users lie in chunks: a table by session, such as a target's, is brought to the chunks of its sessions.

The log is cut by users, and the other table names none. Memory is that of the ids of sessions, not of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids, joined_ids
from truerank.core.progress import Progress
from truerank.io.partition import Absent, ChunkRule, Chunks, CutTable, Keyed, check_same_kind, in_bytes
from truerank.io.spill import Scratch, Spill


@dataclass(frozen=True, slots=True)
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
            f"{in_bytes(placed.n_bytes)} in {chunks.n_chunks:,} files."
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
