"""Estimators for biased logs: each judged row stands for 1 / propensity rows like it (statistics of unequal exposure).

Symbols, per user: candidates C, exposed rows S with labels y (or gains) and propensities π = P(pair is shown), w(r) the
worth of rank r among all candidates, ω = min(1 / π, clip).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Pool, Ranks, Ties
from truerank.core.rows import Reweighted, Weighting
from truerank.core.terms import Terms
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.sums import LABEL_FREE, Parts, additive, no_known_number, not_additive, per_unit
from truerank.exposure.propensities import Fitted
from truerank.exposure.propensities.given import column_of
from truerank.metrics.worth import expected_worth

POSITIVE = "every candidate had a chance to be shown (propensity above 0), and the propensities are right"
EVERYONE = "every user counts, also those to whom nothing was shown (declare them with --population)"
ASSUMED = (POSITIVE, EVERYONE)


@dataclass(frozen=True, slots=True)
class IPS:
    """Inverse propensity scores: Σ over shown items of ω y w(rank), mean over users.

    Exactly unbiased for additive metrics with the design's own inclusion probabilities, all positive, and no clip.
    Recall is a ratio of two such sums, Σ ω y 1{rank <= K} / Σ ω y over all users: consistent for pooled recall, and the
    same as self-normalised. A finite `clip` cuts weights, for less variance at the price of a value that is too low.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": tr.BiasedExposure(), "metrics": [tr.DCG(1), tr.Recall(1)], "estimators": [IPS()]}
    >>> [round(each.value, 3) for each in tr.evaluate(scores, log, **how).estimates]  # 1 / 0.5 and 2 / (2 + 4)
    [2.0, 0.333]
    """

    clip: float = math.inf
    fitted: Fitted | None = field(default=None, compare=False, repr=False)
    name: ClassVar[str] = "ips"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = LABEL_FREE
    design: ClassVar[bool] = False
    needs_size: ClassVar[bool] = False
    biased: ClassVar[bool] = True
    left_out: ClassVar[str] = "have no candidate"
    assumptions: ClassVar[tuple[str, ...]] = ASSUMED

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def refusal(self, metric: Metric) -> str | None:
        return only_sums_or_recall(metric)

    def estimand(self, metric: Metric) -> str:
        return estimand(metric)

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        rows = Rows.of(log, ranks, additive(metric))
        fixed = np.zeros(log.n_units) if rows.ratio else np.ones(log.n_units)
        den = rows.den if rows.ratio else np.zeros(len(log))
        return weigh(log, rows, self.clip, self.fitted, num=rows.num, den=den, fixed_den=fixed)


@dataclass(frozen=True, slots=True)
class SNIPS:
    """Self-normalised inverse propensity scores: Σ ω y w / Σ ω w over shown items of all users, times the mean of Σ w.

    The worth of a whole list, Σ_{r <= K} w(r), is known; the ratio corrects for how much of it the weighted rows happen
    to add up to. Consistent, and steadier than IPS where propensities vary much or few items of the top K were shown. A
    constant label gives a value without error. For Recall: Σ ω y 1{rank <= K} / Σ ω y, pooled over users.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 2], "label": [1, 0], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": tr.BiasedExposure(), "metrics": [tr.Precision(2)], "estimators": [SNIPS()]}
    >>> round(tr.evaluate(scores, log, **how).estimates[0].value, 3)  # 2 / (2 + 4)
    0.333
    """

    clip: float = math.inf
    fitted: Fitted | None = field(default=None, compare=False, repr=False)
    name: ClassVar[str] = "snips"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = LABEL_FREE - {Ties.STRICT}  # the worth of a list is known if ranks are distinct
    design: ClassVar[bool] = False
    needs_size: ClassVar[bool] = False
    biased: ClassVar[bool] = True
    left_out: ClassVar[str] = "have no candidate"
    assumptions: ClassVar[tuple[str, ...]] = ASSUMED

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def refusal(self, metric: Metric) -> str | None:
        return only_sums_or_recall(metric)

    def estimand(self, metric: Metric) -> str:
        return estimand(metric)

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        rows = Rows.of(log, ranks, additive(metric))
        nothing = np.zeros(log.n_units)
        total = None if rows.ratio else rows.total
        return weigh(log, rows, self.clip, self.fitted, num=rows.num, den=rows.den, fixed_den=nothing, total=total)


@dataclass(frozen=True, slots=True)
class Naive:
    """What one gets by taking a biased log for a uniform sample; for comparison, to see how far off that is.

    Pooled recall Σm / Σn, or (N / N-bar) Σ y w for sums. Where exposure is correlated with rank, it is biased: its
    expectation is Σ π-weighted, and a model that ranks high what was shown anyway looks better than it is.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": tr.BiasedExposure(), "metrics": [tr.Recall(1)], "estimators": [Naive()]}
    >>> tr.evaluate(scores, log, **how).estimates[0].value
    0.5
    """

    name: ClassVar[str] = "naive"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = LABEL_FREE
    design: ClassVar[bool] = False
    needs_size: ClassVar[bool] = True
    biased: ClassVar[bool] = True
    left_out: ClassVar[str] = "have no judged item"
    assumptions: ClassVar[tuple[str, ...]] = (
        "the shown items are a uniform sample of the candidates: here they are not",
    )

    def refusal(self, metric: Metric) -> str | None:
        return only_sums_or_recall(metric)

    def estimand(self, metric: Metric) -> str:
        return f"{metric} as if the shown items were a random sample; not {metric} itself where exposure is unequal"

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        plain = Pooled() if is_recall(metric) else HorvitzThompson()
        return plain.terms(log, ranks, metric=metric)


# ------------------------------------------------------------------------------------------------------------- pieces


@dataclass(frozen=True, slots=True)
class Rows:
    """What each row adds before it is weighted: to the numerator, and to the denominator of a ratio.

    `hit` is the worth of the row whatever its label. For Recall (`ratio`) the denominator counts relevant items; for
    sums it is the worth of the row, whose `total` over a whole list is known.
    """

    num: Floats
    den: Floats
    hit: Floats
    total: Floats
    defined: Bools
    ratio: bool

    @classmethod
    def of(cls, log: Log, ranks: Ranks, metric: Additive) -> Rows:
        able = ranks.scored & ~(ranks.n_candidates == 0)
        if is_recall(metric):
            hit = expected_worth(metric, ranks)
            return cls(log.label * hit, log.label, hit, np.ones(log.n_units), able, ratio=True)
        parts = Parts.of(log, ranks, metric)
        return cls(parts.value, parts.worth, parts.worth, parts.total, able & parts.defined, ratio=False)


def weigh(
    log: Log,
    rows: Rows,
    clip: float,
    fitted: Fitted | None,
    *,
    num: Floats,
    den: Floats,
    fixed_den: Floats,
    fixed_num: Floats | None = None,
    total: Floats | None = None,
) -> Terms:
    """Terms of fixed parts per unit + Σ ω x row; weights that were fitted are fitted again in every replicate."""
    fixed_num = np.zeros(log.n_units) if fixed_num is None else fixed_num
    propensity = propensity_of(log, fitted)
    weight = inverse(propensity, clip)
    carrying = np.where(rows.defined[log.unit], rows.den, 0.0) * weight
    terms = Terms(
        num=np.where(rows.defined, fixed_num + per_unit(log, weight * num), 0.0),
        den=np.where(rows.defined, fixed_den + per_unit(log, weight * den), 0.0),
        defined=rows.defined,
        cluster=np.arange(log.n_units),
        total=None if total is None else np.where(rows.defined, total, 0.0),
        weighting=Weighting.of(carrying, clipped=int(np.count_nonzero((propensity * clip < 1) & (carrying > 0)))),
    )
    if fitted is None or not fitted.fitted:
        return terms
    refit = _Refit(fitted, clip)
    again = Reweighted(log.unit, num, den, fixed_num, fixed_den, refit).restrict(rows.defined)
    return Terms(
        terms.num, terms.den, terms.defined, terms.cluster, terms.total, weighting=terms.weighting, reweighted=again
    )


@dataclass(frozen=True, slots=True)
class _Refit:
    fitted: Fitted
    clip: float

    def __call__(self, weight: Floats) -> Floats:
        return inverse(self.fitted.under(weight), self.clip)


def inverse(propensity: Floats, clip: float) -> Floats:
    """ω = min(1 / π, clip).

    >>> inverse(np.array([0.5, 0.01]), 10.0).tolist()
    [2.0, 10.0]
    """
    return np.minimum(1.0 / propensity, clip)


def propensity_of(log: Log, fitted: Fitted | None) -> Floats:
    """What was fitted, or the propensity column of the log."""
    return column_of(log, "propensity") if fitted is None else fitted.value


def check_clip(clip: float) -> None:
    if not (isinstance(clip, Real) and clip >= 1):
        raise InputError(f"clip {clip}; expected a number from 1 (the weight of what is always shown) to infinity.")


def is_recall(metric: Metric) -> bool:
    """Whether it divides by the number of a user's relevant items."""
    return isinstance(metric, Additive) and metric.denominator is Denominator.POSITIVES


def only_sums_or_recall(metric: Metric) -> str | None:
    return no_known_number(metric) if isinstance(metric, Additive) else not_additive(metric)


def estimand(metric: Metric) -> str:
    if is_recall(metric):
        return f"{metric} pooled over all relevant user-item pairs, so users with many relevant items count more"
    return f"mean {metric} over {metric.on_full_labels}"
