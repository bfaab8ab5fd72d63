"""Estimators for ranked logs: (RankedChunk, Exposures) -> Terms per session.

A new one is one new module here; the catalogue and the command line find it by themselves.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from truerank.core.estimator import Estimator, Exposed
from truerank.core.language import Kind
from truerank.estimators.ranked.normalisers import Counted


@runtime_checkable
class RankedEstimator(Estimator, Protocol):
    """How logged sessions stand for those of another policy."""

    @property
    def clip(self) -> float | None:
        """Where its weights are cut; None where the question says."""
        ...

    @property
    def metric(self) -> Counted:
        """What it counts."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it reads, beside those of every log."""
        ...


def _ranked(cls: type[Estimator]) -> bool:
    return Exposed.RANKED in cls.about.exposures


RANKED: Kind[RankedEstimator] = Kind("estimator", __name__, RankedEstimator, among=_ranked, group="truerank.estimators")
catalogue = RANKED.catalogue
named = RANKED.named
parse = RANKED.parse
