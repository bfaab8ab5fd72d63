"""Estimators for ranked logs: (Impressions, target and logging exposure) -> Terms per session.

A new one is one new module here; the catalogue and the command line find it by themselves.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Protocol, runtime_checkable

from truerank.core.language import find, members
from truerank.core.terms import Terms
from truerank.estimators.ranked.weights import Weighing


@runtime_checkable
class RankedEstimator(Protocol):
    """How logged sessions stand for those of another policy."""

    name: ClassVar[str]
    clips: ClassVar[bool]  # whether weights enter that a clip can limit

    @property
    def metric(self) -> str: ...
    @property
    def conditions(self) -> tuple[str, ...]:
        """What it assumes beyond the assumptions of every estimate from ranked logs."""
        ...

    def estimand(self, reward: str, unit: str) -> str: ...
    def refusal(self, weighing: Weighing) -> str | None:
        """Why it cannot be had from this log and target and what to use, or None."""
        ...

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms: ...


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every estimator class for ranked logs by name."""
    return members(__name__, RankedEstimator)


def named(name: str) -> type[Any]:
    """The estimator class of a name such as snips."""
    return find(catalogue(), name, what="estimator")
