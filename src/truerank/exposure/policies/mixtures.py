"""Logs that several policies made: one mixture of them is the logging policy of all (the balance heuristic)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from truerank.core.arrays import Bools, Ints, frozen
from truerank.core.errors import InputError, some
from truerank.core.estimator import Groups, Learned, Learner
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.wording import columns_option, either
from truerank.exposure.policies.policies import Policy
from truerank.exposure.policies.targets import Target, policy_of
from truerank.exposure.positions.position_models import Positions
from truerank.io.sessions import RankedChunk

EVERYWHERE = ""  # the group of a log without groups


@record
class LoggerCounts:
    """Units of each logger in each group of users; whether every cluster is of one logger."""

    units: Mapping[tuple[str, str], int]
    nested: bool = True

    def __add__(self, more: LoggerCounts) -> LoggerCounts:
        return LoggerCounts(Counter(self.units) + Counter(more.units), self.nested and more.nested)

    def without(self, group: int | None) -> LoggerCounts:
        return self

    def share(self, logger: str, group: str) -> float:
        """α_j: the share of a logger among the units of a group.

        >>> LoggerCounts({("a", ""): 1, ("b", ""): 3}).share("b", "")
        0.75
        """
        whole = sum(n for (_, where), n in self.units.items() if where == group)
        return self.units.get((logger, group), 0) / whole


@record
class LoggerShares:
    """Learns how much of the traffic each logger had, given the group of users where the log has one."""

    loggers: tuple[str, ...]
    needs: tuple[Learner, ...] = ()
    refitted: bool = False

    def tally(self, chunk: RankedChunk, *, groups: Groups, learned: Learned) -> LoggerCounts:
        log = chunk.log
        logger, names = logger_of_units(log, self.loggers)
        group, group_names = _groups(log)
        cells, counts = np.unique(np.stack([logger, group]), axis=1, return_counts=True)
        units = {(names[a], group_names[b]): int(n) for a, b, n in zip(*cells, counts, strict=True)}
        cluster = log.cluster_of_unit()
        same_cluster = cluster[1:] == cluster[:-1]  # clusters ascend
        return LoggerCounts(units, bool((logger[1:] == logger[:-1])[same_cluster].all()))

    def fit(self, tally: LoggerCounts) -> LoggerCounts:
        return tally


def mixed_policy(
    log: Log, loggers: Mapping[str, Target], *, counts: LoggerCounts, positions: Positions | None
) -> Policy:
    """ε0(x, a) = Σ_j α_j(x) ε_j(x, a) (multiple importance sampling, paper 3, section 4).

    `loggers` names, for each value of the log's column `logger`, the column with that policy's rank or exposure of
    every row. α_j is the share of units of logger j; among units of the same `group` where the log has one, since
    traffic may depend on it.
    """
    names = sorted(loggers)
    parts = tuple(policy_of(loggers[name], log, name=f"logger {name}", positions=positions) for name in names)
    group, group_names = _groups(log)
    share = np.array([[counts.share(name, group_name) for group_name in group_names] for name in names])[:, group]
    return Policy("log", log, parts=parts, share=frozen(share))


def check_own_exposures(mixed: Policy, loggers: Iterable[str], *, without: Bools | None = None) -> None:
    """What a logger has shown can be shown by it; `without` are units that do not matter."""
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
    """The number of the logger of each unit, and the loggers in that order."""
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


def _groups(log: Log) -> tuple[Ints, list[str]]:
    """The number of the group of each unit, and the groups in that order."""
    group = np.zeros(log.n_units, dtype=np.int64)
    if log.group is None:
        return group, [EVERYWHERE]
    names, code = np.unique(log.group, return_inverse=True)
    group[log.unit] = code.reshape(-1)
    return group, names.tolist()
