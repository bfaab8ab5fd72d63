"""Where a ranked log comes from: held in memory, or read in chunks of whole users; with the tables of targets."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids, Keys
from truerank.core.progress import Progress
from truerank.engines.engine import Workers, chunks_wanted, map_chunks
from truerank.estimators.refitting import RankedEstimator
from truerank.evaluation.log_facts import RankedFacts, RewardFacts, ends_known
from truerank.evaluation.ranked_parts import (
    LOG,
    SESSIONS,
    HeldLogReader,
    LogCounts,
    LogTables,
    StreamedLogReader,
    read_log,
)
from truerank.exposure.policies.targets import Target, column_names, is_table
from truerank.io.batches import LazyTable
from truerank.io.columns import header, table_columns, with_users
from truerank.io.impressions import Impressions, Logged, RankedChunk, notes_of
from truerank.io.partition import MEMORY_BYTES, MEMORY_ROWS, Chunks, Keyed, together
from truerank.io.read_impressions import ImpressionSchema, read_impressions, scan_impressions
from truerank.io.session_chunks import SessionChunks
from truerank.io.spill import RowsOfPart, Scratch


def check_common(where: str, known: int, facts: RankedFacts) -> None:
    """Refuse a target's table without a session of the log."""
    if not known:
        raise InputError(f"{where}: no session in common with {facts.source}. Check the session ids.")


ROWS_AT_ONCE = 2**21  # of a log in memory, whatever the number of threads


class RankedSource(Protocol):
    """A ranked log in chunks of whole clusters, and what is known of the whole before any of it is measured."""

    @property
    def facts(self) -> RankedFacts: ...
    @property
    def n_chunks(self) -> int: ...
    @property
    def n_rows(self) -> Ints: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def chunk(self, at: int) -> RankedChunk: ...
    def reader(self) -> Callable[[Any], RankedChunk]: ...
    def part(self, at: int, *, same_disk: bool) -> Any: ...
    def cluster_keys(self) -> Keys: ...


