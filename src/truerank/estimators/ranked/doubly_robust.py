"""Doubly robust estimates: a reward model for what the target shows, corrected by what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.terms import Terms
from truerank.estimators.ranked.normalisers import Normaliser
from truerank.estimators.ranked.reward_models import ItemMeans, RewardModel
from truerank.estimators.ranked.weights import Weighing, clipped


@dataclass(frozen=True, slots=True)
class RankedDoublyRobust:
    """Σ_{a in the target's list} ε q + Σ_{viewed} w (c - q) of each session (Dudík et al. 2011; Oosterhuis 2023).

    Exactly unbiased without a clip where ε0 is right, whatever q, if q was not fitted on the session; little variance
    where q is good. Where every displayed item is logged and views are unknown the second sum is over displayed items,
    of w (c - P(V | r) q). The first sum must run over all that the target would show: over the logged rows alone it
    would miss what was not seen.
    """

    model: RewardModel = field(default_factory=ItemMeans)
    seed: int = 0

    name: ClassVar[str] = "doubly-robust"
    clips: ClassVar[bool] = True

    @property
    def metric(self) -> str:
        return Normaliser.SESSION.metric

    @property
    def conditions(self) -> tuple[str, ...]:
        return ("the reward model was not fitted on the sessions that it predicts",)

    def estimand(self, reward: str, unit: str) -> str:
        return f"mean {reward} {Normaliser.SESSION.words(unit)} had the target been shown"

    def refusal(self, weighing: Weighing) -> str | None:
        if weighing.target.whole is None:
            return (
                f"it needs all items that {weighing.target.name} would rank; give a table session,item,rank "
                "(or exposure), or use ips."
            )
        if not weighing.views_known and weighing.logging.positions is None:
            return "views are unknown and no position model says how likely they were; give --position, or use ips."
        return None

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms:
        log, whole = weighing.log, weighing.target.whole
        if whole is None:
            raise TypeError("refused before")
        seen = self._seen(weighing)
        of_row, of_list = self.model.predict(log, weighing.target, reward=reward, seen=seen, seed=self.seed)
        target, inverse = weighing.parts()
        residual = clipped(target, inverse, clip) * (log.reward(reward) - seen * of_row)
        expected = np.bincount(whole.unit, whole.exposure * of_list, minlength=log.n_units)
        return weighing.terms(expected + weighing.by_unit(residual), np.ones(log.n_units))

    def _seen(self, weighing: Weighing) -> Floats:
        """How much of a view each row is: 1 or 0 where that is known, else its probability."""
        if not weighing.views_known:
            return weighing.logging.exposure()
        viewed = weighing.log.viewed
        return np.ones(len(weighing.log)) if viewed is None else viewed.astype(np.float64)
