"""Importance-weighted DCG: what a new ranking would have earned, from what the old one has earned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import About, Asked, Clipping, Exposed, Learned
from truerank.core.terms import Ratio, Smooth
from truerank.estimators.ranked.base import WeightedImpressions
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import Exposures
from truerank.estimators.ranked.normalisers import Counted, Normaliser, RankedContext
from truerank.estimators.rows import Column, FormOfSums


@dataclass(frozen=True, slots=True)
class RankedIPS(WeightedImpressions):
    """Inverse propensity scoring with exposures: Σ_i c_i w_i of each session (paper 3, eqs. 8 and 9).

    Exactly unbiased without a clip under the five assumptions; with clip m its mean is Σ_a q min(ε, m ε0), or of the
    inverse Σ_a ε q min(1, m ε0): too small where rewards are positive. Item 1 was seen at position 2 and
    liked; the target ranks it first:

    >>> import polars as pl, truerank as tr
    >>> frame = pl.DataFrame({"session": [1, 1], "item": [1, 2], "position": [2, 1], "reward": [1, 0], "new": [1, 2]})
    >>> how = {"position": tr.positions.parse_position("exp:0.5"), "estimators": [RankedIPS()]}
    >>> tr.off_policy(frame, {"new": tr.exposure.RankColumn("new")}, **how).estimates[0].value
    2.0
    """

    normaliser: Normaliser = Normaliser.SESSION
    clip: float | None = None
    of: Limited = Limited.RATIO

    about: ClassVar[About] = About(
        name="ips", exposures=frozenset({Exposed.RANKED}), weighs=True, clipping=Clipping.CHOSEN
    )

    @property
    def metric(self) -> Counted:
        return self.normaliser.counted

    def refusal(self, context: RankedContext) -> str | None:
        if self.normaliser is not Normaliser.SESSION and not context.views_known:
            return "the log does not say what was viewed, so nothing can be counted per viewed item; use per session."
        return None

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return f"mean {asked.reward} {self.normaliser.words(unit)} had the target been shown"

    def columns_of_form(self) -> FormOfSums:
        per = Column.UNITS if self.normaliser is Normaliser.SESSION else Column.VIEWS
        return Ratio(), (Column.GAIN, per)

    @property
    def counted(self) -> bool:
        return self.normaliser is not Normaliser.MEAN_OF_MEANS

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        if self.normaliser is not Normaliser.MEAN_OF_MEANS:
            return WeightedImpressions.make(self, view, reward, clips, learned)
        viewed, sums = view.n_viewed(), view.rewards(reward, clips, self.of)
        seen = viewed > 0
        means = np.divide(sums.rows, viewed, out=np.zeros_like(sums.rows), where=seen)
        return sums.of_clips([view.ratio(mean, seen.astype(np.float64), kept=seen) for mean in means])
