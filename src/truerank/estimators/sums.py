"""Pieces that estimators of sums over judged rows share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, sums_by
from truerank.core.clusters import Clusters
from truerank.core.errors import RefusedError
from truerank.core.estimator import Exposed, Learned
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric, OfLists
from truerank.core.options import Denominator
from truerank.core.ranking import JudgedChunk, Ranks, Ties
from truerank.core.rows import SampledRows, Weighting
from truerank.core.terms import Smooth, known_total, ratio
from truerank.core.wording import option
from truerank.metrics.worth import expected_worth, gains_of, known_divisor

# where a relevant item lands must not depend on labels that nobody knows
LABEL_FREE = frozenset({Ties.EXPECTED, Ties.RANDOM, Ties.STRICT})


@dataclass(frozen=True, slots=True)
class Parts:
    """The worth of each row and gain x worth, both divided by the unit's denominator; the worth of a whole list."""

    value: Floats
    worth: Floats
    total: Floats
    defined: Bools

    @classmethod
    def of(cls, log: Log, ranks: Ranks, metric: Additive) -> Parts:
        divisor = known_divisor(metric.denominator, metric.cutoff, ranks)
        defined = ~np.isnan(divisor)
        divisor = np.where(defined, divisor, 1.0)
        worth = expected_worth(metric, ranks) / divisor[log.unit]
        return cls(gains_of(metric, log) * worth, worth, worth_of_list(metric, ranks) / divisor, defined)


def additive(metric: Metric) -> Additive:
    if not isinstance(metric, Additive):
        raise RefusedError(f"{metric} is not additive over relevant items.")
    return metric


def per_unit(log: Log, values: Floats) -> Floats:
    return sums_by(log.unit, values, n=log.n_units)


def worth_of_list(metric: Additive, ranks: Ranks, *, power: int = 1) -> Floats:
    """Σ w(r) over the ranks that a unit's list has: 1 ... min(K, candidates that are recommended). Or Σ w^power."""
    deepest = int(ranks.n_recommended.max(initial=0))
    deepest = deepest if metric.cutoff is None else min(deepest, metric.cutoff)
    running = np.concatenate([[0.0], np.cumsum(metric.worth(np.arange(1.0, deepest + 1)) ** power)])
    return running[np.minimum(ranks.n_recommended, deepest).astype(np.int64)]


def only_labelled(metric: Metric) -> str | None:
    """Why a metric that does not look at labels is not for an estimator that does."""
    return "it describes lists, whatever is relevant in them; use lists." if isinstance(metric, OfLists) else None


def no_known_number(metric: Additive) -> str | None:
    if metric.denominator is Denominator.SMALLER:
        return (
            "it divides by the smaller of K and the number of all relevant items of a user, which is not known, and no "
            f"unbiased form exists; use {metric.name} divided by all relevant items, its default."
        )
    return None


def not_additive(metric: Metric) -> str:
    return (
        only_labelled(metric)
        or f"partial labels cannot give {metric}: {getattr(metric, 'partial', 'it is not additive')}."
    )


UNIFORM = "the judged items of a user are a uniform sample of the user's candidates, drawn without a look at the labels"
DESIGNED = (
    "the judged items of a user were drawn with the chances that their rows carry, which no candidate had at 0, and "
    "came back whatever their labels"
)


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
                f"Give the catalogue: {option('items FILE')} or {option('n_items N')}."
            )
        judged = n if log.complete else np.bincount(log.unit, minlength=log.n_units).astype(np.float64)
        if rate is not None and not log.complete:
            return cls(scored & (n > 0), np.full(len(n), 1.0 / rate), judged, n, rate, clusters)
        defined = scored & (judged > 0)
        expansion = np.divide(n, judged, out=np.ones(len(n)), where=defined)
        return cls(defined, expansion, judged, n, None, clusters)

    def sums(self, log: Log, values: Floats) -> Floats:
        """The sums over a unit that the values of its judged rows stand for."""
        return self.expansion * per_unit(log, values)

    def weights(self, log: Log) -> Floats:
        """For how many rows each judged one stands."""
        return self.expansion[log.unit]

    @property
    def weighting(self) -> None:
        """Weights that only users' numbers make are judged by these."""

    def rows(self, log: Log, *sums: Floats) -> SampledRows:
        """What each row adds to the first sums of its unit, before expansion."""
        return SampledRows(log.unit, np.stack(sums, axis=1), self.n_judged, self.n_candidates, self.rate)

    @property
    def exact(self) -> bool:
        """Whether every candidate was judged; under independent draws a full sample is chance, and is expanded."""
        return self.rate is None and bool((self.n_judged == self.n_candidates)[self.defined].all())

    def ratio(self, num: Floats, den: Floats, *, rows: SampledRows | None) -> Smooth:
        return ratio(num, den, defined=self.defined, clusters=self.clusters, exact=self.exact, rows=rows)

    def known_total(self, num: Floats, den: Floats, total: Floats, *, rows: SampledRows | None) -> Smooth:
        return known_total(num, den, total, defined=self.defined, clusters=self.clusters, exact=self.exact, rows=rows)


@dataclass(frozen=True, slots=True)
class DesignedSample:
    """Rows that were drawn with known chances, as many of each unit as the design says; a row stands for 1 / chance."""

    defined: Bools
    weight: Floats
    n_judged: Floats
    n_candidates: Floats
    clusters: Clusters

    @classmethod
    def of(cls, chunk: JudgedChunk, ranks: Ranks, *, usable: Bools | None = None) -> DesignedSample:
        """`usable` units are those for which the metric is defined, all by default; units without a row are not."""
        log = chunk.labels
        if log.propensity is None:
            raise RefusedError(f"{log.source}: the rows have no propensity, the chance under which each was drawn.")
        scored = ranks.scored if usable is None else ranks.scored & usable
        judged = np.bincount(log.unit, minlength=log.n_units).astype(np.float64)
        return cls(scored & (judged > 0), 1.0 / log.propensity, judged, ranks.n_candidates, chunk.clusters)

    def sums(self, log: Log, values: Floats) -> Floats:
        return per_unit(log, self.weight * values)

    def weights(self, log: Log) -> Floats:
        return self.weight

    def rows(self, log: Log, *sums: Floats) -> SampledRows:
        chance = 1.0 / self.weight
        return SampledRows(log.unit, np.stack(sums, axis=1), self.n_judged, self.n_candidates, chance=chance)

    @property
    def exact(self) -> bool:
        return bool((self.n_judged == self.n_candidates)[self.defined].all())

    def ratio(self, num: Floats, den: Floats, *, rows: SampledRows | None) -> Smooth:
        return ratio(
            num, den, defined=self.defined, clusters=self.clusters, exact=self.exact, rows=rows,
            weighting=self.weighting,
        )  # fmt: skip

    def known_total(self, num: Floats, den: Floats, total: Floats, *, rows: SampledRows | None) -> Smooth:
        return known_total(
            num, den, total, defined=self.defined, clusters=self.clusters, exact=self.exact, rows=rows,
            weighting=self.weighting,
        )  # fmt: skip

    @property
    def weighting(self) -> Weighting:
        return Weighting.of(self.weight)


def sample_of(
    chunk: JudgedChunk, ranks: Ranks, learned: Learned, *, usable: Bools | None = None
) -> UniformSample | DesignedSample:
    """How the judged rows of a chunk were drawn: uniformly, or with the chances of a design."""
    if learned.facts.get("exposed") is Exposed.DESIGNED:
        return DesignedSample.of(chunk, ranks, usable=usable)
    return UniformSample.of(chunk, ranks, rate=learned.facts.get("rate"), usable=usable)


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
