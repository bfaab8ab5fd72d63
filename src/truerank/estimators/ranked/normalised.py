"""DCG divided by its ideal: per session (nDCG), which can invert the order of policies, or after all sums are made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import About, Asked, Clipping, Exposed, Learned
from truerank.core.terms import Smooth
from truerank.estimators.ranked.base import RankedEstimator
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import Exposures
from truerank.estimators.ranked.normalisers import Counted, RankedContext
from truerank.exposure.policies.policies import views


class IdealSum(StrEnum):
    """What DCG is divided by: the DCG of the best order of a session's labels, or the plain sum of its labels.

    Table 1 of paper 3 was made with the sum although the text defines the best order.
    """

    ORDER = "order"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class RankedNDCG(RankedEstimator):
    """The mean over sessions of DCG / ideal DCG, with labels c / ε0 (paper 3, section 5).

    Not a reward and not consistent with it: policies can change places (Table 1). Sessions without a reward have no
    ideal and are left out, so that the mean is over another set of sessions than the reward is.
    """

    ideal: IdealSum = IdealSum.ORDER
    clip: float | None = None
    of: Limited = Limited.RATIO

    about: ClassVar[About] = About(
        name="ndcg",
        exposures=frozenset({Exposed.RANKED}),
        assumptions=("nDCG is not an estimate of reward: even where DCG is unbiased it can order policies otherwise",),
        weighs=True,
        clipping=Clipping.GIVEN,
        caution="nDCG can order policies otherwise than the reward does: do not choose by it",
    )

    @property
    def metric(self) -> Counted:
        return Counted("nDCG", left_out="have no ranking or no reward")

    def refusal(self, context: RankedContext) -> str | None:
        return _refusal(context, self.ideal)

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return (
            f"mean over {unit}s with a {asked.reward} of DCG over the DCG of the best order of what was seen; no reward"
        )

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        def share(dcg: Floats, best: Floats) -> Smooth:
            kept = best > 0
            value = np.divide(dcg, best, out=np.zeros(len(dcg)), where=kept)
            return view.ratio(value, kept.astype(np.float64), kept=kept)

        return [share(*sums) for sums in _with_ideals(view, reward, clips, of=self.of, ideal=self.ideal)]


@dataclass(frozen=True, slots=True)
class RankedPostNormalised(RankedEstimator):
    """Σ DCG / Σ ideal DCG over all sessions: one factor for all policies, so it orders them as DCG does (section 5)."""

    ideal: IdealSum = IdealSum.ORDER
    clip: float | None = None
    of: Limited = Limited.RATIO

    about: ClassVar[About] = About(
        name="post-normalised",
        exposures=frozenset({Exposed.RANKED}),
        assumptions=("the ideal is of what was seen in the log, not of all that could be shown",),
        weighs=True,
        clipping=Clipping.GIVEN,
    )

    @property
    def metric(self) -> Counted:
        return Counted("post-normalised DCG")

    def refusal(self, context: RankedContext) -> str | None:
        return _refusal(context, self.ideal)

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return f"DCG of {asked.reward} over all {unit}s, divided by that of the best order of what was seen"

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        return [view.ratio(*sums) for sums in _with_ideals(view, reward, clips, of=self.of, ideal=self.ideal)]


def _refusal(context: RankedContext, ideal: IdealSum) -> str | None:
    if context.reward is not None and context.negative:
        return (
            f"{context.reward} has negative values; a session's best order then is no upper limit and can be 0 or "
            "negative, so a share of it means nothing. Use ips."
        )
    if not context.models and ideal is IdealSum.ORDER:
        return "the best order needs a discount for every rank: a position model; use ips."
    if context.several and ideal is IdealSum.ORDER:
        return "the best order is not defined where position models differ within a log; use ips."
    return None


def _with_ideals(
    view: Exposures, reward: str, clips: Floats, *, of: Limited, ideal: IdealSum
) -> Iterator[tuple[Floats, Floats]]:
    """DCG and ideal DCG of each unit, for each clip."""
    return zip(view.rewards(reward, clips, of), _ideals(view, reward, clips, of=of, ideal=ideal), strict=True)


def _ideals(view: Exposures, reward: str, clips: Floats, *, of: Limited, ideal: IdealSum) -> list[Floats]:
    """The ideal DCG of each unit for each clip, of labels c / ε0; where clips limit 1/ε0 they limit these labels too.

    A clip of the ratio is about a target, not about labels: the ideal is then the same at every clip, and no less than
    any policy's DCG.
    """
    if of is Limited.RATIO:
        return _ideals(view, reward, np.array([math.inf]), of=Limited.INVERSE, ideal=ideal) * len(clips)
    rows, positions = view.rewarded(reward), view.target.positions
    gain = view.log.reward(reward)[rows]
    inverse = view.inverse(rows)
    unit = view.log.unit[rows]
    rank = np.arange(len(unit)) - np.searchsorted(unit, unit) + 1  # units ascend
    found = []
    for clip in clips.tolist():
        label = gain * np.minimum(inverse, clip)
        if ideal is IdealSum.LABELS or positions is None:
            found.append(view.by_unit(label, rows))
        else:
            order = np.lexsort((-label, unit))
            found.append(view.by_unit(label[order] * views(positions, rank), rows[order]))
    return found
