"""Estimators for ranked logs: (Impressions, target and logging exposure) -> Terms per session.

A new one is one new module here; the catalogue and the command line find it by themselves.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from truerank.core.language import Kind
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


RANKED: Kind[RankedEstimator] = Kind("estimator", __name__, RankedEstimator)
catalogue = RANKED.catalogue
named = RANKED.named
parse = RANKED.parse
