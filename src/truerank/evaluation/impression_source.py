"""Where a log of impressions comes from: cut into chunks of whole clusters, with the rows of targets' tables."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.ids import Ids, Keys
from truerank.core.log import Log, Logged, has_user_units
from truerank.core.progress import Progress
from truerank.core.record import record
from truerank.engines.engine import Chunked, Workers, chunks_wanted, map_chunks
from truerank.evaluation.log_facts import LogFacts, RewardFacts
from truerank.evaluation.sources import Part, fits_in_memory, in_memory, streamed
from truerank.exposure.policies.targets import Target, column_names, is_table
from truerank.exposure.positions.learner import MOST_GROUPS
from truerank.io.batches import LazyTable
from truerank.io.columns import header, table_columns, with_users
from truerank.io.log_schema import LogSchema
from truerank.io.partition import Chunks, Keyed, together
from truerank.io.read import read_impressions, scan_impressions
from truerank.io.sessions import RankedChunk, SessionChunks, notes_of
from truerank.io.spill import Scratch

LOG, SESSIONS = "the log", "declared sessions"  # names that no target has: these are given by options
ROWS_AT_ONCE = 2**21  # of a log in memory, whatever the number of threads


@record
class ImpressionSource:
    """A log in chunks, what is known of the whole, and the keys of its clusters; `log` where it is in memory."""

    chunks: Chunked[RankedChunk]
    facts: LogFacts
    keys: Keys
    log: Log | None = None


def held_source(log: Log, chunks: Sequence[RankedChunk]) -> ImpressionSource:
    """A log that is held in these chunks."""
    keys = np.concatenate([chunk.clusters().key for chunk in chunks])
    return ImpressionSource(in_memory(chunks, log.items), LogFacts.of(log), keys, log)


def chunks_of(
    log: Log, targets: Mapping[str, Target], *, columns: Mapping[str, str] | None = None, n: int = 1
) -> list[RankedChunk]:
    """A log in memory in at most n chunks of whole clusters, with the rows of each target's table for its sessions."""
    tables = {name: target for name, target in targets.items() if is_table(target)}
    parts = list(log.chunks(n))
    if len(parts) == 1:
        return [RankedChunk(log, tables)]
    edges = np.cumsum([0, *(part.n_units for part in parts)])
    pieces = {name: _cut(table, log, edges, name=name, columns=columns) for name, table in tables.items()}
    return [
        RankedChunk(part, {name: rows[number] for name, rows in pieces.items()}, np.arange(first, last))
        for number, (part, (first, last)) in enumerate(zip(parts, pairwise(edges), strict=True))
    ]


def _cut(source: Any, log: Log, edges: Ints, *, name: str, columns: Mapping[str, str] | None) -> list[pl.DataFrame]:
    """The rows of a table for the units of each chunk; those of sessions that the log does not have come first."""
    rows = table_columns(source, columns, unnamed=name)
    unit = log.unit_of_session(rows.get("session"), where=f"{rows.where}, column 'session'")
    order = np.argsort(unit, kind="stable")
    starts = np.searchsorted(unit[order], edges)
    starts[0] = 0
    ordered = rows.table[order]
    return [ordered[int(first) : int(last)] for first, last in pairwise(starts)]


# ------------------------------------------------------------------------------------------------------------ streamed


@record
class LogCounts:
    """What only the chunks of a log show together: units and clusters, empty sessions, what all rows share."""

    n_units: tuple[int, ...] = ()
    n_empty: int = 0
    keys: tuple[Keys, ...] = ()
    surfaces: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, chunk: RankedChunk) -> LogCounts:
        """Of one chunk; of very many surfaces or groups some, which is more than can be used."""
        log = chunk.log
        n_empty = log.n_units - int(np.count_nonzero(np.diff(log.unit, prepend=-1)))
        surfaces, groups = (
            frozenset(() if values is None else np.unique(values)[: MOST_GROUPS + 1].tolist())
            for values in (log.surface, log.group)
        )
        return cls((log.n_units,), n_empty, (log.clusters().key,), surfaces, groups)

    def __add__(self, more: LogCounts) -> LogCounts:
        """Of these chunks, then of the others."""
        return LogCounts(
            self.n_units + more.n_units,
            self.n_empty + more.n_empty,
            self.keys + more.keys,
            self.surfaces | more.surfaces,
            self.groups | more.groups,
        )


def _read(schema: LogSchema, part: Part) -> RankedChunk:
    """A chunk of a log, with the rows of targets' tables for its sessions."""
    first, tables = part
    frames = {name: rows.read() for name, rows in tables.items()}
    declared = frames.pop(SESSIONS, None)
    sessions = None if declared is None else Ids.of(declared["session"])
    log = schema.read(frames.pop(LOG), units=sessions)
    return RankedChunk(log, frames, first + np.arange(log.n_units))


