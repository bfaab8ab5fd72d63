"""Importance-weighted DCG: what a new ranking would have earned, from what the old one has earned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.terms import Terms
from truerank.estimators.ranked.normalisers import Normaliser
from truerank.estimators.ranked.weights import Weighing, clipped


@dataclass(frozen=True, slots=True)
class RankedIPS:
    """Inverse propensity scoring with exposures: Σ_i c_i w_i of each session (paper 3, eqs. 8 and 9).

    Exactly unbiased without a clip under the five assumptions; with clip m its mean is Σ_a ε q min(1, m ε0), which is
    too small where rewards are positive. Item 1 was seen at position 2 and liked; the target ranks it first:

    >>> import polars as pl
    >>> from truerank.data.read_impressions import read_impressions
    >>> from truerank.exposure.policies.policies import RankColumn, logging_policy, policy_of
    >>> from truerank.exposure.positions import parse_position
    >>> from truerank.exposure.positions.places import Positions
    >>> frame = pl.DataFrame({"session": [1, 1], "item": [1, 2], "position": [2, 1], "reward": [1, 0], "new": [1, 2]})
    >>> log, exp = read_impressions(frame, extra=["new"]), Positions.everywhere(parse_position("exp:0.5"))
    >>> weighing = Weighing(log, policy_of(RankColumn("new"), log, name="new", positions=exp), logging_policy(log, exp))
    >>> RankedIPS().terms(weighing, reward="reward", clip=np.inf).value()
    2.0
    """

    normaliser: Normaliser = Normaliser.SESSION

    name: ClassVar[str] = "ips"
    clips: ClassVar[bool] = True

    @property
    def metric(self) -> str:
        return self.normaliser.metric

    @property
    def conditions(self) -> tuple[str, ...]:
        return self.normaliser.condition

    def estimand(self, reward: str, unit: str) -> str:
        return f"mean {reward} {self.normaliser.words(unit)} had the target been shown"

    def refusal(self, weighing: Weighing) -> str | None:
        if self.normaliser is not Normaliser.SESSION and not weighing.views_known:
            return "the log does not say what was viewed, so nothing can be counted per viewed item; use per session."
        return None

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms:
        rows = weighing.rewarded(reward)
        target, inverse = weighing.parts(rows)
        earned = weighing.log.reward(reward)[rows] * clipped(target, inverse, clip)
        num = weighing.by_unit(earned, rows)
        if self.normaliser is Normaliser.SESSION:
            return weighing.terms(num, np.ones(len(num)))
        viewed = weighing.n_viewed()
        if self.normaliser is Normaliser.IMPRESSION:
            return weighing.terms(num, viewed)
        seen = viewed > 0
        mean = np.divide(num, viewed, out=np.zeros(len(num)), where=seen)
        return weighing.terms(mean, seen.astype(np.float64), kept=seen)
