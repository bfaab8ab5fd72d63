"""Importance-weighted DCG: what a new ranking would have earned, from what the old one has earned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.estimator import About, Asked, Clipping, Exposed, Learned
from truerank.core.terms import Smooth, Terms
from truerank.data.impressions import RankedChunk
from truerank.estimators.ranked.base import RankedEstimator
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import Exposures, Refits, by_reward
from truerank.estimators.ranked.normalisers import Counted, Normaliser, RankedContext
from truerank.estimators.ranked.refitting import place_counts, refitted, units_outside


@dataclass(frozen=True, slots=True)
class RankedIPS(RankedEstimator):
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

    def terms(
        self,
        chunk: RankedChunk,
        view: Exposures,
        *,
        asked: Sequence[Asked],
        learned: Learned,
        keep_rows: bool = False,
    ) -> list[Terms]:
        def make(seen: Exposures) -> list[Smooth]:
            return by_reward(asked, lambda reward, clips: self._made(seen, reward, clips))

        def count(seen: Exposures, refits: Refits, units: Bools) -> list[tuple[Floats, Floats]]:
            return by_reward(asked, lambda reward, clips: self._counted(seen, refits, units, reward, clips))

        return refitted(view, make, None if self.normaliser is Normaliser.MEAN_OF_MEANS else count)

    def _made(self, view: Exposures, reward: str, clips: Floats) -> list[Smooth]:
        if self.normaliser is Normaliser.SESSION:
            return view.reward_ratios(reward, clips, self.of, np.ones(view.log.n_units))
        viewed = view.n_viewed()
        if self.normaliser is Normaliser.IMPRESSION:
            return view.reward_ratios(reward, clips, self.of, viewed)
        seen, sums = viewed > 0, view.rewards(reward, clips, self.of)
        means = np.divide(sums.rows, viewed, out=np.zeros_like(sums.rows), where=seen)
        return sums.of_clips([view.ratio(mean, seen.astype(np.float64), kept=seen) for mean in means])

    def _counted(
        self, view: Exposures, refits: Refits, units: Bools, reward: str, clips: Floats
    ) -> list[tuple[Floats, Floats]]:
        """Σ c w and the number of units, or of viewed rows, outside each group."""
        values = view.log.reward(reward)
        total, rest = place_counts(view, refits, view.rewarded(reward), values, units).totals(refits, clips, self.of)
        per = units_outside(refits, units, None if self.normaliser is Normaliser.SESSION else view.n_viewed())
        return [
            (np.stack([total[:, k], per], axis=1), np.stack([rest[:, k], np.zeros_like(per)], axis=1))
            for k in range(len(clips))
        ]