@dataclass(frozen=True, slots=True)
class HeldLog:
    """A log in memory, cut by clusters."""

    log: Impressions
    facts: RankedFacts
    chunks: tuple[RankedChunk, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        log: Impressions,
        targets: Mapping[str, Target],
        *,
        columns: Mapping[str, str] | None = None,
        n: int | None = None,
        least: int = 1,
    ) -> HeldLog:
        """In at most n chunks, by default as many as keep each of them small, and about `least` or more."""
        n = max(least, -(-len(log) // ROWS_AT_ONCE)) if n is None else n
        return cls(log, RankedFacts.of(log), tuple(chunks_of(log, targets, columns=columns, n=n)))

    @property
    def n_chunks(self) -> int:
        return len(self.chunks)

    @property
    def n_rows(self) -> Ints:
        return np.array([len(chunk.log) for chunk in self.chunks], dtype=np.int64)

    def chunk(self, at: int) -> RankedChunk:
        return self.chunks[at]

    def reader(self) -> HeldLogReader:
        return HeldLogReader(self.log.items)

    def part(self, at: int, *, same_disk: bool) -> RankedChunk:
        """The chunk without the names of all items, which travel once, and with the sessions and users of its own."""
        chunk = self.chunks[at]
        log = replace(chunk.log.with_own_ids(), items=Ids.places(0))
        return RankedChunk(log, {name: table_columns(table).table for name, table in chunk.tables.items()}, chunk.place)

    def cluster_keys(self) -> Keys:
        return np.concatenate([chunk.clusters().key for chunk in self.chunks])


def chunks_of(
    log: Impressions, targets: Mapping[str, Target], *, columns: Mapping[str, str] | None, n: int
) -> list[RankedChunk]:
    """A log in memory in at most n chunks of whole clusters, with the rows of each target's table for its sessions."""
    tables = {name: target for name, target in targets.items() if is_table(target)}
    parts = list(log.chunks(n))
    if len(parts) == 1:
        return [RankedChunk(log, tables)]
    edges = np.cumsum([0, *(part.n_units for part in parts)])
    cut = {name: _cut(table, log, edges, name=name, columns=columns) for name, table in tables.items()}
    return [
        RankedChunk(part, {name: pieces[at] for name, pieces in cut.items()}, np.arange(edges[at], edges[at + 1]))
        for at, part in enumerate(parts)
    ]


def _cut(
    source: Any, log: Impressions, edges: Ints, *, name: str, columns: Mapping[str, str] | None
) -> list[pl.DataFrame]:
    """The rows of a table for the units of each chunk; those of sessions that the log does not have come first."""
    rows = table_columns(source, columns, unnamed=name)
    unit = log.unit_of_session(rows.get("session"), where=f"{rows.where}, column 'session'")
    order = np.argsort(unit, kind="stable")
    starts = np.searchsorted(unit[order], edges)
    starts[0] = 0
    ordered = rows.table[order]
    return [ordered[int(first) : int(last)] for first, last in pairwise(starts)]


# ------------------------------------------------------------------------------------------------------------ streamed


@dataclass(frozen=True, slots=True)
class StreamedLog:
    """A log on disk, of which the chunks under way are in memory; targets' tables are brought to its sessions."""

    schema: ImpressionSchema
    tables: Chunks
    facts: RankedFacts
    first: Ints  # the place of the first unit of each chunk
    key: Keys = field(repr=False)

    @classmethod
    def of(
        cls,
        schema: ImpressionSchema,
        targets: Mapping[str, Target],
        *,
        columns: Mapping[str, str] | None,
        sessions: Any,
        scratch: Scratch,
        workers: Workers,
        progress: Progress | None,
    ) -> StreamedLog:
        tables = _brought(schema, targets, columns=columns, sessions=sessions, scratch=scratch, progress=progress)
        found = map_chunks(
            workers,
            LogCounts.of,
            LogTables(tables, schema),
            progress=progress,
            what=f"counting sessions of {schema.table.where}",
            ordered=True,
        )
        counted, sample = reduce(operator.add, found, LogCounts()), read_log(schema, tables.chunk(0))
        first = np.cumsum([0, *counted.n_units[:-1]])
        absent = {name: lost.sessions for name, lost in tables.absent.items() if name != SESSIONS}
        facts = replace(_facts(schema, counted, sample), absent=absent)
        return cls(schema, tables, facts, first, np.concatenate(counted.key))

    @property
    def n_chunks(self) -> int:
        return self.tables.n_chunks

    @property
    def n_rows(self) -> Ints:
        return self.tables.n_rows

    @property
    def notes(self) -> tuple[str, ...]:
        return self.tables.notes

    def chunk(self, at: int) -> RankedChunk:
        return self.reader()(self.part(at, same_disk=True))

    def reader(self) -> StreamedLogReader:
        return StreamedLogReader(self.schema.without_rows())

    def part(self, at: int, *, same_disk: bool) -> tuple[int, Mapping[str, RowsOfPart]]:
        return int(self.first[at]), self.tables.part(at, same_disk=same_disk)

    def cluster_keys(self) -> Keys:
        return self.key


def _brought(
    schema: ImpressionSchema,
    targets: Mapping[str, Target],
    *,
    columns: Mapping[str, str] | None,
    sessions: Any,
    scratch: Scratch,
    progress: Progress | None,
) -> Chunks:
    """Log, targets' tables and declared sessions in chunks of the same users (or sessions)."""
    beside = {name: _keyed(target, name, columns) for name, target in targets.items() if is_table(target)}
    if sessions is not None:
        ids = sessions if isinstance(sessions, Ids) else Ids.of(sessions, where="sessions")
        beside[SESSIONS] = Keyed(LazyTable.of(pl.DataFrame({"session": ids.values}), name="sessions"), "session")
    if not schema.user:
        return together({LOG: schema.keyed, **beside}, scratch=scratch, progress=progress)
    chunks = together({LOG: schema.keyed}, scratch=scratch, progress=progress)
    if not schema.session:
        return chunks
    log = Keyed(schema.table, schema.session, schema.needed)
    sessions_of_log = SessionChunks.of(chunks, LOG, log, progress=progress)
    for name, source in beside.items():
        chunks = sessions_of_log.follow(
            chunks, name, source, scratch=scratch, keep_absent=name == SESSIONS, progress=progress
        )
    return chunks


def _keyed(target: Target, name: str, columns: Mapping[str, str] | None) -> Keyed:
    table = LazyTable.of(target, name=None if isinstance(target, str | Path) else name, columns=columns)
    return Keyed(table, header(table, columns or {}).get("session").name)


def _facts(schema: ImpressionSchema, counted: LogCounts, sample: Impressions) -> RankedFacts:
    n_units = sum(counted.n_units)
    kinds = {"surface": counted.surface, "group": counted.group}
    return RankedFacts(
        source=schema.table.where,
        logged=schema.logged,
        unit=sample.unit_name,
        cluster=sample.cluster_name,
        n_rows=schema.table.n_rows,
        n_units=n_units,
        n_items=len(schema.items),
        rewards={name: RewardFacts(facts.minimum, facts.maximum, facts.binary) for name, facts in schema.facts.items()},
        propensity=sample.propensity is not None,
        sessions=sample.sessions is not None,
        ends_known=ends_known(sample),
        only={name: next(iter(values)) for name, values in kinds.items() if len(values) == 1},
        surfaces=tuple(sorted(map(str, counted.surface))),
        groups=tuple(sorted(map(str, counted.group))),
        notes=notes_of(
            sample,
            schema.facts,
            n_rows=schema.table.n_rows,
            n_units=n_units,
            n_users=None if schema.users is None else len(schema.users),
            n_empty=counted.n_empty,
        ),
    )


# -------------------------------------------------------------------------------------------------------------- source


def source_of(
    log: Any,
    targets: Mapping[str, Target],
    loggers: Mapping[str, Target],
    estimators: Sequence[RankedEstimator],
    *,
    rewards: Sequence[str] | None,
    columns: Mapping[str, str] | None,
    sessions: Any,
    logged: Logged,
    scratch: Scratch,
    workers: Workers,
    progress: Progress | None,
) -> HeldLog | StreamedLog:
    """The log with all columns that targets, loggers and reward models name: held where it fits, else streamed."""
    wanted = chunks_wanted(workers)
    if isinstance(log, Impressions):
        return HeldLog.of(log, targets, columns=columns, least=wanted)
    names = [name for target in (*targets.values(), *loggers.values()) for name in column_names(target)]
    names += [name for estimator in estimators for name in estimator.columns]
    extra = [name for name in dict.fromkeys(names) if name not in ("position", "propensity")]
    if isinstance(log, str | Path | LazyTable):
        table = LazyTable.of(log)
        if table.n_rows > MEMORY_ROWS or table.n_rows * table.row_bytes() > MEMORY_BYTES:

            def streamed(mapping: Mapping[str, str]) -> StreamedLog:
                schema = scan_impressions(
                    table, columns=mapping, rewards=rewards, extra=extra, logged=logged, progress=progress
                )
                return StreamedLog.of(
                    schema, targets, columns=columns, sessions=sessions, scratch=scratch, workers=workers,
                    progress=progress,
                )  # fmt: skip

            found, said = with_users(table.columns, dict(columns or {}), streamed, taken=[*(rewards or ()), *extra])
            return replace(found, facts=replace(found.facts, notes=(*found.facts.notes, *said)))
    whole = read_impressions(log, columns=columns, rewards=rewards, extra=extra, sessions=sessions, logged=logged)
    return HeldLog.of(whole, targets, columns=columns, least=wanted)
