"""DCG divided by its ideal: per session (nDCG), which can invert the order of policies, or after all sums are made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.terms import Terms
from truerank.data.impressions import Impressions
from truerank.estimators.ranked.weights import Weighing
from truerank.exposure.policies.policies import views


class IdealSum(StrEnum):
    """What DCG is divided by: the DCG of the best order of a session's labels, or the plain sum of its labels.

    Table 1 of paper 3 was made with the sum although the text defines the best order.
    """

    ORDER = "order"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class RankedNDCG:
    """The mean over sessions of DCG / ideal DCG, with labels c · min(m, 1/ε0) (paper 3, section 5).

    Not a reward and not consistent with it: policies can change places (Table 1). Sessions without a reward have no
    ideal and are left out, so that the mean is over another set of sessions than the reward is.
    """

    ideal: IdealSum = IdealSum.ORDER

    name: ClassVar[str] = "ndcg"
    clips: ClassVar[bool] = True

    @property
    def metric(self) -> str:
        return "nDCG"

    @property
    def conditions(self) -> tuple[str, ...]:
        return ("nDCG is not an estimate of reward: even where DCG is unbiased it can order policies otherwise",)

    def estimand(self, reward: str, unit: str) -> str:
        return f"mean over {unit}s with a {reward} of DCG over the DCG of the best order of what was seen; no reward"

    def refusal(self, weighing: Weighing) -> str | None:
        return _refusal(weighing, self.ideal)

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms:
        dcg, best = _sums(weighing, reward=reward, clip=clip, ideal=self.ideal)
        kept = best > 0
        value = np.divide(dcg, best, out=np.zeros(len(dcg)), where=kept)
        return weighing.terms(value, kept.astype(np.float64), kept=kept)


@dataclass(frozen=True, slots=True)
class RankedPostNormalised:
    """Σ DCG / Σ ideal DCG over all sessions: one factor for all policies, so it orders them as DCG does (section 5)."""

    ideal: IdealSum = IdealSum.ORDER

    name: ClassVar[str] = "post-normalised"
    clips: ClassVar[bool] = True

    @property
    def metric(self) -> str:
        return "post-normalised DCG"

    @property
    def conditions(self) -> tuple[str, ...]:
        return ("the ideal is of what was seen in the log, not of all that could be shown",)

    def estimand(self, reward: str, unit: str) -> str:
        return f"DCG of {reward} over all {unit}s, divided by that of the best order of what was seen"

    def refusal(self, weighing: Weighing) -> str | None:
        return _refusal(weighing, self.ideal)

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms:
        return weighing.terms(*_sums(weighing, reward=reward, clip=clip, ideal=self.ideal))


def _refusal(weighing: Weighing, ideal: IdealSum) -> str | None:
    if weighing.target.positions is None and ideal is IdealSum.ORDER:
        return "the best order needs a discount for every rank: a position model; use ips."
    positions = weighing.target.positions
    if positions is not None and (positions.by_surface or positions.by_group) and ideal is IdealSum.ORDER:
        return "the best order is not defined where position models differ within a log; use ips."
    return None


def unfit(estimator: Any, log: Impressions, *, reward: str) -> str | None:
    """Why an estimator cannot take a reward, or None: with negative rewards there is no ideal to divide by."""
    if isinstance(estimator, RankedNDCG | RankedPostNormalised) and bool((log.reward(reward) < 0).any()):
        return (
            f"{reward} has negative values; a session's best order then is no upper limit and can be 0 or negative, so "
            "a share of it means nothing. Use ips."
        )
    return None


def _sums(weighing: Weighing, *, reward: str, clip: float, ideal: IdealSum) -> tuple[Floats, Floats]:
    """DCG and ideal DCG of each unit."""
    rows = weighing.rewarded(reward)
    target, inverse = weighing.parts(rows)
    gain: Floats = weighing.log.reward(reward)[rows] * np.minimum(inverse, clip)
    dcg = weighing.by_unit(gain * target, rows)
    if ideal is IdealSum.LABELS or weighing.target.positions is None:
        return dcg, weighing.by_unit(gain, rows)
    unit = weighing.log.unit[rows]
    order = np.lexsort((-gain, unit))
    first = np.searchsorted(unit, unit)  # units ascend
    rank = np.arange(len(unit)) - first + 1
    best = gain[order] * views(weighing.target.positions, rank, weighing.log)
    return dcg, weighing.by_unit(best, rows[order])
