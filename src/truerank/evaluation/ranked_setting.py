"""What is known of a whole ranked log before any of it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from truerank.core.errors import InputError
from truerank.data.impressions import Impressions, Logged


@dataclass(frozen=True, slots=True)
class RewardFacts:
    """What is known of a reward: whether some is negative, whether all are 0 or 1."""

    negative: bool
    binary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFacts:
    """What is known of a whole log before any of it is measured.

    `only` is the surface and the group of all rows, where there is no other. `absent` are the sessions of each target
    that were left out when its table was brought to the log, because the log does not have them.
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
    absent: Mapping[str, int] = field(default_factory=dict)

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


def check_common(where: str, known: int, facts: RankedFacts) -> None:
    """Refuse a target's table without a session of the log."""
    if not known:
        raise InputError(f"{where}: no session in common with {facts.source}. Check the session ids.")
