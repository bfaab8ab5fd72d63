"""Doubly robust estimates: a reward model for what the target shows, corrected by what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, sums_by
from truerank.core.estimator import About, Asked, Clipping, Exposed, Learned, Learner
from truerank.core.terms import Smooth, Terms
from truerank.data.impressions import RankedChunk
from truerank.estimators.ranked.context import Counted, Normaliser, RankedContext
from truerank.estimators.ranked.exposures import Exposures, by_reward
from truerank.estimators.ranked.refitting import refitted
from truerank.estimators.ranked.reward_models import ItemMeans, RewardModel
from truerank.exposure.policies.policies import Rows


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
    clip: float | None = None

    about: ClassVar[About] = About(
        name="doubly-robust",
        exposures=frozenset({Exposed.RANKED}),
        assumptions=("the reward model was not fitted on the sessions that it predicts",),
        weighs=True,
        clipping=Clipping.CHOSEN,
    )

    @property
    def metric(self) -> Counted:
        return Normaliser.SESSION.counted

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.columns()

    def refusal(self, context: RankedContext) -> str | None:
        if not context.whole:
            return (
                f"it needs all items that {context.target} would rank; give a table session,item,rank "
                "(or exposure), or use ips."
            )
        if not context.views_known and not context.logging_models:
            return "views are unknown and no position model says how likely they were; give --position, or use ips."
        return None

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return f"mean {asked.reward} {Normaliser.SESSION.words(unit)} had the target been shown"

    def prepare(self, context: RankedContext) -> tuple[Learner, ...]:
        return () if context.reward is None else self.model.learners(context, context.reward, seed=self.seed)

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
            return by_reward(asked, lambda reward, clips: self._made(seen, reward, clips, learned))

        return refitted(view, make)

    def _made(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        log, target = view.log, view.target
        of_row, of_list = self.model.predict(view, reward, learned, seed=self.seed)
        left = log.reward(reward) - seen_share(view) * of_row

        def gain(rows: Rows, exposure: Floats) -> Floats:
            return np.asarray(exposure * left[rows], dtype=np.float64)

        expected = np.zeros(log.n_units)
        if target.whole is not None:
            expected = sums_by(target.whole.unit, target.listed() * of_list, n=log.n_units)
        one = np.ones(log.n_units)
        return [view.ratio(expected + residual, one) for residual in view.clipped_sums(gain, None, clips)]


def seen_share(view: Exposures) -> Floats:
    """How much of a view each row is: 1 or 0 where that is known, else its probability."""
    if not view.views_known:
        return view.logging.exposure()
    viewed = view.log.viewed
    return np.ones(len(view.log)) if viewed is None else viewed.astype(np.float64)
