"""Sessions whose users lie in chunks: which chunk each belongs to, so that other tables by session can follow them.

A table `session, item, rank` names no user, while the log is cut by users. Its rows are brought to the chunk of their
session in two steps: by session, where they meet the sessions of the log, then by chunk. Memory stays that of a part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import as_ids
from truerank.core.progress import Progress
from truerank.io.partition import CHUNK_ROWS, Absent, ByHash, Chunks, Keyed, check_same_kind, in_bytes
from truerank.io.spill import Scratch, Spill

_SESSION, _CHUNK = "session", "chunk"


@dataclass(frozen=True, slots=True)
class Owners:
    """The chunk of each session of a log, in parts by a hash of the session."""

    log: Keyed
    parts: Spill
    place: ByHash

    @property
    def n_sessions(self) -> int:
        return int(self.parts.n_rows.sum())

    @classmethod
    def of(
        cls,
        chunks: Chunks,
        name: str,
        log: Keyed,
        *,
        scratch: Scratch,
        n_parts: int | None = None,
        progress: Progress | None = None,
    ) -> Owners:
        """Of the sessions of the table `name` of the chunks; `log` names their column.

        A session that lies in two chunks has two users, and is refused; one with two users in one chunk is found
        where the chunk is read.
        """
        cut, where = chunks.tables[name], f"{log.table.where}, column {log.key!r}"
        rows = int(cut.n_rows.sum())
        place = ByHash(n_parts or max(math.ceil(rows / CHUNK_ROWS), 1))
        kind = pl.String() if log.is_text else pl.Int128() if _is_wide(log) else pl.Int64()
        parts = Spill.new(scratch.make("owners"), {_SESSION: kind, _CHUNK: pl.Int32()}, n_parts=place.n_chunks)
        done = 0
        for at in range(chunks.n_chunks):
            session = as_ids(cut.read(at, [log.key])[log.key], where=where).unique().cast(kind)
            owned = pl.DataFrame({_SESSION: session, _CHUNK: pl.repeat(at, len(session), dtype=pl.Int32, eager=True)})
            parts.add(owned, place.of_ids(session))
            done += int(cut.n_rows[at])
            if progress is not None:
                progress(f"looking up sessions of {log.table.where}", done, rows)
        owners = cls(log, parts, place)
        owners.check()
        return owners

    def check(self) -> None:
        """Refuse a session of two users."""
        for part in range(self.place.n_chunks):
            session = self.parts.read(part, [_SESSION])[_SESSION]
            twice = session.filter(session.is_duplicated())
            if len(twice):
                raise InputError(
                    f"{self.log.table.where}: session {twice[0]!r} belongs to two users; expected one user for each "
                    "session. Make session ids that differ between users."
                )

    def chunk_of(self, part: int, session: pl.Series) -> Ints:
        """The chunk of each of these sessions, all of one part; -1 where the log does not have it."""
        owned = self.parts.read(part)
        kind = owned[_SESSION].dtype
        if kind != session.dtype:
            session, owned = session.cast(pl.Int128), owned.with_columns(pl.col(_SESSION).cast(pl.Int128))
        at = pl.DataFrame({_SESSION: session}).join(owned, on=_SESSION, how="left", maintain_order="left")[_CHUNK]
        return at.fill_null(-1).to_numpy().astype(np.int64)


def follow(
    chunks: Chunks,
    name: str,
    source: Keyed,
    *,
    owners: Owners,
    scratch: Scratch,
    keep_absent: bool = False,
    progress: Progress | None = None,
) -> Chunks:
    """The chunks with one more table, each row of it in the chunk of its session.

    Rows of sessions that the log does not have are counted, and left out or (with `keep_absent`: declared sessions, of
    which each is a cluster of its own) spread over the chunks by their hash.
    """
    check_same_kind({"log": owners.log, name: source})
    table = source.table
    by_session = Spill.new(scratch.make(f"{name}-by-session"), source.schema, n_parts=owners.place.n_chunks)
    for batch, start in source.batches():
        by_session.add(batch, owners.place(source, batch, start))
        if progress is not None:
            progress(f"partitioning {table.where}", start + len(batch), 2 * table.n_rows)
    placed = Spill.new(scratch.make(name), source.schema, n_parts=chunks.n_chunks)
    spread, absent, done = ByHash(chunks.n_chunks), Absent(), table.n_rows
    for part in range(owners.place.n_chunks):
        rows = by_session.read(part)
        by_session.remove(part)
        session = source.ids(rows, 0)
        at = owners.chunk_of(part, session)
        without = at < 0
        if without.any():
            lost = session.filter(pl.Series(without))
            absent = Absent(absent.rows + len(lost), absent.sessions + lost.n_unique())
            if keep_absent:
                at[without] = spread.of_ids(lost)
        placed.add(rows, at)
        done += len(rows)
        if progress is not None:
            progress(f"partitioning {table.where}", done, 2 * table.n_rows)
    note = (
        f"{table.where}: {table.n_rows:,} rows brought to the sessions of {owners.log.table.where} on disk: "
        f"{in_bytes(placed.n_bytes)} in {chunks.n_chunks:,} files."
    )
    return replace(
        chunks,
        tables={**chunks.tables, name: placed},
        notes=(*chunks.notes, note),
        absent={**chunks.absent, name: absent},
    )


def _is_wide(log: Keyed) -> bool:
    return log.table.schema[log.key] in (pl.UInt64, pl.Int128, pl.UInt128)
