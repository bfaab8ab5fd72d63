"""Estimators that are a form of weighted sums over rows: Horvitz-Thompson (IPS), Hájek (SNIPS), pooled recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Beyond, Clipping, Estimator, EstimatorInfo, Exposed, Learned, ObservedUnits, Request
from truerank.core.forms import KnownTotal, Ratio
from truerank.core.metric import Metric
from truerank.core.record import record
from truerank.core.rows import Column
from truerank.core.terms import Smooth, ratio
from truerank.core.wording import option
from truerank.estimators.impressions import Counted, Exposures, Limited, Normaliser, RankedContext
from truerank.estimators.refusals import (
    DISTINCT_RANKS,
    LABEL_FREE,
    LOGS,
    additive,
    is_recall,
    only_recall,
    only_sums,
    only_sums_or_recall,
)
from truerank.estimators.rows import LOGGED, UNIFORM, FormOfSums, WeightedRows, check_clip, per_unit
from truerank.metrics.discounts import expected_discount

DRAWN = frozenset({Exposed.FULL, Exposed.RANDOM, Exposed.DESIGNED})
LEFT_OUT = "have no labelled item"


@record
class HorvitzThompson(WeightedRows):
    """The mean over users of Σ ω y w(rank) over labelled items: each represents ω candidates of its user.

    y is the label unless the metric has graded gains. ω is N / N-bar, under Bernoulli exposure (a declared rate)
    1 / rate, under a design 1 / propensity. Exactly unbiased for additive metrics given N-bar >= 1; a user without a
    labelled item is undefined, under a declared rate contributes 0.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Precision@2"], "estimators": [HorvitzThompson()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value
    1.0
    """

    info = EstimatorInfo(
        name="horvitz-thompson",
        exposures=DRAWN,
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        design=True,
        needs_size=True,
        stands=True,
        left_out=LEFT_OUT,
    )

    sums = Ratio(), (Column.GAIN, Column.UNITS)

    def refusal(self, context: Metric) -> str | None:
        return only_sums(context)


@record
class LoggedWeights(WeightedRows):
    """Weighted by probabilities of a log, of labels or of ranked impressions; the normaliser is of the latter."""

    normaliser: Normaliser = Normaliser.SESSION
    clip: float | None = None
    of: Limited = Limited.RATIO

    exposed = Exposed.BIASED

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def label_refusal(self) -> str | None:
        """Why these options cannot be used on labels."""
        if self.normaliser is Normaliser.SESSION and self.of is Limited.RATIO:
            return None
        return f"normaliser and of are options for ranked impressions; use {self.info.name}, or its clip."


@record
class IPS(LoggedWeights, HorvitzThompson):
    """Horvitz-Thompson with probabilities of a log: inverse propensity scores, of labels or of ranked impressions.

    Labels: ω = min(1 / propensity, clip). Exactly unbiased for additive metrics with the design's own inclusion
    probabilities, all positive, and no clip. Recall is a ratio of two such sums, Σ ω y 1{rank <= K} / Σ ω y over all
    users: consistent for pooled recall, and the same as self-normalised. A finite `clip` cuts weights, for less
    variance at the price of a value that is too low.

    Impressions: Σ_i c_i w_i of each session, w = ε/ε0 (paper 3, eqs. 8 and 9). Exactly unbiased without a clip under
    the five assumptions; with clip m its mean is Σ_a q min(ε, m ε0), or of the inverse Σ_a ε q min(1, m ε0): too small
    where rewards are positive.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["DCG@1", "Recall@1"], "estimators": [IPS()]}
    >>> [round(estimate.value, 3) for estimate in tr.evaluate(scores, log, **how).estimates]  # 1 / 0.5 and 2 / (2 + 4)
    [2.0, 0.333]

    Item 1 was seen at position 2 and liked; the target ranks it first:

    >>> frame = pl.DataFrame({"session": [1, 1], "item": [1, 2], "position": [2, 1], "reward": [1, 0], "new": [1, 2]})
    >>> how = {"position": tr.positions.parse_position("exp:0.5"), "estimators": [IPS()]}
    >>> tr.off_policy(frame, {"new": tr.exposure.RankColumn("new")}, **how).estimates[0].value
    2.0
    """

    info = EstimatorInfo(
        name="ips",
        exposures=LOGS,
        assumptions=LOGGED,
        ties=LABEL_FREE,
        weighs=True,
        needs_scale=True,
        stands=True,
        clipping=Clipping.CHOSEN,
        left_out="have no candidate",
    )

    def refusal(self, context: Metric | RankedContext) -> str | None:
        if not isinstance(context, RankedContext):
            return self.label_refusal() or only_sums_or_recall(context)
        if self.normaliser is not Normaliser.SESSION and not context.views_known:
            return "the log does not say what was viewed, so nothing can be counted per viewed item; use per session."
        return None

    @property
    def metric(self) -> Counted:
        return self.normaliser.counted

    def form(self, metric: Metric) -> FormOfSums:
        if is_recall(metric) or self.normaliser is Normaliser.SESSION:
            return HorvitzThompson.form(self, metric)
        return Ratio(), (Column.GAIN, Column.VIEWS)

    def counted_columns(self) -> Sequence[Column]:
        return () if self.normaliser is Normaliser.MEAN_OF_MEANS else HorvitzThompson.counted_columns(self)

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        if self.normaliser is not Normaliser.MEAN_OF_MEANS:
            return HorvitzThompson.make(self, view, reward, clips, learned)
        viewed, sums = view.n_viewed(), view.rewards(reward, clips, self.of)
        seen = viewed > 0
        means = np.divide(sums.rows, viewed, out=np.zeros_like(sums.rows), where=seen)
        return sums.of_clips([view.ratio(mean, seen.astype(np.float64), among=seen) for mean in means])


@record
class Hajek(WeightedRows):
    """The ratio Σ ω y w / Σ ω w over labelled items of all users, times the known mean of Σ_{r <= K} w(r).

    y is the label, or the gain of a graded metric: the first factor is then the mean gain per unit of discount. The
    total discount of a list is known, so the ratio corrects for how much of it the weighted rows happen to add up to.
    Consistent, and much steadier than Horvitz-Thompson at small K, where few labelled items rank in the top K. A
    constant label gives a value without error.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Precision@2"], "estimators": [Hajek()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value
    1.0
    """

    info = replace(HorvitzThompson.info, name="hajek", ties=DISTINCT_RANKS)

    sums = KnownTotal(), (Column.GAIN, Column.DISCOUNT, Column.TOTAL, Column.UNITS)

    def refusal(self, context: Metric) -> str | None:
        return only_sums(context)


@record
class SNIPS(LoggedWeights, Hajek):
    """Hájek with probabilities of a log: self-normalised inverse propensity scores (Swaminathan and Joachims 2015).

    Labels: ω = min(1 / propensity, clip). Steadier than IPS where propensities vary much or few items of the top K were
    shown. For Recall: Σ ω y 1{rank <= K} / Σ ω y, pooled over users.

    Impressions: Σ c w / Σ w over viewed rows, times the known mean of Σ_a ε(x, a) for a value per session. A ratio:
    consistent, not unbiased, and its interval lets the denominator vary, so that a reward that is the same everywhere
    has an interval of no width. Σ w runs over every viewed row; the value per session needs the target's whole list.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 2], "label": [1, 0], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["Precision@2"], "estimators": [SNIPS()]}
    >>> round(tr.evaluate(scores, log, **how).estimates[0].value, 3)  # 2 / (2 + 4)
    0.333
    """

    info = replace(
        IPS.info,
        name="snips",
        ties=DISTINCT_RANKS,
        needs_scale=False,
        clipping=Clipping.GIVEN,
        beyond=Beyond.AVERAGE,
    )

    def refusal(self, context: Metric | RankedContext) -> str | None:
        if not isinstance(context, RankedContext):
            return self.label_refusal() or only_sums_or_recall(context)
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

    @property
    def metric(self) -> Counted:
        return replace(self.normaliser.counted, assumptions=())

    def form(self, metric: Metric) -> FormOfSums:
        if is_recall(metric) or self.normaliser is Normaliser.SESSION:
            return Hajek.form(self, metric)
        return Ratio(), (Column.GAIN, Column.DISCOUNT)


@record
class Pooled(WeightedRows):
    """Recall over all relevant pairs: Σ ω m / Σ ω n estimates ΣM / ΣN⁺, ω = N / N-bar.

    Consistent for any N and N-bar >= 1. With N-bar / N the same for all users it is Σm / Σn. Under Bernoulli
    exposure (a declared rate) the weight is 1 / rate.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [Pooled()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value
    0.5
    """

    info = replace(HorvitzThompson.info, name="pooled")

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "pooling divides by the number of relevant items")


@record
class Naive(HorvitzThompson):
    """What one gets by taking a biased log for a uniform sample; for comparison, to see how far off that is.

    Pooled recall Σm / Σn, or (N / N-bar) Σ y w for sums. Where exposure is correlated with rank, it is biased: its
    expectation is Σ π-weighted, and a model that ranks high what was shown anyway looks better than it is.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["Recall@1"], "estimators": [Naive()]}
    >>> tr.evaluate(scores, log, **how).estimates[0].value
    0.5
    """

    info = EstimatorInfo(
        name="naive",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=("the shown items are a uniform sample of the candidates: here they are not",),
        ties=LABEL_FREE,
        needs_size=True,
        left_out=LEFT_OUT,
        caution="takes the log for a random sample: shown to compare with, not to decide by",
    )
    exposed = Exposed.RANDOM

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)

    def estimand(self, request: Request, unit: str = "user") -> str:
        metric = request.metric
        return f"{metric} as if the shown items were a random sample; not {metric} itself where exposure is unequal"


@record
class Published(Estimator):
    """The URE paper's estimate (definition 5.1): m / n for each user, mean over users with n >= 1.

    m / n is exactly unbiased for a user's recall given n >= 1. The mean is not unbiased for mean recall: it converges
    to Σ π Recall / Σ π with π = 1 - C(N - N⁺, N-bar) / C(N, N-bar), the chance that a user has a judged relevant
    item. Users with few relevant items are left out more often.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [Published()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value
    0.5
    """

    info = EstimatorInfo(
        name="published",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        stands=True,
        left_out="have no labelled relevant item; they tend to have few relevant items, so this mean leans towards "
        "users with many (compare pooled)",
        differs="a mean that leans towards users with many relevant items",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "the URE paper defines its estimate for Recall")

    def estimand(self, request: Request, unit: str = "user") -> str:
        return (
            f"mean {request.metric} over users weighted by their probability to have a labelled relevant item, "
            "so users with many relevant items count more"
        )

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        log, ranks = units.log, units.ranks
        hits = per_unit(log, log.label * expected_discount(additive(request.metric), ranks))
        n = per_unit(log, log.label)
        defined = ranks.scored & (n > 0)
        share = np.divide(hits, n, out=np.zeros(len(n)), where=defined)
        return ratio(share, defined.astype(np.float64), defined=defined, clusters=units.chunk.clusters)
