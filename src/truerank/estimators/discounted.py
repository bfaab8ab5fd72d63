"""Forms of DCG of impressions that are in use and are not unbiased, and DCG over its ideal (paper 3, section 5)."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Clipping, EstimatorInfo, Learned, Request
from truerank.core.record import record
from truerank.core.terms import Smooth
from truerank.estimators.impressions import Counted, Exposures, Limited, RankedContext
from truerank.estimators.refitting import RankedEstimator
from truerank.estimators.refusals import IMPRESSIONS
from truerank.exposure.policies import Rows, views

UNCORRECTED = "labels of items seen far down count as much as others although they had less chance"


class DiscountedRewards(RankedEstimator):
    """The mean over sessions of Σ c times a discount of the target's rank, over the log's exposure where it weighs."""

    __slots__ = ()

    assumption = UNCORRECTED
    form: ClassVar[str]  # in words
    by_rank = True  # the discount is 1 / log2(rank + 1), else the target's exposure

    @property
    def metric(self) -> Counted:
        return Counted("DCG", (self.assumption,))

    def refusal(self, context: RankedContext) -> str | None:
        if context.ranks or not self.by_rank:
            return None
        return "it discounts by rank, and the target gives exposures; give ranks, or use ips."

    def estimand(self, request: Request, unit: str = "session") -> str:
        form = self.form.format(request.reward)
        return f"mean over {unit}s of Σ {form}; for comparison, no estimate of reward"

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        def discount(rows: Rows) -> Floats:
            rank = view.target.rank
            if not self.by_rank or rank is None:
                return view.target.exposure(rows)
            shown = (rank if rows is None else rank[rows]).astype(np.float64)
            return np.divide(1.0, np.log2(shown + 1.0), out=np.zeros(len(shown)), where=shown > 0)

        gain, rows = view.log.reward(reward), view.rewarded(reward)
        if not self.info.weighs:
            return [view.ratio(view.by_unit(gain[rows] * discount(rows), rows))] * len(clips)
        limits: Limited = getattr(self, "of", Limited.RATIO)
        sums = view.clipped_sums(gain, rows, clips, limits, discount=discount)
        return sums.of_clips([view.ratio(total) for total in sums.rows])


@record
class LogDiscountRaw(DiscountedRewards):
    """Σ c / log2(r + 1), r the target's rank: the classical form ("log, C" in Table 2)."""

    clip: float | None = None

    info = EstimatorInfo(name="dcg-log-raw", exposures=IMPRESSIONS)
    form = "{} / log2(rank + 1)"


@record
class LogDiscountDebiased(DiscountedRewards):
    """Σ c / (ε0 log2(r + 1)): labels corrected by the position model, the classical discount ("log, Q").

    The discount is to the clip what the target's exposure is elsewhere.
    """

    clip: float | None = None
    of: Limited = Limited.RATIO

    info = EstimatorInfo(name="dcg-log-debiased", exposures=IMPRESSIONS, weighs=True, clipping=Clipping.CHOSEN)
    form = "{} / (logging exposure · log2(rank + 1))"
    assumption = "the discount 1/log2(rank + 1) is how likely a rank is viewed"


@record
class LearntDiscountRaw(DiscountedRewards):
    """Σ c ε: the discount of the position model on raw labels, as ips(clip=1,of=inverse) ("pbm, C" in Table 2)."""

    clip: float | None = None

    info = EstimatorInfo(name="dcg-raw", exposures=IMPRESSIONS)
    form = "{} · target exposure"
    by_rank = False


# ------------------------------------------------------------------------------------------------- divided by the ideal


class IdealSum(StrEnum):
    """What DCG is divided by: the DCG of the best order of a session's labels, or the plain sum of its labels.

    Table 1 of paper 3 was made with the sum although the text defines the best order.
    """

    ORDER = "order"
    LABELS = "labels"


