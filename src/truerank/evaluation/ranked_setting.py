"""What comes into an off-policy evaluation: the log and its facts, in chunks with the tables of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.data.impressions import Impressions, Logged, RankedChunk
from truerank.data.read import as_table, column
from truerank.data.read_impressions import read_impressions
from truerank.estimators.ranked import RankedEstimator
from truerank.exposure.policies.targets import Target, column_names, is_table

ROWS_AT_ONCE = 2**21  # of a log in memory, whatever the number of threads


@dataclass(frozen=True, slots=True)
class RewardFacts:
    """What is known of a reward: whether some is negative, whether all are 0 or 1."""

    negative: bool
    binary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFacts:
    """What is known of a whole log before any of it is measured.

    `only` is the surface and the group of all rows, where there is no other.
    """

    source: str
    logged: Logged
    unit: str
    cluster: str
    n_rows: int
    n_units: int
    n_items: int
    rewards: Mapping[str, RewardFacts]
    propensity: bool
    sessions: bool
    only: Mapping[str, str]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, log: Impressions) -> RankedFacts:
        """Of a log in memory."""
        return cls(
            source=log.source,
            logged=log.logged,
            unit=log.unit_name,
            cluster=log.cluster_name,
            n_rows=len(log),
            n_units=log.n_units,
            n_items=len(log.items),
            rewards={
                name: RewardFacts(bool(values.dtype.kind == "f" and (values < 0).any()), values.dtype == np.uint8)
                for name, values in log.rewards.items()
            },
            propensity=log.propensity is not None,
            sessions=log.sessions is not None,
            only={
                name: str(values[0])
                for name, values in (("surface", log.surface), ("group", log.group))
                if values is not None and len(values) and bool((values == values[0]).all())
            },
            notes=log.notes,
        )

    @property
    def clicks(self) -> str | None:
        """The reward that stands for clicks: the first of 0 and 1."""
        return next((name for name, facts in self.rewards.items() if facts.binary), None)


def read_log(
    log: Any,
    targets: Mapping[str, Target],
    loggers: Mapping[str, Target],
    estimators: Sequence[RankedEstimator],
    *,
    rewards: Sequence[str] | None,
    columns: Mapping[str, str] | None,
    sessions: Any,
    logged: Logged,
) -> Impressions:
    """The log with all columns that targets, loggers and reward models name."""
    if isinstance(log, Impressions):
        return log
    names = [name for target in (*targets.values(), *loggers.values()) for name in column_names(target)]
    names += [name for estimator in estimators for name in estimator.columns]
    extra = [name for name in dict.fromkeys(names) if name not in ("position", "propensity")]
    return read_impressions(
        log, columns=columns, rewards=rewards, extra=extra, sessions=sessions, logged=Logged(logged)
    )


def chunks_of(
    log: Impressions, targets: Mapping[str, Target], *, columns: Mapping[str, str] | None, n: int | None = None
) -> list[RankedChunk]:
    """A log in memory in at most n chunks of whole clusters, with the rows of each target's table for its sessions."""
    tables = {name: target for name, target in targets.items() if is_table(target)}
    parts = list(log.chunks(max(1, -(-len(log) // ROWS_AT_ONCE)) if n is None else n))
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
    table, where = as_table(source)
    where = name if where in ("frame", "matrix") else where
    session = column(table, "session", dict(columns or {}), where=where)
    unit = log.unit_of_session(session, where=f"{where}, column 'session'")
    order = np.argsort(unit, kind="stable")
    starts = np.searchsorted(unit[order], edges)
    starts[0] = 0
    ordered = table[order]
    return [ordered[int(first) : int(last)] for first, last in zip(starts[:-1], starts[1:], strict=True)]


def check_common(where: str, known: int, facts: RankedFacts) -> None:
    """Refuse a target's table without a session of the log."""
    if not known:
        raise InputError(f"{where}: no session in common with {facts.source}. Check the session ids.")
