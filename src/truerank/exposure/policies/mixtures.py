"""Logs that several policies made: one mixture of them stands for all (the balance heuristic)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.arrays import Ints, frozen
from truerank.core.errors import InputError, some
from truerank.data.impressions import Impressions
from truerank.exposure.policies.policies import Policy, policy_of
from truerank.exposure.policies.rankers import logger_shares, mixed_exposures
from truerank.exposure.positions.places import Positions


def mixed_policy(log: Impressions, loggers: Mapping[str, Any], *, positions: Positions | None) -> tuple[Policy, Ints]:
    """ε0(x, a) = Σ_j α_j(x) ε_j(x, a), and the logger of each unit (multiple importance sampling, paper 3, section 4).

    `loggers` names, for each value of the log's column `logger`, the column with that policy's rank or exposure of
    every row. α_j is the share of units of logger j; among units of the same `group` where the log has one, since
    traffic may depend on it.
    """
    if log.logger is None:
        raise InputError(f"{log.source}: several loggers, but no column logger. Name it: --columns logger=NAME.")
    names = list(loggers)
    unknown = sorted(set(np.unique(log.logger).tolist()) - set(names))
    if unknown:
        raise InputError(
            f"{log.source}: logger {some(unknown)} has no exposures; every row needs them for all loggers: "
            "--logger NAME=@COLUMN for each."
        )
    ordered = sorted(names)
    of_unit = _of_units(log, np.searchsorted(np.array(ordered), log.logger))
    share = logger_shares(of_unit, n_loggers=len(ordered), context=_context(log))
    exposure = np.stack(
        [policy_of(loggers[name], log, name=f"logger {name}", positions=positions).exposure() for name in ordered]
    )
    own = exposure[of_unit[log.unit], np.arange(len(log))]
    if (own == 0).any():
        name = ordered[int(of_unit[log.unit[int(np.argmin(own))]])]
        raise InputError(
            f"{log.source}: logger {name} has shown an item that its column gives no exposure. "
            "Correct the column: what was shown can be shown."
        )
    return Policy("log", log, values=frozen(mixed_exposures(exposure, share[:, log.unit]))), of_unit


def _of_units(log: Impressions, code: Ints) -> Ints:
    of_unit = np.full(log.n_units, -1, dtype=np.int64)
    of_unit[log.unit] = code
    if (of_unit[log.unit] != code).any():
        raise InputError(f"{log.source}: a session has rows of two loggers; expected one logger for each session.")
    if (of_unit < 0).any():
        raise InputError(f"{log.source}: a session without a row has no logger; expected rows in every session.")
    return of_unit


def _context(log: Impressions) -> Ints | None:
    """The group of each unit, None where the log has no groups."""
    if log.group is None:
        return None
    group = np.zeros(log.n_units, dtype=np.int64)
    group[log.unit] = np.unique(log.group, return_inverse=True)[1] + 1
    return group
