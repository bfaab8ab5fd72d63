"""Estimators for ranked logs: (RankedChunk, Exposures) -> Terms per session.

A new one is one new module here; the catalogue and the command line find it by themselves.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol, runtime_checkable

from truerank.core.estimator import Estimator
from truerank.core.language import classes, find
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


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every estimator class for ranked logs by name."""
    return {cls.about.name: cls for cls in classes(__name__, RankedEstimator)}


def named(name: str) -> type[Any]:
    """The estimator class of a name such as snips."""
    return find(catalogue(), name, what="estimator")
