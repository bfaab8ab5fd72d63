"""Where a log of impressions comes from: cut into chunks of whole clusters, with the rows of targets' tables."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids, Keys
from truerank.core.log import Log, Logged, has_user_units
from truerank.core.progress import Progress
from truerank.core.record import record
from truerank.core.wording import option
from truerank.engines.engine import Chunked, Workers, chunks_wanted, map_chunks
from truerank.evaluation.counts import NamedCounts
from truerank.evaluation.sources import Part, fits_in_memory, in_memory, streamed
from truerank.exposure.policies.targets import Target, column_names, is_table
from truerank.exposure.positions.learner import MOST_GROUPS
from truerank.inference.linearization import Bounds
from truerank.io.batches import LazyTable
from truerank.io.columns import OF_TARGETS, header, target_columns, with_users, with_usual
from truerank.io.facts import Facts
from truerank.io.log_schema import LogSchema
from truerank.io.partition import Chunks, Keyed, SessionRule, together
from truerank.io.read import read_impressions, scan_impressions
from truerank.io.sessions import RankedChunk, notes_of
from truerank.io.spill import Scratch


@record(kw_only=True)
class LogFacts:
    """What is known of a whole log before any of it is measured.

    `rewards` are the smallest and the largest, and whether all are 0 or 1; `declared` is what was declared of them.
    `ends_known` says that it tells where lists end. `only` is the surface and the group of all rows, where there is no
    other; `surfaces` and `groups` are all surfaces and user groups, of very many some. `absent` are the sessions of
    each target that were left out when its table was brought to the log, because the log does not have them.
    """

    source: str
    logged: Logged
    unit: str
    cluster: str
    n_rows: int
    n_units: int
    n_items: int
    rewards: Mapping[str, Facts]
    propensity: bool
    sessions: bool
    ends_known: bool
    only: Mapping[str, str]
    surfaces: tuple[str, ...]
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    absent: Mapping[str, int] = field(default_factory=dict)
    declared: Bounds | None = None

    @classmethod
    def of(cls, log: Log, *, surfaces: Sequence[str], groups: Sequence[str], **totals: Any) -> LogFacts:
        """Of a log in memory, or of a chunk with the `totals` of all chunks."""
        names = {"surface": _distinct(surfaces), "group": _distinct(groups)}
        facts: dict[str, Any] = {
            "source": log.source,
            "n_rows": len(log),
            "n_units": log.n_units,
            "n_items": len(log.items),
            "rewards": {name: range_of(values) for name, values in log.rewards.items()},
            "notes": log.notes,
        }
        return cls(
            logged=log.logged,
            unit=log.unit_name,
            cluster=log.cluster_name,
            propensity=log.propensity is not None,
            sessions=log.sessions is not None,
            # who came to the end of a list has not stopped
            ends_known=log.length is not None or log.viewed is not None,
            only={name: values[0] for name, values in names.items() if len(values) == 1},
            surfaces=names["surface"],
            groups=names["group"],
            **facts | totals,
        )

    def declaring(self, between: Bounds | None) -> LogFacts:
        """With what was declared of rewards, which must hold all of them."""
        if between is None:
            return self
        low, high = between
        if not low < high:
            raise InputError(f"{option('reward_range')} {low:g},{high:g}; expected two numbers, the smaller one first.")
        for name, facts in self.rewards.items():
            least, most = (0.0, 1.0) if facts.binary else (facts.minimum, facts.maximum)
            if least < low or most > high:
                raise InputError(
                    f"{self.source}: {name} has values from {least:g} to {most:g}; expected all "
                    f"between {low:g} and {high:g}, as {option('reward_range')} says."
                )
        return replace(self, declared=between)

    def between(self, reward: str) -> Bounds | None:
        """What every reward lies between, seen or not: 0 and 1, or what was declared."""
        return (0.0, 1.0) if self.rewards[reward].binary else self.declared

    @property
    def clicks(self) -> str | None:
        """The reward that stands for clicks: the first of 0 and 1."""
        return next((name for name, facts in self.rewards.items() if facts.binary), None)


def range_of(values: Any) -> Facts:
    """The smallest and the largest of these rewards, and whether all are 0 or 1."""
    if not len(values):
        return Facts()
    return Facts(minimum=float(values.min()), maximum=float(values.max()), binary=values.dtype == np.uint8)


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
    facts = LogFacts.of(log, surfaces=_distinct(log.surface), groups=_distinct(log.group))
    return ImpressionSource(in_memory(chunks, log.items), facts, keys, log)


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
    rows = target_columns(source, columns, unnamed=name)
    unit = log.unit_of_session(rows.get("session"), where=f"{rows.where}, column 'session'")
    order = np.argsort(unit, kind="stable")
    starts = np.searchsorted(unit[order], edges)
    starts[0] = 0
    ordered = rows.table[order]
    return [ordered[int(first) : int(last)] for first, last in pairwise(starts)]


# ------------------------------------------------------------------------------------------------------------ streamed


@record(eq=False)
class LogCounts(NamedCounts):
    """What only the chunks of a log show together: units and clusters, empty sessions, surfaces and user groups."""

    n_units: tuple[int, ...]
    n_empty: int
    keys: tuple[Keys, ...]
    surfaces: tuple[str, ...]
    groups: tuple[str, ...]


def _count_log(chunk: RankedChunk) -> LogCounts:
    """Of one chunk; of very many surfaces or groups some, which is more than can be used."""
    log = chunk.log
    n_empty = log.n_units - int(np.count_nonzero(np.diff(log.unit, prepend=-1)))
    surfaces, groups = (_distinct(values)[: MOST_GROUPS + 1] for values in (log.surface, log.group))
    return LogCounts((log.n_units,), n_empty, (log.clusters().key,), surfaces, groups)


def _distinct(values: Any) -> tuple[str, ...]:
    return () if values is None else tuple(np.unique(values).astype(str).tolist())


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
    what = f"counting sessions of {where}"
    result = map_chunks(workers, _count_log, alone, progress=progress, what=what, ordered=True)
    counts, sample = reduce(operator.add, result), alone.chunk(0).log
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
        rewards=schema.facts,
        notes=(
            *notes_of(sample, schema.facts, n_rows=n_rows, n_units=n_units, n_users=n_users, n_empty=counts.n_empty),
            *schema.notes,
        ),
        absent={name: n_absent for name, n_absent in tables.absent.items() if name != SESSIONS},
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
    sessions_of_log = SessionRule.of(chunks, LOG, keyed, progress=progress)
    for name, source in beside.items():
        chunks = sessions_of_log.follow(chunks, name, source, scratch=space, kept=name == SESSIONS, progress=progress)
    return chunks


def _keyed(target: Target, name: str, columns: Mapping[str, str] | None) -> Keyed:
    table = LazyTable.of(target, name=None if isinstance(target, str | Path) else name, columns=columns)
    return Keyed(table, header(table, with_usual(table.columns, columns or {}, OF_TARGETS)).get("session").name)


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
