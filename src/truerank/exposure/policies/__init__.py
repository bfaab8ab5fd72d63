"""Policies that are evaluated on an impression log: how much each of them exposes the items of each session (eq. 6).

Where a policy puts the items of a log does not depend on a position model; how likely they are viewed there does. A
policy is placed once (`targets.py`) and then seen `under` as many position models as are fitted. One mixture of several
logging policies is the policy of a log that all of them made (the balance heuristic).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, frozen, sums_by
from truerank.core.errors import InputError, some
from truerank.core.estimator import Groups, Learned, Learner
from truerank.core.log import Array, Log
from truerank.core.record import record
from truerank.core.wording import columns_option, either, option
from truerank.exposure.positions.position_models import Positions
from truerank.io.sessions import RankedChunk

Rows = Ints | slice | None  # which rows of a log, None for all
LONGEST_TABLE = 2**20  # ranks up to here are looked up

POSITION = f"{option('position MODEL')}, such as log, exp:0.9, yule:1.5, fit:yule or a file"


@record(eq=False)
class WholeList:
    """All items that a policy would rank: session, item (-1 where the log never shows it), and rank or exposure.

    `rule` is the number of the position model that holds for each row, where there are several.
    """

    unit: Ints
    item: Ints
    rank: Ints | None = None
    values: Floats | None = None
    rule: Ints | None = None
    prediction: Floats | None = None


@record(eq=False)
class Policy:
    """How a policy exposes the rows of a log: by rank and position model, or as numbers.

    `rank` is 0 where an item is never displayed; `rule` is the number of the position model that holds for each row,
    where there are several. `ranked_units` are the units whose ranking the target has, `whole` the list of each where
    it was given, `places` how many ranks each unit has where the log tells; `viewed` is how many items of each unit the
    policy exposed. `unlogged` counts the sessions that it ranks and the log does not have. A mixture has `parts` with
    their `share` [parts x units] instead of ranks.
    """

    name: str
    log: Log
    positions: Positions | None = None
    rank: Array | None = None
    rule: Ints | None = None
    values: Floats | None = None
    ranked_units: Bools | None = None
    whole: WholeList | None = None
    places: Ints | None = None
    viewed: Floats | None = None
    unlogged: int = 0
    parts: tuple[Policy, ...] = ()
    share: Floats | None = None

    def under(self, positions: Positions | None) -> Policy:
        """The same policy, viewed as other position models say."""
        if self.share is not None:
            return replace(self, parts=tuple(part.under(positions) for part in self.parts))
        return self if self.positions is None else replace(self, positions=positions)

    def exposure(self, rows: Rows = None) -> Floats:
        """ε(x, a) of the given rows, or of all."""
        if rows is None:
            rows = slice(None)
        if self.values is not None:
            return self.values[rows]
        if self.share is not None:  # Σ_j α_j ε_j
            parts = np.stack([part.exposure(rows) for part in self.parts])
            return np.asarray((parts * self.share[:, self.log.unit[rows]]).sum(axis=0))
        return self._views(
            None if self.rank is None else self.rank[rows], None if self.rule is None else self.rule[rows]
        )

    def _views(self, rank: npt.NDArray[Any] | None, rule: Ints | None) -> Floats:
        if rank is None or self.positions is None:
            raise InputError(f"{self.name}: neither ranks nor exposures are known.")
        return views(self.positions, rank, rule)

    def defined(self) -> Bools:
        """The units whose ranking the target has."""
        return np.ones(self.log.n_units, dtype=bool) if self.ranked_units is None else self.ranked_units

    @property
    def total_known(self) -> bool:
        """Whether `total` can be computed: the number of ranks gives it where one position model holds for all."""
        counted = self.places is not None and self.positions is not None and not self.positions.differ
        return self.viewed is not None or self.whole is not None or counted

    def total(self) -> Floats:
        """Σ_a ε(x, a) over the whole list of each unit; 0 where its ranking is not given."""
        if self.viewed is not None:
            return self.viewed
        if self.whole is not None:
            return sums_by(self.whole.unit, self.listed(), n=self.log.n_units)
        if self.places is None or self.positions is None:
            raise InputError(f"{self.name}: its whole list is not known.")
        return np.asarray(np.cumsum(tables_of(self.positions, int(self.places.max(initial=0)))[0])[self.places])

    def listed(self) -> Floats:
        """ε(x, a) of each row of the whole list."""
        if self.whole is None:
            raise InputError(f"{self.name}: its whole list is not known.")
        return self._views(self.whole.rank, self.whole.rule) if self.whole.values is None else self.whole.values


def rules_of(positions: Positions, log: Log) -> Ints | None:
    """The number of the position model that holds for each row of a log, None where one holds for all."""
    return positions.at(len(log), surface=log.surface, group=log.group) if positions.differ else None


def views(positions: Positions, rank: npt.NDArray[Any], rule: Ints | None = None) -> Floats:
    """The probability that what stands at each rank is viewed; 0 at rank 0, which means never displayed."""
    last = int(rank.max(initial=0))
    if last * len(positions.rules) > LONGEST_TABLE:
        number = np.zeros(len(rank), dtype=np.int64) if rule is None else rule
        return np.where(rank > 0, positions.view_by(number, np.maximum(rank, 1).astype(np.float64)), 0.0)
    tables = tables_of(positions, last)
    return np.asarray(tables[0].take(rank) if rule is None else tables[rule, rank], dtype=np.float64)


@lru_cache(maxsize=8)
def tables_of(positions: Positions, last: int) -> Floats:
    """P(V | R = r) for r = 0 ... last, where rank 0 is never displayed, of each position model: [rules x ranks].

    Blocks of rows use the same ones again and again, so a few are cached.
    """
    rank = np.arange(1.0, last + 1.0)
    rows = [positions.view_by(np.full(last, number), rank) for number in range(len(positions.rules))]
    return frozen(np.concatenate([np.zeros((len(rows), 1)), np.stack(rows)], axis=1))


def logging_policy(log: Log, positions: Positions | None) -> Policy:
    """The policy that made the log: its propensities where the log has them, else its positions."""
    if log.propensity is not None:
        return Policy("log", log, values=log.propensity)
    if positions is None:
        raise InputError(
            f"{log.source}: neither a position model nor a column propensity; expected one of them. "
            f"Say how likely each position is viewed: {POSITION}."
        )
    if log.position is None:
        raise InputError(
            f"{log.source}: a position model needs the column position. Name it: "
            f"{columns_option('position', by='truerank.read_impressions')}, "
            "or give the logging exposures in a column propensity."
        )
    return Policy("log", log, positions=positions, rank=log.position, rule=rules_of(positions, log))


# ------------------------------------------------------------------------------------------- several logging policies

EVERYWHERE = ""  # the group of a log without groups


@record
class TrafficCounts:
    """Units of each logging policy in each group of users; whether every cluster is of one policy."""

    units: Mapping[tuple[str, str], int]
    nested: bool = True

    def __add__(self, more: TrafficCounts) -> TrafficCounts:
        return TrafficCounts(Counter(self.units) + Counter(more.units), self.nested and more.nested)

    def without(self, group: int | None) -> TrafficCounts:
        return self

    def share(self, logger: str, group: str) -> float:
        """α_j: the share of a logging policy among the units of a group.

        >>> TrafficCounts({("a", ""): 1, ("b", ""): 3}).share("b", "")
        0.75
        """
        whole = sum(n for (_, where), n in self.units.items() if where == group)
        return self.units.get((logger, group), 0) / whole


@record
class TrafficShares:
    """Learns how much of the traffic each logging policy had, given the group of users where the log has one."""

    loggers: tuple[str, ...]
    needs: tuple[Learner, ...] = ()
    refitted: bool = False

    def tally(self, chunk: RankedChunk, *, groups: Groups, learned: Learned) -> TrafficCounts:
        log = chunk.log
        logger, names = logger_of_units(log, self.loggers)
        group, group_names = groups_of(log)
        cells, counts = np.unique(np.stack([logger, group]), axis=1, return_counts=True)
        units = {(names[a], group_names[b]): int(n) for a, b, n in zip(*cells, counts, strict=True)}
        cluster = log.cluster_of_unit()
        same_cluster = cluster[1:] == cluster[:-1]  # clusters ascend
        return TrafficCounts(units, bool((logger[1:] == logger[:-1])[same_cluster].all()))

    def fit(self, tally: TrafficCounts) -> TrafficCounts:
        return tally


def check_own_exposures(mixed: Policy, loggers: Iterable[str], *, without: Bools | None = None) -> None:
    """Each logging policy can expose what it has exposed; `without` are units that do not matter."""
    log = mixed.log
    logger, names = logger_of_units(log, loggers)
    of_row = (logger if without is None else np.where(without, -1, logger))[log.unit]
    for number, (name, part) in enumerate(zip(names, mixed.parts, strict=True)):
        if (part.exposure(np.flatnonzero(of_row == number)) == 0).any():
            raise InputError(
                f"{log.source}: logger {name} has shown an item that its column gives no exposure. "
                "Correct the column: what was shown can be shown."
            )


def logger_of_units(log: Log, loggers: Iterable[str]) -> tuple[Ints, list[str]]:
    """The number of the logging policy of each unit, and the policies in that order."""
    if log.logger is None:
        raise InputError(
            f"{log.source}: several loggers, but no column logger. Name it: "
            f"{columns_option('logger', by='truerank.read_impressions')}."
        )
    names = sorted(loggers)
    logged, code = np.unique(log.logger, return_inverse=True)
    unknown = sorted(set(logged.tolist()) - set(names))
    if unknown:
        raise InputError(
            f"{log.source}: logger {some(unknown)} has no exposures; every row needs them for all loggers: "
            f"{either('--logger NAME=@COLUMN', 'loggers={name: column}')} for each."
        )
    code = np.searchsorted(np.array(names), logged)[code.reshape(-1)]
    of_unit = np.full(log.n_units, -1, dtype=np.int64)
    of_unit[log.unit] = code
    if (of_unit[log.unit] != code).any():
        raise InputError(f"{log.source}: a session has rows of two loggers; expected one logger for each session.")
    if (of_unit < 0).any():
        raise InputError(f"{log.source}: a session without a row has no logger; expected rows in every session.")
    return of_unit, names


def groups_of(log: Log) -> tuple[Ints, list[str]]:
    """The number of the group of each unit, and the groups in that order."""
    group = np.zeros(log.n_units, dtype=np.int64)
    if log.group is None:
        return group, [EVERYWHERE]
    names, code = np.unique(log.group, return_inverse=True)
    group[log.unit] = code.reshape(-1)
    return group, names.tolist()
