"""How chunks of a ranked log are read, here or by another process, and what only all of them tell together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.ids import Ids, Keys
from truerank.exposure.positions.learner import MOST_GROUPS
from truerank.io.impressions import Impressions, RankedChunk
from truerank.io.partition import Chunks
from truerank.io.read_impressions import ImpressionSchema
from truerank.io.spill import RowsOfPart

LOG, SESSIONS = "the log", "declared sessions"  # names that no target has: these are said with their options


@dataclass(frozen=True, slots=True)
class HeldLogReader:
    """Gives chunks of a log in memory the names of all items."""

    items: Ids

    def __call__(self, chunk: RankedChunk) -> RankedChunk:
        return replace(chunk, log=replace(chunk.log, items=self.items))


@dataclass(frozen=True, slots=True)
class LogCounts:
    """What only the chunks of a log tell together: units and clusters, empty sessions, what all rows share."""

    n_units: tuple[int, ...] = ()
    n_empty: int = 0
    key: tuple[Keys, ...] = ()
    surface: frozenset[str] = frozenset()
    group: frozenset[str] = frozenset()

    @classmethod
    def of(cls, log: Impressions) -> LogCounts:
        """Of one chunk."""
        rows = int(np.count_nonzero(np.diff(log.unit, prepend=-1)))
        keys = log.clusters().key
        return cls((log.n_units,), log.n_units - rows, (keys,), _kinds(log.surface), _kinds(log.group))

    def __add__(self, other: LogCounts) -> LogCounts:
        """Of these chunks, then of the others."""
        return LogCounts(
            (*self.n_units, *other.n_units),
            self.n_empty + other.n_empty,
            (*self.key, *other.key),
            self.surface | other.surface,
            self.group | other.group,
        )


def _kinds(values: Any) -> frozenset[str]:
    """The values of a column; of very many some, which is more than can be used."""
    return frozenset() if values is None else frozenset(np.unique(values)[: MOST_GROUPS + 1].tolist())


@dataclass(frozen=True, slots=True)
class StreamedLogReader:
    """Reads chunks of a log, with the rows of targets' tables for their sessions."""

    schema: ImpressionSchema

    def __call__(self, part: tuple[int, Mapping[str, RowsOfPart]]) -> RankedChunk:
        first, tables = part
        frames = {name: rows.read() for name, rows in tables.items()}
        log = read_log(self.schema, frames)
        place = first + np.arange(log.n_units)
        return RankedChunk(log, {name: table for name, table in frames.items() if name not in (LOG, SESSIONS)}, place)


@dataclass(frozen=True, slots=True)
class LogTables:
    """The chunks of a log alone, before the places of their units are known."""

    tables: Chunks
    schema: ImpressionSchema

    @property
    def n_chunks(self) -> int:
        return self.tables.n_chunks

    @property
    def n_rows(self) -> Ints:
        return self.tables.tables[LOG].n_rows

    def chunk(self, at: int) -> Impressions:
        return self.reader()(self.part(at, same_disk=True))

    def reader(self) -> LogReader:
        return LogReader(self.schema.without_rows())

    def part(self, at: int, *, same_disk: bool) -> Mapping[str, RowsOfPart]:
        parts = self.tables.part(at, same_disk=same_disk)
        return {name: rows for name, rows in parts.items() if name in (LOG, SESSIONS)}


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads chunks of a log alone."""

    schema: ImpressionSchema

    def __call__(self, part: Mapping[str, RowsOfPart]) -> Impressions:
        return read_log(self.schema, {name: rows.read() for name, rows in part.items()})


def read_log(schema: ImpressionSchema, frames: Mapping[str, pl.DataFrame]) -> Impressions:
    declared = frames.get(SESSIONS)
    return schema.read(frames[LOG], sessions=None if declared is None else Ids.of(declared["session"]))
