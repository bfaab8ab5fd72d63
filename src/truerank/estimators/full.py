"""Estimators that treat the labels they see as all there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.clusters import Clusters
from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned
from truerank.core.metric import Metric
from truerank.core.options import AbsentUsers
from truerank.core.ranking import JudgedChunk, Pool, Ranks, RankView
from truerank.core.terms import Smooth, ratio
from truerank.core.values import check
from truerank.estimators.refusals import only_labelled
from truerank.metrics.tables import unit_values_of
from truerank.metrics.worth import Pairwise, relevant


@dataclass(frozen=True, slots=True)
class Full(Estimator):
    """The plain evaluation on full labels: the mean of the metric over users.

    Users whose value is undefined (no relevant item for Recall, nDCG, AP or RR; no candidate) are left out and counted;
    those without a relevant item count as 0 with `without_relevant`, as RankSys and others have it.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 4, "item": [1, 2, 3, 4], "label": [1, 0, 1, 0]})
    >>> how = {"exposure": tr.exposure.FullExposure(), "metrics": ["Recall@1"], "estimators": [Full()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    without_relevant: AbsentUsers = AbsentUsers.OUT

    about: ClassVar[About] = About(
        name="full",
        exposures=frozenset({Exposed.FULL}),
        assumptions=("every candidate of every user carries its true label",),
        complete=True,
        design=True,
    )

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, context: Metric) -> str | None:
        return only_labelled(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        if self._counts_nothing(asked.metric):
            return f"mean {asked.metric} over all users, those without a relevant item as 0"
        return f"mean {asked.metric} over {asked.metric.on_full_labels}"

    def _counts_nothing(self, metric: Metric) -> bool:
        """Whether nothing relevant is a value of 0; of pairs, as in AUC, there are none to be right or wrong about."""
        return self.without_relevant is AbsentUsers.ZERO and not isinstance(metric, Pairwise)

    def terms(
        self, chunk: JudgedChunk, view: RankView, *, asked: Sequence[Asked], learned: Learned, keep_rows: bool = False
    ) -> list[Smooth]:
        metrics, labels = [asking.metric for asking in asked], chunk.labels
        values = unit_values_of(metrics, labels, view.ranks)
        if self.without_relevant is AbsentUsers.ZERO:
            nothing = np.bincount(labels.user[relevant(labels)], minlength=labels.n_units) == 0
            values = {
                metric: np.where(nothing & np.isnan(own), 0.0, own) if self._counts_nothing(metric) else own
                for metric, own in values.items()
            }
        return [_mean(values[metric], view.ranks, chunk.clusters, exact=True) for metric in metrics]


@dataclass(frozen=True, slots=True)
class Traditional(Estimator):
    """The usual scheme on randomly exposed data: rank only the judged items, cut at K-bar (spec 5.1.5).

    Among N-bar judged items instead of N candidates a cut-off of K-bar is about as deep as K-bar N / N-bar in the
    catalogue (theorem 1 of the URE paper), so this is another quantity than the metric at the same K. AUC has no
    cut-off: among judged items that are a uniform sample it is exactly unbiased for each user given both classes, and
    its mean over those users converges to Σ π AUC / Σ π, π the chance to have both judged.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [Traditional()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    about: ClassVar[About] = About(
        name="traditional",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=("the judged items are all the items that matter",),
        pool=Pool.JUDGED,
    )

    def refusal(self, context: Metric) -> str | None:
        return only_labelled(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        metric = asked.metric
        if isinstance(metric, Pairwise):
            return f"mean {metric} over {metric.judged_only}"
        return f"mean {metric} among the judged items only, over {metric.on_full_labels} judged; not {metric} itself"

    def terms(
        self, chunk: JudgedChunk, view: RankView, *, asked: Sequence[Asked], learned: Learned, keep_rows: bool = False
    ) -> list[Smooth]:
        values = unit_values_of([asking.metric for asking in asked], chunk.labels, view.ranks)
        return [_mean(values[asking.metric], view.ranks, chunk.clusters, exact=False) for asking in asked]


def _mean(values: Floats, ranks: Ranks, clusters: Clusters, *, exact: bool) -> Smooth:
    defined = ranks.scored & ~np.isnan(values) & ~(ranks.n_candidates == 0)
    return ratio(
        np.where(defined, values, 0.0), defined.astype(np.float64), defined=defined, clusters=clusters, exact=exact
    )