@record
class RankedPostNormalised(RankedEstimator):
    """Σ DCG / Σ ideal DCG over all sessions: one factor for all policies, so it orders them as DCG does (section 5)."""

    ideal: IdealSum = IdealSum.ORDER
    clip: float | None = None
    of: Limited = Limited.RATIO

    info = EstimatorInfo(name="post-normalised", exposures=IMPRESSIONS, weighs=True, clipping=Clipping.GIVEN)

    @property
    def metric(self) -> Counted:
        seen = "the ideal is of what was seen in the log, not of all that could be shown"
        return Counted("post-normalised DCG", (seen,))

    def refusal(self, context: RankedContext) -> str | None:
        if context.reward is not None and context.negative:
            return (
                f"{context.reward} has negative values; a session's best order then is no upper limit and can be 0 or "
                "negative, so a share of it means nothing. Use ips."
            )
        if not context.models and self.ideal is IdealSum.ORDER:
            return "the best order needs a discount for every rank: a position model; use ips."
        if context.several and self.ideal is IdealSum.ORDER:
            return "the best order is not defined where position models differ within a log; use ips."
        return None

    def estimand(self, request: Request, unit: str = "session") -> str:
        return f"DCG of {request.reward} over all {unit}s, divided by that of the best order of what was seen"

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        sums = zip(view.rewards(reward, clips, self.of), self._ideals(view, reward, clips), strict=True)
        return [self.share(view, dcg, best) for dcg, best in sums]

    def share(self, view: Exposures, dcg: Floats, best: Floats) -> Smooth:
        """The terms of the DCG and the ideal DCG of each unit."""
        return view.ratio(dcg, best)

    def _ideals(self, view: Exposures, reward: str, clips: Floats) -> list[Floats]:
        """The ideal DCG of each unit for each clip, of labels c / ε0; where clips limit 1/ε0 they limit these too.

        A clip of the ratio is about a target, not about labels: the ideal is then the same at every clip, and no less
        than any policy's DCG.
        """
        rows, positions = view.rewarded(reward), view.target.positions
        gain, inverse, unit = view.log.reward(reward)[rows], view.inverse(rows), view.log.unit[rows]
        rank = np.arange(len(unit)) - np.searchsorted(unit, unit) + 1  # units ascend
        ideals = []
        for clip in [math.inf] if self.of is Limited.RATIO else clips.tolist():
            label = gain * np.minimum(inverse, clip)
            if self.ideal is IdealSum.LABELS or positions is None:
                ideals.append(view.by_unit(label, rows))
            else:
                order = np.lexsort((-label, unit))
                ideals.append(view.by_unit(label[order] * views(positions, rank), rows[order]))
        return ideals * len(clips) if self.of is Limited.RATIO else ideals


@record
class RankedNDCG(RankedPostNormalised):
    """The mean over sessions of DCG / ideal DCG, with labels c / ε0 (paper 3, section 5).

    Not a reward and not consistent with it: policies can change places (Table 1). Sessions without a reward have no
    ideal and are left out, so that the mean is over another set of sessions than the reward is.
    """

    info = EstimatorInfo(
        name="ndcg",
        exposures=IMPRESSIONS,
        weighs=True,
        clipping=Clipping.GIVEN,
        caution="nDCG can order policies otherwise than the reward does: do not choose by it",
    )

    @property
    def metric(self) -> Counted:
        assumed = "nDCG is not an estimate of reward: even where DCG is unbiased it can order policies otherwise"
        return Counted("nDCG", (assumed,), left_out="have no ranking or no reward")

    def estimand(self, request: Request, unit: str = "session") -> str:
        best = "the DCG of the best order of what was seen"
        return f"mean over {unit}s with a {request.reward} of DCG over {best}; no reward"

    def share(self, view: Exposures, dcg: Floats, best: Floats) -> Smooth:
        mask = best > 0
        value = np.divide(dcg, best, out=np.zeros(len(dcg)), where=mask)
        return view.ratio(value, mask.astype(np.float64), among=mask)
