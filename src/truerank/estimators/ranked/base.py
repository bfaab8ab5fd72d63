"""The base class of estimators for ranked logs."""

from __future__ import annotations

from typing import Any

from truerank.core.estimator import Estimator, Learner
from truerank.estimators.ranked.normalisers import Counted


class RankedEstimator(Estimator):
    """How logged sessions represent those of another policy: (RankedChunk, Exposures) -> Terms per session.

    `clip` is where its weights are cut; None where the question says.
    """

    __slots__ = ()

    clip: float | None

    @property
    def metric(self) -> Counted:
        """What it counts."""
        raise NotImplementedError

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        return ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it reads, beside those of every log."""
        return ()
