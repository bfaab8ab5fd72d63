"""Self-normalised importance weighting: steadier, because chance in the weights cancels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.estimator import About, Asked, Beyond, Clipping, Exposed, Learned
from truerank.core.terms import Smooth, Terms
from truerank.core.wording import option
from truerank.data.impressions import RankedChunk
from truerank.estimators.ranked.base import RankedEstimator
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import Exposures, Refits, by_reward
from truerank.estimators.ranked.normalisers import Counted, Normaliser, RankedContext
from truerank.estimators.ranked.refitting import lists_outside, place_counts, refitted, units_outside


@dataclass(frozen=True, slots=True)
class RankedSNIPS(RankedEstimator):
    """Σ c w / Σ w over viewed rows, times the known mean of Σ_a ε(x, a) for a value per session (Swaminathan and
    Joachims 2015; statistics of ranked logs).

    A ratio: consistent, not unbiased, and its interval lets the denominator vary, so that a reward that is the same
    everywhere has an interval of no width. Σ w runs over every viewed row; the value per session needs the target's
    whole list.
    """

    normaliser: Normaliser = Normaliser.SESSION
    clip: float | None = None
    of: Limited = Limited.RATIO

    about: ClassVar[About] = About(
        name="snips",
        exposures=frozenset({Exposed.RANKED}),
        weighs=True,
        clipping=Clipping.GIVEN,
        beyond=Beyond.AVERAGE,
    )

    @property
    def metric(self) -> Counted:
        return replace(self.normaliser.counted, assumptions=())

    def refusal(self, context: RankedContext) -> str | None:
        if self.normaliser is Normaliser.MEAN_OF_MEANS:
            return "a mean of session means has no self-normalised form; use ips, or per session or viewed item."
        if not context.views_known:
            return "the log does not say what was viewed, and weights are summed over viewed items; use ips."
        if self.normaliser is Normaliser.SESSION and not context.total:
            return (
                f"a value per session needs all items that {context.target} would rank; give a table "
                f"session,item,rank, or a column candidates with their number, or use "
                f"{option('normaliser impression')}."
            )
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
            return self._made(seen, asked)

        def count(seen: Exposures, refits: Refits, units: Bools) -> list[tuple[Floats, Floats]]:
            return self._counted(seen, refits, units, asked)

        return refitted(view, make, count)

    def _made(self, view: Exposures, asked: Sequence[Asked]) -> list[Smooth]:
        every = np.unique([each.clip for each in asked])
        weights = view.clipped_sums(None, view.viewed_rows(), every, self.of)
        form = view.known_total if self.normaliser is Normaliser.SESSION else view.ratio

        def of(reward: str, clips: Floats) -> list[Smooth]:
            rewards = view.rewards(reward, clips, self.of)
            pairs = [(row, weights.at[at]) for row, at in zip(rewards.at, np.searchsorted(every, clips), strict=True)]
            made = {(num, den): form(rewards.rows[num], weights.rows[den]) for num, den in set(pairs)}
            return [made[pair] for pair in pairs]

        return by_reward(asked, of)

    def _counted(
        self, view: Exposures, refits: Refits, units: Bools, asked: Sequence[Asked]
    ) -> list[tuple[Floats, Floats]]:
        """Σ c w, Σ w and, per session, Σ_a ε(x, a) and the number of units outside each group."""
        every = np.unique([each.clip for each in asked])
        weights = place_counts(view, refits, view.viewed_rows(), None, units).totals(refits, every, self.of)
        known: list[tuple[Floats, Floats]] = []
        if self.normaliser is Normaliser.SESSION:
            number = units_outside(refits, units)
            known = [lists_outside(view, refits, units), (number, np.zeros_like(number))]

        def of(reward: str, clips: Floats) -> list[tuple[Floats, Floats]]:
            values = view.log.reward(reward)
            counts = place_counts(view, refits, view.rewarded(reward), values, units)
            rewards = counts.totals(refits, clips, self.of)
            found = []
            for k, at in enumerate(np.searchsorted(every, clips)):
                total, rest = (
                    np.stack([num[:, k], den[:, at], *(part[which] for part in known)], axis=1)
                    for which, (num, den) in enumerate(zip(rewards, weights, strict=True))
                )
                found.append((total, rest))
            return found

        return by_reward(asked, of)
