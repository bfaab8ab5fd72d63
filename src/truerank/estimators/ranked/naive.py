"""Forms of DCG that are in use and are not unbiased, for comparison (paper 3, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import About, Asked, Clipping, Exposed, Learned
from truerank.core.terms import Smooth
from truerank.estimators.ranked.base import RankedEstimator
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import Exposures
from truerank.estimators.ranked.normalisers import Counted, RankedContext
from truerank.exposure.policies.policies import Rows

MEANING = "; for comparison, no estimate of reward"
UNCORRECTED = ("labels of items seen far down count as much as others although they had less chance",)
NO_RANKS = "it discounts by rank, and the target gives exposures; give ranks, or use ips."


@dataclass(frozen=True, slots=True)
class LogDiscountRaw(RankedEstimator):
    """Σ c / log2(r + 1), r the target's rank: the classical form ("log, C" in Table 2)."""

    clip: float | None = None

    about: ClassVar[About] = About(name="dcg-log-raw", exposures=frozenset({Exposed.RANKED}), assumptions=UNCORRECTED)

    @property
    def metric(self) -> Counted:
        return Counted("DCG")

    def refusal(self, context: RankedContext) -> str | None:
        return None if context.ranks else NO_RANKS

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return f"mean over {unit}s of Σ {asked.reward} / log2(rank + 1){MEANING}"

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        rows = view.rewarded(reward)
        return _mean(view, view.by_unit(view.log.reward(reward)[rows] * _log_discount(view, rows), rows), clips)


@dataclass(frozen=True, slots=True)
class LogDiscountDebiased(RankedEstimator):
    """Σ c / (ε0 log2(r + 1)): labels corrected by the position model, the classical discount ("log, Q").

    The discount is to the clip what the target's exposure is elsewhere.
    """

    clip: float | None = None
    of: Limited = Limited.RATIO

    about: ClassVar[About] = About(
        name="dcg-log-debiased",
        exposures=frozenset({Exposed.RANKED}),
        assumptions=("the discount 1/log2(rank + 1) is how likely a rank is viewed",),
        weighs=True,
        clipping=Clipping.CHOSEN,
    )

    @property
    def metric(self) -> Counted:
        return Counted("DCG")

    def refusal(self, context: RankedContext) -> str | None:
        return None if context.ranks else NO_RANKS

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return f"mean over {unit}s of Σ {asked.reward} / (logging exposure · log2(rank + 1)){MEANING}"

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        values = view.log.reward(reward)
        sums = view.clipped_sums(
            lambda rows: values[rows],
            view.rewarded(reward),
            clips,
            self.of,
            discount=lambda rows: _log_discount(view, rows),
        )
        return sums.of_clips([view.ratio(total, np.ones(len(total))) for total in sums.rows])


@dataclass(frozen=True, slots=True)
class LearntDiscountRaw(RankedEstimator):
    """Σ c ε: the discount of the position model on raw labels, as ips(clip=1,of=inverse) ("pbm, C" in Table 2)."""

    clip: float | None = None

    about: ClassVar[About] = About(name="dcg-raw", exposures=frozenset({Exposed.RANKED}), assumptions=UNCORRECTED)

    @property
    def metric(self) -> Counted:
        return Counted("DCG")

    def refusal(self, context: RankedContext) -> str | None:
        return None

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return f"mean over {unit}s of Σ {asked.reward} · target exposure{MEANING}"

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        rows = view.rewarded(reward)
        return _mean(view, view.by_unit(view.log.reward(reward)[rows] * view.target.exposure(rows), rows), clips)


def _log_discount(view: Exposures, rows: Rows) -> Floats:
    rank = view.target.rank
    if rank is None:
        raise TypeError("refused before")
    shown = (rank if rows is None else rank[rows]).astype(np.float64)
    return np.divide(1.0, np.log2(shown + 1.0), out=np.zeros(len(shown)), where=shown > 0)


def _mean(view: Exposures, total: Floats, clips: Floats) -> list[Smooth]:
    """The mean over units, the same for each clip: nothing is weighted."""
    return [view.ratio(total, np.ones(len(total)))] * len(clips)
