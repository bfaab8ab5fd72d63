"""Logs that several policies made: one mixture of them stands for all (the balance heuristic)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Ints, frozen
from truerank.core.errors import InputError, some
from truerank.core.estimator import Groups, Learned, Learner
from truerank.core.wording import columns_option, either
from truerank.exposure.policies.policies import Policy
from truerank.exposure.policies.targets import Target, policy_of
from truerank.exposure.positions.position_models import Positions
from truerank.io.impressions import Impressions, RankedChunk

EVERYWHERE = ""  # the group of a log without groups


@dataclass(frozen=True, slots=True)
class LoggerCounts:
    """Units of each logger in each group of users; whether every cluster is of one logger."""

    units: Mapping[tuple[str, str], int]
    nested: bool = True

    def __add__(self, other: LoggerCounts) -> LoggerCounts:
        keys = dict.fromkeys((*self.units, *other.units))
        both = {key: self.units.get(key, 0) + other.units.get(key, 0) for key in keys}
        return LoggerCounts(both, self.nested and other.nested)

    def without(self, group: int | None) -> LoggerCounts:
        return self

    def share(self, logger: str, group: str) -> float:
        """α_j: the share of a logger among the units of a group.

        >>> LoggerCounts({("a", ""): 1, ("b", ""): 3}).share("b", "")
        0.75
        """
        whole = sum(n for (_, where), n in self.units.items() if where == group)
        return self.units.get((logger, group), 0) / whole


@dataclass(frozen=True, slots=True)
class LoggerShares:
    """Learns how much of the traffic each logger had, given the group of users where the log has one."""

    loggers: tuple[str, ...]
    needs: tuple[Learner, ...] = ()
    refitted: bool = False

    def tally(self, chunk: RankedChunk, *, groups: Groups, learned: Learned) -> LoggerCounts:
        log = chunk.log
        of_unit, names = logger_of_units(log, self.loggers)
        group, where = _groups(log)
        cell, count = np.unique(of_unit * len(where) + group, return_counts=True)
        units = {
            (names[at // len(where)], where[at % len(where)]): int(n)
            for at, n in zip(cell.tolist(), count.tolist(), strict=True)
        }
        return LoggerCounts(units, _nested(log.cluster, of_unit))

    def fit(self, tally: LoggerCounts) -> LoggerCounts:
        return tally


def mixed_policy(
    log: Impressions, loggers: Mapping[str, Target], *, counts: LoggerCounts, positions: Positions | None
) -> Policy:
    """ε0(x, a) = Σ_j α_j(x) ε_j(x, a) (multiple importance sampling, paper 3, section 4).

    `loggers` names, for each value of the log's column `logger`, the column with that policy's rank or exposure of
    every row. α_j is the share of units of logger j; among units of the same `group` where the log has one, since
    traffic may depend on it.
    """
    ordered = sorted(loggers)
    parts = tuple(policy_of(loggers[name], log, name=f"logger {name}", positions=positions) for name in ordered)
    group, where = _groups(log)
    share = np.array([[counts.share(name, each) for each in where] for name in ordered])[:, group]
    return Policy("log", log, parts=parts, share=frozen(share))


def check_own_exposures(mixed: Policy, loggers: Mapping[str, Target], *, without: Bools | None = None) -> None:
    """What a logger has shown can be shown by it; `without` are units that do not matter."""
    log, ordered = mixed.log, sorted(loggers)
    of_unit, _ = logger_of_units(log, ordered)
    of_row = (of_unit if without is None else np.where(without, -1, of_unit))[log.unit]
    for number, (name, part) in enumerate(zip(ordered, mixed.parts, strict=True)):
        if (part.exposure(np.flatnonzero(of_row == number)) == 0).any():
            raise InputError(
                f"{log.source}: logger {name} has shown an item that its column gives no exposure. "
                "Correct the column: what was shown can be shown."
            )


def logger_of_units(log: Impressions, loggers: Any) -> tuple[Ints, list[str]]:
    """The number of the logger of each unit, and the loggers in that order."""
    if log.logger is None:
        raise InputError(
            f"{log.source}: several loggers, but no column logger. Name it: "
            f"{columns_option('logger', by='truerank.read_impressions')}."
        )
    ordered = sorted(loggers)
    found, code = np.unique(log.logger, return_inverse=True)
    unknown = sorted(set(found.tolist()) - set(ordered))
    if unknown:
        raise InputError(
            f"{log.source}: logger {some(unknown)} has no exposures; every row needs them for all loggers: "
            f"{either('--logger NAME=@COLUMN', 'loggers={name: column}')} for each."
        )
    code = np.searchsorted(np.array(ordered), found)[code.reshape(-1)]
    of_unit = np.full(log.n_units, -1, dtype=np.int64)
    of_unit[log.unit] = code
    if (of_unit[log.unit] != code).any():
        raise InputError(f"{log.source}: a session has rows of two loggers; expected one logger for each session.")
    if (of_unit < 0).any():
        raise InputError(f"{log.source}: a session without a row has no logger; expected rows in every session.")
    return of_unit, ordered


def _groups(log: Impressions) -> tuple[Ints, list[str]]:
    """The number of the group of each unit, and the groups in that order."""
    if log.group is None:
        return np.zeros(log.n_units, dtype=np.int64), [EVERYWHERE]
    found, code = np.unique(log.group, return_inverse=True)
    group = np.zeros(log.n_units, dtype=np.int64)
    group[log.unit] = code.reshape(-1)
    return group, found.tolist()


def _nested(cluster: Ints, stratum: Ints) -> bool:
    """Whether every cluster lies in one stratum; clusters ascend.

    >>> _nested(np.array([0, 0, 1]), np.array([1, 1, 0])), _nested(np.array([0, 0]), np.array([0, 1]))
    (True, False)
    """
    same = cluster[1:] == cluster[:-1]
    return bool((stratum[1:] == stratum[:-1])[same].all())
