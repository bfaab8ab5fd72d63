"""What estimators of uniform samples share (the URE papers, and beyond).

Symbols, per user: N candidates, N-bar judged, n judged relevant, m of them with rank <= K in the full list of
candidates, w(r) the worth of rank r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import RefusedError
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import JudgedChunk, Ranks
from truerank.core.rows import SampledRows
from truerank.core.terms import Clusters, Smooth, known_total, ratio
from truerank.estimators.sums import no_known_number, not_additive

UNIFORM = "the judged items of a user are a uniform sample of the user's candidates, drawn without a look at the labels"


@dataclass(frozen=True, slots=True)
class UniformSample:
    """How much of each unit's candidates was judged, and what one judged item stands for."""

    defined: Bools
    expansion: Floats
    n_judged: Floats
    n_candidates: Floats
    rate: float | None
    clusters: Clusters

    @classmethod
    def of(cls, chunk: JudgedChunk, ranks: Ranks, *, rate: float | None, usable: Bools | None = None) -> UniformSample:
        """`usable` units are those for which the metric is defined, all by default."""
        log, n, clusters = chunk.labels, ranks.n_candidates, chunk.clusters
        scored = ranks.scored if usable is None else ranks.scored & usable
        if np.isnan(n).any():
            raise RefusedError(
                "top lists do not tell how many candidates there are, which this estimator needs. "
                "Give the catalogue: --items FILE or --n-items N (Python: items= or n_items=)."
            )
        judged = n if log.complete else np.bincount(log.unit, minlength=log.n_units).astype(np.float64)
        if rate is not None and not log.complete:
            return cls(scored & (n > 0), np.full(len(n), 1.0 / rate), judged, n, rate, clusters)
        defined = scored & (judged > 0)
        expansion = np.divide(n, judged, out=np.ones(len(n)), where=defined)
        return cls(defined, expansion, judged, n, None, clusters)

    def rows(self, log: Log, num: Floats, den: Floats) -> SampledRows:
        return SampledRows(log.unit, num, den, self.n_judged, self.n_candidates, self.rate)

    @property
    def exact(self) -> bool:
        """Whether every candidate was judged; under independent draws a full sample is chance, and is expanded."""
        return self.rate is None and bool((self.n_judged == self.n_candidates)[self.defined].all())

    def ratio(self, num: Floats, den: Floats, *, rows: SampledRows | None) -> Smooth:
        return ratio(num, den, defined=self.defined, clusters=self.clusters, exact=self.exact, rows=rows)

    def known_total(self, num: Floats, den: Floats, total: Floats, *, rows: SampledRows | None) -> Smooth:
        return known_total(num, den, total, defined=self.defined, clusters=self.clusters, exact=self.exact, rows=rows)


def only_recall(metric: Metric, reason: str) -> str | None:
    """Why a metric that does not divide by a user's relevant items cannot be had, None for those that do."""
    if not isinstance(metric, Additive):
        return not_additive(metric)
    if metric.denominator.needs_every_label:
        return no_known_number(metric)
    return f"{reason}; for {metric} use horvitz-thompson or hajek."


def only_sums(metric: Metric) -> str | None:
    """Why a metric that divides by a user's relevant items cannot be had, None for sums."""
    if not isinstance(metric, Additive):
        return not_additive(metric)
    if metric.denominator is Denominator.POSITIVES:
        return "it divides by the unknown number of all relevant items of a user; use pooled."
    return no_known_number(metric)
