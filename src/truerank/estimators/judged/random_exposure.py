"""Estimators for judged items that are a uniform sample of the candidates (the URE papers, and beyond).

Symbols, per user: N candidates, N-bar judged, n judged relevant, m of them with rank <= K in the full list of
candidates, w(r) the worth of rank r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import RefusedError
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Pool, Ranks, Ties
from truerank.core.rows import SampledRows
from truerank.core.terms import Terms
from truerank.estimators.sums import LABEL_FREE, Parts, additive, no_known_number, not_additive, per_unit
from truerank.metrics.worth import expected_worth

UNIFORM = "the judged items of a user are a uniform sample of the user's candidates, drawn without a look at the labels"


@dataclass(frozen=True, slots=True)
class Published:
    """The URE paper's estimate (definition 5.1): m / n for each user, mean over users with n >= 1.

    m / n is exactly unbiased for a user's recall given n >= 1. The mean is not unbiased for mean recall: it converges
    to Σ π Recall / Σ π with π = 1 - C(N - N⁺, N-bar) / C(N, N-bar), the chance that a user has a judged relevant
    item. Users with few relevant items are left out more often.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": tr.RandomExposure(), "metrics": [tr.Recall(1)], "estimators": [Published()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    name: ClassVar[str] = "published"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = LABEL_FREE
    design: ClassVar[bool] = False
    needs_size: ClassVar[bool] = False
    biased: ClassVar[bool] = False
    left_out: ClassVar[str] = (
        "have no judged relevant item; they tend to have few relevant items, so this mean leans towards users "
        "with many (compare pooled)"
    )
    assumptions: ClassVar[tuple[str, ...]] = (UNIFORM,)

    def refusal(self, metric: Metric) -> str | None:
        return _only_recall(metric, "the URE paper defines its estimate for Recall")

    def estimand(self, metric: Metric) -> str:
        return (
            f"mean {metric} over users weighted by their chance to have a judged relevant item, "
            "so users with many relevant items count more"
        )

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        hit, n = (per_unit(log, values) for values in (log.label * expected_worth(additive(metric), ranks), log.label))
        defined = ranks.scored & (n > 0)
        share = np.divide(hit, n, out=np.zeros(len(n)), where=defined)
        return Terms(share, defined.astype(np.float64), defined, np.arange(log.n_units))


