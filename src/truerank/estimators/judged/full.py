"""Estimators that treat the labels they see as all there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Pool, Ranks, Ties
from truerank.core.terms import Terms
from truerank.metrics.tables import unit_values_of
from truerank.metrics.worth import Pairwise


@dataclass(frozen=True, slots=True)
class Full:
    """The plain evaluation on full labels: the mean of the metric over users.

    Users whose value is undefined (no relevant item for Recall, nDCG, AP or RR; no candidate) are left out and counted.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 4, "item": [1, 2, 3, 4], "label": [1, 0, 1, 0]})
    >>> how = {"exposure": tr.FullExposure(), "metrics": [tr.Recall(1)], "estimators": [Full()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    name: ClassVar[str] = "full"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = True
    ties: ClassVar[frozenset[Ties]] = frozenset(Ties)
    design: ClassVar[bool] = True
    needs_size: ClassVar[bool] = False
    biased: ClassVar[bool] = False
    left_out: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = ("every candidate of every user carries its true label",)

    def refusal(self, metric: Metric) -> str | None:
        return None

    def estimand(self, metric: Metric) -> str:
        return f"mean {metric} over {metric.on_full_labels}"

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        return self.all_terms(log, ranks, metrics=[metric])[0]

    def all_terms(self, log: Log, ranks: Ranks, *, metrics: Sequence[Metric]) -> list[Terms]:
        return _means_over_units(log, ranks, metrics, exact=True)


@dataclass(frozen=True, slots=True)
class Traditional:
    """The usual scheme on randomly exposed data: rank only the judged items, cut at K-bar (spec 5.1.5).

    Among N-bar judged items instead of N candidates a cut-off of K-bar is about as deep as K-bar N / N-bar in the
    catalogue (theorem 1 of the URE paper), so this is another quantity than the metric at the same K. AUC has no
    cut-off: among judged items that are a uniform sample it is exactly unbiased for each user given both classes, and
    its mean over those users converges to Σ π AUC / Σ π, π the chance to have both judged.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": tr.RandomExposure(), "metrics": [tr.Recall(1)], "estimators": [Traditional()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    name: ClassVar[str] = "traditional"
    pool: ClassVar[Pool] = Pool.JUDGED
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = frozenset(Ties)
    design: ClassVar[bool] = False
    needs_size: ClassVar[bool] = False
    biased: ClassVar[bool] = False
    left_out: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = ("the judged items are all the items that matter",)

    def refusal(self, metric: Metric) -> str | None:
        return None

    def estimand(self, metric: Metric) -> str:
        if isinstance(metric, Pairwise):
            return f"mean {metric} over {metric.judged_only}"
        return f"mean {metric} among the judged items only, over {metric.on_full_labels} judged; not {metric} itself"

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        return self.all_terms(log, ranks, metrics=[metric])[0]

    def all_terms(self, log: Log, ranks: Ranks, *, metrics: Sequence[Metric]) -> list[Terms]:
        return _means_over_units(log, ranks, metrics, exact=False)


def _means_over_units(log: Log, ranks: Ranks, metrics: Sequence[Metric], *, exact: bool) -> list[Terms]:
    values = unit_values_of(metrics, log, ranks)
    return [_mean(values[each], ranks, exact=exact) for each in metrics]


def _mean(values: Floats, ranks: Ranks, *, exact: bool) -> Terms:
    defined = ranks.scored & ~np.isnan(values) & ~(ranks.n_candidates == 0)
    return Terms(
        num=np.where(defined, values, 0.0),
        den=defined.astype(np.float64),
        defined=defined,
        cluster=np.arange(len(values)),
        exact=exact,
    )
