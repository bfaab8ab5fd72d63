"""Where judged rows come from: held in memory, or read in chunks of whole users; both give the same chunks of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import JudgedChunk
from truerank.data.partition import MEMORY_BYTES, MEMORY_ROWS, Chunks, Progress, together
from truerank.data.read import read
from truerank.data.spill import Scratch
from truerank.data.survey import LogSchema, scan
from truerank.evaluation.setting import CatalogueLayout
from truerank.ranks.candidates import chunks_of

Rows = Log | LogSchema  # rows in memory, or what is known of rows that are read in chunks


def rows_of(source: Any, *, role: str, values: bool, progress: Progress | None = None) -> Rows:
    """The rows of a source: a Log as it is, a file as what is known of it, anything else read at once."""
    if isinstance(source, Log):
        return source
    if isinstance(source, LogSchema):
        return _in_memory(source)
    if isinstance(source, str | Path):
        return _in_memory(scan(source, values=values, progress=progress))
    return read(source, name=role, values=values)


def _in_memory(schema: LogSchema) -> Rows:
    """Rows that are few are read at once."""
    table = schema.table
    if table.n_rows > MEMORY_ROWS or table.n_rows * table.row_bytes(schema.needed) > MEMORY_BYTES:
        return schema
    return schema.read(table.read(schema.needed), users=schema.users)


def source_of(rows: Rows) -> str:
    return rows.source if isinstance(rows, Log) else rows.table.where


def n_rows_of(rows: Rows) -> int:
    return len(rows) if isinstance(rows, Log) else rows.table.n_rows


class JudgedSource(Protocol):
    """Judged rows in chunks of whole users, laid over the catalogue."""

    @property
    def n_chunks(self) -> int: ...
    @property
    def n_rows(self) -> Ints: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def chunk(self, at: int) -> JudgedChunk: ...


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Rows in memory, laid over the catalogue once and cut by users."""

    chunks: tuple[JudgedChunk, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, layout: CatalogueLayout, labels: Log, *, exclude: Log | None, candidates: Log | None) -> HeldRows:
        setting = layout.lay(labels, exclude=exclude, candidates=candidates)
        layout.check_rate(setting)
        first, *others = chunks_of(setting)
        return cls((replace(first, dropped=setting.dropped), *others))

    @property
    def n_chunks(self) -> int:
        return len(self.chunks)

    @property
    def n_rows(self) -> Ints:
        return np.array([len(chunk.labels) for chunk in self.chunks], dtype=np.int64)

    def chunk(self, at: int) -> JudgedChunk:
        return self.chunks[at]


@dataclass(frozen=True, slots=True)
class StreamedRows:
    """Rows on disk, of which the chunks under way are in memory.

    `place_of_user` is the chunk of every user of the population, so that users without a row find theirs.
    """

    layout: CatalogueLayout
    users: Ids
    rows: Mapping[str, Rows]
    tables: Chunks
    place_of_user: Ints

    @classmethod
    def of(
        cls,
        layout: CatalogueLayout,
        rows: Mapping[str, Rows],
        *,
        users: Ids,
        scratch: Scratch,
        progress: Progress | None,
    ) -> StreamedRows:
        keyed = {role: part.keyed for role, part in rows.items() if isinstance(part, LogSchema)}
        tables = together(keyed, scratch=scratch, progress=progress)
        return cls(layout, users, rows, tables, tables.place.of_ids(users.values))

    @property
    def n_chunks(self) -> int:
        return self.tables.n_chunks

    @property
    def n_rows(self) -> Ints:
        return self.tables.n_rows

    @property
    def notes(self) -> tuple[str, ...]:
        return self.tables.notes

    def chunk(self, at: int) -> JudgedChunk:
        unit = np.flatnonzero(self.place_of_user == at)
        users, frames = Ids(self.users.values[unit]), self.tables.chunk(at)
        logs = {role: self._log(role, frames.get(role), users, at) for role in self.rows}
        setting = self.layout.lay(logs["labels"], exclude=logs.get("exclude"), candidates=logs.get("candidates"))
        return JudgedChunk(setting.labels, setting.pools, unit, setting.dropped)

    def _log(self, role: str, frame: pl.DataFrame | None, users: Ids, at: int) -> Log:
        rows = self.rows[role]
        if isinstance(rows, LogSchema):
            # other tables may have users who are not evaluated
            return rows.read(frame if frame is not None else pl.DataFrame(), users=users if role == "labels" else None)
        mine = self.tables.place.of_ids(rows.users.values) == at
        part = rows.select(mine[rows.user])
        if role != "labels":
            return part
        here = users.locate(part.users)
        return replace(part, users=users, user=here[part.user])


def check_rows(labels: Rows) -> None:
    if n_rows_of(labels) == 0:
        raise InputError(f"{source_of(labels)}: no rows; expected judged pairs of users and items.")


def first_rows(labels: Rows, n: int = 1000) -> Log:
    """Some rows, which tell what values there are."""
    return labels if isinstance(labels, Log) else labels.read(labels.table.slice(0, n, labels.needed))


def chunked(
    layout: CatalogueLayout, rows: Mapping[str, Rows], *, space: Scratch, progress: Progress | None
) -> HeldRows | StreamedRows:
    """The rows in chunks of whole users: all in memory where they fit, else read chunk by chunk."""
    held = {role: part for role, part in rows.items() if isinstance(part, Log)}
    if len(held) == len(rows):
        return HeldRows.of(layout, held["labels"], exclude=held.get("exclude"), candidates=held.get("candidates"))
    return StreamedRows.of(layout, rows, users=rows["labels"].users, scratch=space, progress=progress)