@dataclass(frozen=True, slots=True)
class Pooled:
    """Recall over all relevant pairs: Σ (N / N-bar) m / Σ (N / N-bar) n estimates ΣM / ΣN⁺.

    Consistent for any N and N-bar >= 1. With N-bar / N the same for all users it is Σm / Σn. `rate`
    declares Bernoulli exposure: weight 1 / rate.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": tr.RandomExposure(), "metrics": [tr.Recall(1)], "estimators": [Pooled()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    rate: float | None = None
    name: ClassVar[str] = "pooled"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = LABEL_FREE
    design: ClassVar[bool] = True
    needs_size: ClassVar[bool] = True
    biased: ClassVar[bool] = False
    left_out: ClassVar[str] = "have no judged item"
    assumptions: ClassVar[tuple[str, ...]] = (UNIFORM,)

    def refusal(self, metric: Metric) -> str | None:
        return _only_recall(metric, "pooling divides by the number of relevant items")

    def estimand(self, metric: Metric) -> str:
        return f"{metric} pooled over all relevant user-item pairs, so users with many relevant items count more"

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        sample = _Sample.of(log, ranks, rate=self.rate)
        hit = log.label * expected_worth(additive(metric), ranks)
        rows = sample.rows(log, hit, log.label) if keep_rows else None
        num, den = (sample.expansion * per_unit(log, values) for values in (hit, log.label))
        return sample.terms(num, den, rows=rows)


@dataclass(frozen=True, slots=True)
class HorvitzThompson:
    """The expanded sum of worth: (N / N-bar) Σ over judged items of gain x w(rank), mean over users.

    The gain is the label y unless the metric has graded gains.

    Exactly unbiased for additive metrics given N-bar >= 1; a user without a judged item is undefined. `rate` declares
    Bernoulli exposure: weight 1 / rate, and a user without a judged item contributes 0.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": tr.RandomExposure(), "metrics": [tr.Precision(2)], "estimators": [HorvitzThompson()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    1.0
    """

    rate: float | None = None
    name: ClassVar[str] = "horvitz-thompson"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = LABEL_FREE
    design: ClassVar[bool] = True
    needs_size: ClassVar[bool] = True
    biased: ClassVar[bool] = False
    left_out: ClassVar[str] = "have no judged item"
    assumptions: ClassVar[tuple[str, ...]] = (UNIFORM,)

    def refusal(self, metric: Metric) -> str | None:
        return _only_sums(metric)

    def estimand(self, metric: Metric) -> str:
        return f"mean {metric} over {metric.on_full_labels}"

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        parts = Parts.of(log, ranks, additive(metric))
        sample = _Sample.of(log, ranks, rate=self.rate, usable=parts.defined)
        rows = sample.rows(log, parts.value, np.zeros(len(log))) if keep_rows else None
        return sample.terms(sample.expansion * per_unit(log, parts.value), np.ones(log.n_units), rows=rows)


@dataclass(frozen=True, slots=True)
class Hajek:
    """The ratio Σ (N / N-bar) Σ y w / Σ (N / N-bar) Σ w, over judged items, times the known mean of Σ_{r <= K} w(r).

    y is the label, or the gain of a graded metric: the first factor is then the mean gain per unit of worth, and the
    denominator stays Σ w, which is known for the whole list. Consistent, and much steadier than Horvitz-Thompson at
    small K, where few judged items rank in the top K: chance in how many do cancels.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": tr.RandomExposure(), "metrics": [tr.Precision(2)], "estimators": [Hajek()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    1.0
    """

    rate: float | None = None
    name: ClassVar[str] = "hajek"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = LABEL_FREE - {
        Ties.STRICT
    }  # the worth of a list is known if each rank is taken once
    design: ClassVar[bool] = True
    needs_size: ClassVar[bool] = True
    biased: ClassVar[bool] = False
    left_out: ClassVar[str] = "have no judged item"
    assumptions: ClassVar[tuple[str, ...]] = (UNIFORM,)

    def refusal(self, metric: Metric) -> str | None:
        return _only_sums(metric)

    def estimand(self, metric: Metric) -> str:
        return f"mean {metric} over {metric.on_full_labels}"

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        parts = Parts.of(log, ranks, additive(metric))
        sample = _Sample.of(log, ranks, rate=self.rate, usable=parts.defined)
        rows = sample.rows(log, parts.value, parts.worth) if keep_rows else None
        num, den = (sample.expansion * per_unit(log, values) for values in (parts.value, parts.worth))
        # pairs that are not listed are known negatives: the worth of the whole list was judged
        return sample.terms(num, parts.total if log.complete else den, total=parts.total, rows=rows)


@dataclass(frozen=True, slots=True)
class _Sample:
    """How much of each unit's candidates was judged, and what one judged item stands for."""

    defined: Bools
    expansion: Floats
    n_judged: Floats
    n_candidates: Floats
    rate: float | None

    @classmethod
    def of(cls, log: Log, ranks: Ranks, *, rate: float | None, usable: Bools | None = None) -> _Sample:
        """`usable` units are those for which the metric is defined, all by default."""
        n = ranks.n_candidates
        scored = ranks.scored if usable is None else ranks.scored & usable
        if np.isnan(n).any():
            raise RefusedError(
                "top lists do not tell how many candidates there are, which this estimator needs. "
                "Give the catalogue: --items FILE or --n-items N (Python: items= or n_items=)."
            )
        judged = n if log.complete else np.bincount(log.unit, minlength=log.n_units).astype(np.float64)
        if rate is not None and not log.complete:
            return cls(scored & (n > 0), np.full(len(n), 1.0 / rate), judged, n, rate)
        defined = scored & (judged > 0)
        return cls(defined, np.divide(n, judged, out=np.ones(len(n)), where=defined), judged, n, None)

    def rows(self, log: Log, num: Floats, den: Floats) -> SampledRows:
        return SampledRows(log.unit, num, den, self.n_judged, self.n_candidates, self.rate)

    def terms(self, num: Floats, den: Floats, *, total: Floats | None = None, rows: SampledRows | None = None) -> Terms:
        return Terms(
            num=np.where(self.defined, num, 0.0),
            den=np.where(self.defined, den, 0.0),
            defined=self.defined,
            cluster=np.arange(len(num)),
            total=None if total is None else np.where(self.defined, total, 0.0),
            rows=rows,
            # under independent draws a full sample is chance, and its rows are expanded all the same
            exact=self.rate is None and bool((self.n_judged == self.n_candidates)[self.defined].all()),
        )


def _only_recall(metric: Metric, reason: str) -> str | None:
    if not isinstance(metric, Additive):
        return not_additive(metric)
    if metric.denominator.needs_every_label:
        return no_known_number(metric)
    return f"{reason}; for {metric} use horvitz-thompson or hajek."


def _only_sums(metric: Metric) -> str | None:
    if not isinstance(metric, Additive):
        return not_additive(metric)
    if metric.denominator is Denominator.POSITIVES:
        return "it divides by the unknown number of all relevant items of a user; use pooled."
    return no_known_number(metric)
