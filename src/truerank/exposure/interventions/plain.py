"""No intervention, and one that does not look: the baselines FULL and REG of the WTD paper (section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from truerank.core.log import Log
from truerank.core.values import text_of
from truerank.exposure.interventions.plans import Plan, pair_keys
from truerank.sampling.designs import Members, Share, Uniform


@dataclass(frozen=True, slots=True)
class Full:
    """FULL: every row, whatever the fraction."""

    name: ClassVar[str] = "full"
    margins: ClassVar[tuple[str, ...]] = ()
    needs_random: ClassVar[bool] = False

    __str__ = text_of

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()

    def plan(self, log: Log, *, train: Log | None, random: Log | None, fraction: float, seed: int) -> Plan:
        return _uniform(log, 1.0)


@dataclass(frozen=True, slots=True)
class Regular:
    """REG: a uniform sample of the rows, which keeps the bias they have."""

    name: ClassVar[str] = "reg"
    margins: ClassVar[tuple[str, ...]] = ()
    needs_random: ClassVar[bool] = False

    __str__ = text_of

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()

    def plan(self, log: Log, *, train: Log | None, random: Log | None, fraction: float, seed: int) -> Plan:
        return _uniform(log, fraction)


def _uniform(log: Log, fraction: float) -> Plan:
    members = Members(np.zeros(len(log), dtype=np.uint64), pair_keys(log))
    return Plan(np.arange(len(log)), members, Uniform(Share(fraction)))
