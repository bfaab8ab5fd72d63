"""Estimators that are a form of weighted sums over rows: Horvitz-Thompson (IPS), Hájek (SNIPS), pooled recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.estimator import About, Asked, Clipping, Estimator, Exposed, Learned
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import KnownTotal, Ratio, Smooth, ratio
from truerank.estimators.refusals import (
    DISTINCT_RANKS,
    LABEL_FREE,
    additive,
    is_recall,
    only_recall,
    only_sums,
    only_sums_or_recall,
)
from truerank.estimators.rows import LOGGED, UNIFORM, Column, FormOfSums, WeightedRows, check_clip, per_unit
from truerank.metrics.worth import expected_worth

DRAWN = frozenset({Exposed.FULL, Exposed.RANDOM, Exposed.DESIGNED})
LEFT_OUT = "have no judged item"
RECALL = Ratio(), (Column.GAIN, Column.RELEVANT)


@dataclass(frozen=True, slots=True)
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

    about: ClassVar[About] = About(
        name="horvitz-thompson",
        exposures=DRAWN,
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        design=True,
        needs_size=True,
        stands=True,
        left_out=LEFT_OUT,
    )

    def refusal(self, context: Metric) -> str | None:
        return only_sums(context)

    def form(self, metric: Metric) -> FormOfSums:
        return RECALL if is_recall(metric) else (Ratio(), (Column.GAIN, Column.UNITS))


@dataclass(frozen=True, slots=True)
class IPS(HorvitzThompson):
    """Horvitz-Thompson with propensities of a log, ω = min(1 / propensity, clip): inverse propensity scores.

    Exactly unbiased for additive metrics with the design's own inclusion probabilities, all positive, and no clip.
    Recall is a ratio of two such sums, Σ ω y 1{rank <= K} / Σ ω y over all users: consistent for pooled recall, and the
    same as self-normalised. A finite `clip` cuts weights, for less variance at the price of a value that is too low.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["DCG@1", "Recall@1"], "estimators": [IPS()]}
    >>> [round(estimate.value, 3) for estimate in tr.evaluate(scores, log, **how).estimates]  # 1 / 0.5 and 2 / (2 + 4)
    [2.0, 0.333]
    """

    clip: float | None = None

    about: ClassVar[About] = About(
        name="ips",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=LOGGED,
        ties=LABEL_FREE,
        weighs=True,
        needs_scale=True,
        stands=True,
        clipping=Clipping.CHOSEN,
        left_out="have no candidate",
    )
    exposed: ClassVar[Exposed | None] = Exposed.BIASED

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)


@dataclass(frozen=True, slots=True)
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

    about: ClassVar[About] = About(
        name="hajek",
        exposures=DRAWN,
        assumptions=(UNIFORM,),
        ties=DISTINCT_RANKS,
        design=True,
        needs_size=True,
        stands=True,
        left_out=LEFT_OUT,
    )

    def refusal(self, context: Metric) -> str | None:
        return only_sums(context)

    def form(self, metric: Metric) -> FormOfSums:
        columns = (Column.GAIN, Column.DISCOUNT, Column.TOTAL, Column.UNITS)
        return RECALL if is_recall(metric) else (KnownTotal(), columns)


@dataclass(frozen=True, slots=True)
class SNIPS(Hajek):
    """Hájek with propensities of a log, ω = min(1 / propensity, clip): self-normalised inverse propensity scores.

    Steadier than IPS where propensities vary much or few items of the top K were shown. For Recall:
    Σ ω y 1{rank <= K} / Σ ω y, pooled over users.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 2], "label": [1, 0], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["Precision@2"], "estimators": [SNIPS()]}
    >>> round(tr.evaluate(scores, log, **how).estimates[0].value, 3)  # 2 / (2 + 4)
    0.333
    """

    clip: float | None = None

    about: ClassVar[About] = About(
        name="snips",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=LOGGED,
        ties=DISTINCT_RANKS,
        weighs=True,
        stands=True,
        clipping=Clipping.GIVEN,
        left_out="have no candidate",
    )
    exposed: ClassVar[Exposed | None] = Exposed.BIASED

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)


@dataclass(frozen=True, slots=True)
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

    about: ClassVar[About] = About(
        name="pooled",
        exposures=DRAWN,
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        design=True,
        needs_size=True,
        stands=True,
        left_out=LEFT_OUT,
    )

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "pooling divides by the number of relevant items")

    def form(self, metric: Metric) -> FormOfSums:
        return RECALL


@dataclass(frozen=True, slots=True)
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

    about: ClassVar[About] = About(
        name="naive",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=("the shown items are a uniform sample of the candidates: here they are not",),
        ties=LABEL_FREE,
        needs_size=True,
        left_out=LEFT_OUT,
        caution="takes the log for a random sample: shown to compare with, not to decide by",
    )
    exposed: ClassVar[Exposed | None] = Exposed.RANDOM

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        metric = asked.metric
        return f"{metric} as if the shown items were a random sample; not {metric} itself where exposure is unequal"


@dataclass(frozen=True, slots=True)
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

    about: ClassVar[About] = About(
        name="published",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        stands=True,
        left_out="have no judged relevant item; they tend to have few relevant items, so this mean leans towards users "
        "with many (compare pooled)",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "the URE paper defines its estimate for Recall")

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return (
            f"mean {asked.metric} over users weighted by their chance to have a judged relevant item, "
            "so users with many relevant items count more"
        )

    def term(self, chunk: JudgedChunk, view: RankView, question: Asked, learned: Learned, *, keep_rows: bool) -> Smooth:
        log, ranks = chunk.labels, view.ranks
        hits = per_unit(log, log.label * expected_worth(additive(question.metric), ranks))
        n = per_unit(log, log.label)
        defined = ranks.scored & (n > 0)
        share = np.divide(hits, n, out=np.zeros(len(n)), where=defined)
        return ratio(share, defined.astype(np.float64), defined=defined, clusters=chunk.clusters)
