"""What is known of a whole log of impressions before any of it is measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from truerank.core.errors import InputError
from truerank.core.log import Log, Logged
from truerank.core.record import record
from truerank.core.wording import option
from truerank.inference.linearization import Bounds


@record
class RewardFacts:
    """What is known of a reward: the smallest and the largest, whether all are 0 or 1, what was declared of it."""

    minimum: float
    maximum: float
    binary: bool
    declared: Bounds | None = None

    @property
    def negative(self) -> bool:
        return self.minimum < 0

    @property
    def between(self) -> Bounds | None:
        """What every reward lies between, seen or not: 0 and 1, or what was declared."""
        return (0.0, 1.0) if self.binary else self.declared


@record(kw_only=True)
class LogFacts:
    """What is known of a whole log before any of it is measured.

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
    rewards: Mapping[str, RewardFacts]
    propensity: bool
    sessions: bool
    ends_known: bool
    only: Mapping[str, str]
    surfaces: tuple[str, ...]
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    absent: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        log: Log,
        *,
        surfaces: Collection[Any] | None = None,
        groups: Collection[Any] | None = None,
        **totals: Any,
    ) -> LogFacts:
        """Of a log in memory, or of a chunk with the `totals` of all chunks."""
        kinds: dict[str, Any] = {"surface": (surfaces, log.surface), "group": (groups, log.group)}
        texts = {
            name: tuple(np.unique(values if whole is None else list(whole)).astype(str).tolist())
            for name, (whole, values) in kinds.items()
            if whole is not None or values is not None
        }
        facts: dict[str, Any] = {
            "source": log.source,
            "n_rows": len(log),
            "n_units": log.n_units,
            "n_items": len(log.items),
            "rewards": {
                name: RewardFacts(0.0, 1.0, binary=True)
                if values.dtype == np.uint8
                else RewardFacts(float(values.min()), float(values.max()), binary=False)
                for name, values in log.rewards.items()
            },
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
            only={name: values[0] for name, values in texts.items() if len(values) == 1},
            surfaces=texts.get("surface", ()),
            groups=texts.get("group", ()),
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
        return replace(self, rewards={name: replace(facts, declared=between) for name, facts in self.rewards.items()})

    @property
    def clicks(self) -> str | None:
        """The reward that stands for clicks: the first of 0 and 1."""
        return next((name for name, facts in self.rewards.items() if facts.binary), None)
