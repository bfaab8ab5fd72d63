"""What estimators for biased logs share: each judged row stands for 1 / propensity rows like it.

Symbols, per user: candidates C, exposed rows S with labels y (or gains) and propensities π = P(pair is shown), w(r) the
worth of rank r among all candidates, ω = min(1 / π, clip).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from truerank.core.arrays import LEAST_CHANCE, Bools, Floats
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Asked, Learned
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import JudgedChunk, Ranks, RankView
from truerank.core.rows import Weighting
from truerank.core.terms import Smooth, known_total, ratio
from truerank.estimators.sums import Parts, additive, no_known_number, not_additive, per_unit
from truerank.exposure.propensities.given import column_of
from truerank.metrics.worth import expected_worth

POSITIVE = "every candidate had a chance to be shown (propensity above 0), and the propensities are right"
EVERYONE = "every user counts, also those to whom nothing was shown (all of them declared)"
ASSUMED = (POSITIVE, EVERYONE)


@dataclass(frozen=True, slots=True)
class MetricRows:
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
    def of(cls, log: Log, ranks: Ranks, metric: Additive) -> MetricRows:
        able = ranks.scored & ~(ranks.n_candidates == 0)
        if is_recall(metric):
            hit = expected_worth(metric, ranks)
            return cls(log.label * hit, log.label, hit, np.ones(log.n_units), able, ratio=True)
        parts = Parts.of(log, ranks, metric)
        return cls(parts.value, parts.worth, parts.worth, parts.total, able & parts.defined, ratio=False)


@dataclass(frozen=True, slots=True)
class Weighed:
    """The rows of a chunk for one metric, each with its weight ω; `cut` is by how much that is below 1 / π."""

    log: Log
    rows: MetricRows
    weight: Floats
    cut: Floats
    clusters: Clusters

    @classmethod
    def questions(
        cls, chunk: JudgedChunk, view: RankView, *, asked: Sequence[Asked], learned: Learned, clip: float | None
    ) -> Iterator[tuple[Metric, float, Weighed]]:
        """Metric, clip and weighed rows of every question; an estimator's own `clip` goes before the question's."""
        log = chunk.labels
        propensity = propensity_of(log, learned)
        rows: dict[Metric, MetricRows] = {}
        for question in asked:
            limit = question.clip if clip is None else clip
            if question.metric not in rows:
                rows[question.metric] = MetricRows.of(log, view.ranks, additive(question.metric))
            weight = inverse(propensity, limit)
            weighed = cls(log, rows[question.metric], weight, 1.0 / propensity - weight, chunk.clusters)
            yield question.metric, limit, weighed

    def terms(
        self,
        *,
        num: Floats,
        den: Floats,
        fixed_den: Floats,
        fixed_num: Floats | None = None,
        total: Floats | None = None,
    ) -> Smooth:
        """Terms of fixed parts per unit + Σ ω x row."""
        start = np.zeros(self.log.n_units) if fixed_num is None else fixed_num
        above = start + per_unit(self.log, self.weight * num)
        below = fixed_den + per_unit(self.log, self.weight * den)
        defined, weighting = self.rows.defined, self.weighting
        if total is None:
            return ratio(above, below, defined=defined, clusters=self.clusters, weighting=weighting)
        return known_total(above, below, total, defined=defined, clusters=self.clusters, weighting=weighting)

    @property
    def weighting(self) -> Weighting:
        carrying = np.where(self.rows.defined[self.log.unit], self.rows.den, 0.0)
        return Weighting.of(carrying * self.weight, cut=float((carrying * self.cut).sum()))


def inverse(propensity: Floats, clip: float) -> Floats:
    """ω = min(1 / π, clip).

    >>> inverse(np.array([0.5, 0.01]), 10.0).tolist()
    [2.0, 10.0]
    """
    return np.minimum(1.0 / propensity, clip)


def propensity_of(log: Log, learned: Learned) -> Floats:
    """What was learned of exposure, or the propensity column of the log."""
    learner = learned.facts.get("propensity")
    if learner is None:
        return column_of(log, "propensity")
    found: Floats = learned[learner].at(log)
    if found.min(initial=1.0) < LEAST_CHANCE:
        raise RefusedError(
            f"{log.source}: the fitted propensities go down to {found.min():.3g}; expected no less than "
            f"{LEAST_CHANCE:g}, as no row stands for more than 1e40 rows. Use another model of propensities, or a "
            "smaller power."
        )
    return found


def check_clip(clip: float | None) -> None:
    if clip is not None and not (isinstance(clip, Real) and clip >= 1):
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