def _streamed(
    schema: LogSchema,
    targets: Mapping[str, Target],
    *,
    columns: Mapping[str, str] | None,
    sessions: Any,
    space: Scratch,
    workers: Workers,
    progress: Progress | None,
) -> ImpressionSource:
    """A log on disk; targets' tables are brought to its sessions."""
    tables = _brought(schema, targets, columns=columns, sessions=sessions, space=space, progress=progress)
    read, where = partial(_read, schema.without_rows()), schema.table.where
    alone = streamed(tables, read, lambda _: 0, (LOG, SESSIONS))
    result = map_chunks(
        workers, LogCounts.of, alone, progress=progress, what=f"counting sessions of {where}", ordered=True
    )
    counts, sample = reduce(operator.add, result, LogCounts()), alone.chunk(0).log
    n_units, n_rows = sum(counts.n_units), schema.table.n_rows
    n_users = len(schema.users) if schema.user else None
    facts = LogFacts.of(
        sample,
        surfaces=counts.surfaces,
        groups=counts.groups,
        source=where,
        n_rows=n_rows,
        n_units=n_units,
        n_items=len(schema.items),
        rewards={
            name: RewardFacts(reward.minimum, reward.maximum, reward.binary) for name, reward in schema.facts.items()
        },
        notes=notes_of(sample, schema.facts, n_rows=n_rows, n_units=n_units, n_users=n_users, n_empty=counts.n_empty),
        absent={name: lost.sessions for name, lost in tables.absent.items() if name != SESSIONS},
    )
    first = np.cumsum([0, *counts.n_units[:-1]])
    return ImpressionSource(streamed(tables, read, first.__getitem__), facts, np.concatenate(counts.keys))


def _brought(
    schema: LogSchema,
    targets: Mapping[str, Target],
    *,
    columns: Mapping[str, str] | None,
    sessions: Any,
    space: Scratch,
    progress: Progress | None,
) -> Chunks:
    """Log, targets' tables and declared sessions in chunks of the same users (or sessions)."""
    beside = {name: _keyed(target, name, columns) for name, target in targets.items() if is_table(target)}
    if sessions is not None:
        ids = sessions if isinstance(sessions, Ids) else Ids.of(sessions, where="sessions")
        beside[SESSIONS] = Keyed(LazyTable.of(pl.DataFrame({"session": ids.values}), name="sessions"), "session")
    if not schema.user:
        return together({LOG: schema.keyed, **beside}, scratch=space, progress=progress)
    chunks = together({LOG: schema.keyed}, scratch=space, progress=progress)
    if not schema.session:
        return chunks
    keyed = Keyed(schema.table, schema.session, schema.needed)
    sessions_of_log = SessionChunks.of(chunks, LOG, keyed, progress=progress)
    for name, source in beside.items():
        chunks = sessions_of_log.follow(
            chunks, name, source, scratch=space, keep_absent=name == SESSIONS, progress=progress
        )
    return chunks


def _keyed(target: Target, name: str, columns: Mapping[str, str] | None) -> Keyed:
    table = LazyTable.of(target, name=None if isinstance(target, str | Path) else name, columns=columns)
    return Keyed(table, header(table, columns or {}).get("session").name)


# -------------------------------------------------------------------------------------------------------------- source


def source_of(
    log: Any,
    targets: Mapping[str, Target],
    *,
    others: Sequence[str] = (),
    rewards: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    sessions: Any = None,
    logged: Logged = Logged.VIEWED,
    space: Scratch,
    workers: Workers,
    progress: Progress | None,
) -> ImpressionSource:
    """The log with all columns that targets name, and `others`: held where it fits, else streamed."""
    names = [name for target in targets.values() for name in column_names(target)]
    extra = [name for name in dict.fromkeys([*names, *others]) if name not in ("position", "propensity")]
    if isinstance(log, str | Path | LazyTable):
        table = LazyTable.of(log)
        if not fits_in_memory(table):

            def source_with(mapping: Mapping[str, str]) -> ImpressionSource:
                schema = scan_impressions(
                    table, columns=mapping, rewards=rewards, extra=extra, logged=logged, progress=progress
                )
                return _streamed(
                    schema, targets, columns=columns, sessions=sessions, space=space, workers=workers,
                    progress=progress,
                )  # fmt: skip

            source, notes = with_users(
                table.columns, dict(columns or {}), source_with, taken=[*(rewards or ()), *extra]
            )
            return replace(source, facts=replace(source.facts, notes=(*source.facts.notes, *notes, *table.notes)))
    if not isinstance(log, Log) or has_user_units(log):
        log = read_impressions(log, columns=columns, rewards=rewards, extra=extra, sessions=sessions, logged=logged)
    n = max(chunks_wanted(workers), -(-len(log) // ROWS_AT_ONCE))
    return held_source(log, chunks_of(log, targets, columns=columns, n=n))
