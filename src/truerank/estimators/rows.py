"""Every estimate comes from rows that were observed; for one model a row has a gain, a discount and a weight.

The gain is the label (or graded gain), the discount what an item earns at the rank where the model puts it, w(rank) of
the metric, and the weight how many rows it represents: N / n of a uniform sample of a user's N candidates, 1 / rate of
independent draws, 1 / propensity of a design or a log. A unit also has the total discount of all its rank positions,
whatever was observed of them. Kinds of data differ in how these are made, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import LEAST_CHANCE, Bools, Floats, sums_by
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Exposed, Learned, ObservedUnits, Request
from truerank.core.forms import Form, Ratio
from truerank.core.log import Log
from truerank.core.metric import Additive
from truerank.core.ranking import JudgedChunk, Ranks
from truerank.core.record import record
from truerank.core.rows import Column, SampledRows, Weighting
from truerank.core.terms import Smooth, smooth
from truerank.core.wording import option
from truerank.estimators.impressions import Counted, Exposures, Limited, Normaliser, limited_by
from truerank.estimators.refitting import RankedEstimator
from truerank.estimators.refusals import additive, estimand, is_recall
from truerank.exposure.propensities import column_of
from truerank.metrics.discounts import expected_discount, known_divisor

UNIFORM = "the labelled items of a user are a uniform sample of the user's candidates, independently of their labels"
DESIGNED = (
    "labelled items were sampled with the stated probabilities, positive for every candidate, and independently of "
    "their labels"
)
WEIGHTED = (
    "labelled items were sampled with the same probability for all candidates of a user, or with their propensity, "
    "independently of their labels"
)
LOGGED = (
    "every candidate had a chance to be shown (propensity above 0), and the propensities are right",
    "every user counts, also those to whom nothing was shown (all of them declared)",
)


@record
class Sample:
    """How the labelled rows of a chunk were drawn: how many rows each represents, and for which units that is known.

    `drawn` rows were drawn by whoever made the test set: `n_labelled` of a unit's `n_candidates` uniformly, each with
    probability `rate`, or each with its `inclusion` probability. Rows that are not were logged. `clipped` is how much a
    clip took from each weight.
    """

    weight: Floats
    defined: Bools
    clusters: Clusters
    n_labelled: Floats
    n_candidates: Floats
    rate: float | None = None
    inclusion: Floats | None = None
    drawn: bool = True
    clipped: Floats | None = None

    @classmethod
    def of(
        cls,
        chunk: JudgedChunk,
        ranks: Ranks,
        learned: Learned,
        *,
        exposed: Exposed | None = None,
        usable: Bools | None = None,
    ) -> Sample:
        """As `exposed` says, or else the evaluation; `usable` units are those for which the metric is defined."""
        exposed = exposed or learned.facts.get("exposed")
        if exposed is Exposed.BIASED:
            return cls.logged(chunk, ranks, learned, usable=usable)
        if exposed is Exposed.DESIGNED:
            return cls.designed(chunk, ranks, usable=usable)
        return cls.uniform(chunk, ranks, rate=learned.facts.get("rate"), usable=usable)

    @classmethod
    def uniform(cls, chunk: JudgedChunk, ranks: Ranks, *, rate: float | None, usable: Bools | None = None) -> Sample:
        """A uniform sample of each unit's candidates, or independent draws with one rate."""
        log, n = chunk.labels, ranks.n_candidates
        if np.isnan(n).any():
            raise RefusedError(
                "top lists do not tell how many candidates there are, which this estimator needs. "
                f"Give the catalogue: {option('items FILE')} or {option('n_items N')}."
            )
        scored, n_labelled = _scored(ranks, usable), n if log.complete else _counted(log)
        rate = None if log.complete else rate
        defined = scored & ((n_labelled if rate is None else n) > 0)
        sample = cls(np.zeros(0), defined, chunk.clusters, n_labelled, n, rate)
        return replace(sample, weight=sample.expansion[log.unit])

    @classmethod
    def designed(cls, chunk: JudgedChunk, ranks: Ranks, *, usable: Bools | None = None) -> Sample:
        """Rows drawn with known probabilities; units without a row are undefined."""
        log = chunk.labels
        if log.propensity is None:
            raise RefusedError(f"{log.source}: the rows have no propensity, the chance under which each was drawn.")
        n_labelled, inclusion = _counted(log), log.propensity
        defined = _scored(ranks, usable) & (n_labelled > 0)
        return cls(1.0 / inclusion, defined, chunk.clusters, n_labelled, ranks.n_candidates, inclusion=inclusion)

    @classmethod
    def logged(cls, chunk: JudgedChunk, ranks: Ranks, learned: Learned, *, usable: Bools | None = None) -> Sample:
        """Rows that were shown with known or fitted propensities; a unit to which nothing was shown counts too."""
        log = chunk.labels
        defined = _scored(ranks, usable) & ~(ranks.n_candidates == 0)
        weight = 1.0 / propensity_of(log, learned)
        return cls(weight, defined, chunk.clusters, _counted(log), ranks.n_candidates, drawn=False)

    @property
    def expansion(self) -> Floats:
        """How many candidates of a unit each of its labelled rows represents, where rows were drawn uniformly."""
        if self.rate is not None:
            return np.full(len(self.defined), 1.0 / self.rate)
        return np.divide(self.n_candidates, self.n_labelled, out=np.ones(len(self.defined)), where=self.defined)

    @property
    def exact(self) -> bool:
        """Whether every candidate was labelled; under independent draws a full sample is chance, and is expanded."""
        complete = self.drawn and self.rate is None
        return complete and bool((self.n_labelled == self.n_candidates)[self.defined].all())

    def rows(self, log: Log, columns: Sequence[Floats]) -> SampledRows | None:
        """What each row adds to the first sums of its unit, before it is weighted."""
        if not self.drawn:
            return None
        sums = np.stack([*columns, np.zeros(len(log))] if len(columns) == 1 else columns, axis=1)
        return SampledRows(log.unit, sums, self.n_labelled, self.n_candidates, self.rate, self.inclusion)


@record
class Rows:
    """The labelled rows of a chunk as one model ranks them, for one metric; `total_discount` is of units.

    For Recall the discount is 1 within the top K; for sums it is divided by what the metric divides by.
    """

    log: Log
    gain: Floats
    discount: Floats
    total_discount: Floats
    sample: Sample
    usable: Bools  # units for which the metric is defined, whatever was labelled of them
    metric: Additive
    keeps: bool = False  # single rows

    @classmethod
    def of(
        cls,
        chunk: JudgedChunk,
        ranks: Ranks,
        metric: Additive,
        learned: Learned,
        *,
        exposed: Exposed | None = None,
        keeps: bool = False,
    ) -> Rows:
        """Rows that were drawn or logged as `exposed` says, or else as the evaluation does."""
        log, divisor = chunk.labels, np.ones(chunk.labels.n_units)
        usable = np.ones(log.n_units, dtype=bool)
        if not is_recall(metric):
            known = known_divisor(metric.denominator, metric.cutoff, ranks)
            usable = ~np.isnan(known)
            divisor = np.where(usable, known, 1.0)
        sample = Sample.of(chunk, ranks, learned, exposed=exposed, usable=usable)
        discount = expected_discount(metric, ranks) / divisor[log.unit]
        gain = metric.gains(log)
        return cls(log, gain, discount, total_discount(metric, ranks) / divisor, sample, usable, metric, keeps)

    def limited(self, clip: float) -> Rows:
        """With weights of a log cut at a clip."""
        weight = np.minimum(self.weight, clip)
        return replace(self, sample=replace(self.sample, weight=weight, clipped=self.weight - weight))

    @property
    def is_recall(self) -> bool:
        return is_recall(self.metric)

    @property
    def weight(self) -> Floats:
        return self.sample.weight

    @property
    def base(self) -> Floats:
        """What each row adds to the denominator of a ratio: a relevant item to Recall, its discount to a sum."""
        return self.gain if self.is_recall else self.discount

    def row_values(self, column: Column) -> Floats | None:
        """What each row adds to a column before it is weighted, None where the column is known of units."""
        gain, discount = self.gain, self.discount
        match column:
            case Column.GAIN:
                return gain * discount
            case Column.DISCOUNT:
                return discount
            case Column.RELEVANT:
                return gain
            case Column.MISSED:
                return gain * (1.0 - discount)
            case Column.BESIDE:
                return 1.0 - discount
            case _:
                return None

    def weighting(self) -> Weighting | None:
        """How unequal the weights are: of a log those of the rows that add to the denominator of a ratio."""
        sample = self.sample
        if sample.drawn:  # weights that only the units' numbers of rows make are judged by these
            return None if sample.inclusion is None else Weighting.of(self.weight)
        base = np.where(sample.defined[self.log.unit], self.base, 0.0)
        lost = 0.0 if sample.clipped is None else float((base * sample.clipped).sum())
        return Weighting.of(base * self.weight, cut=lost)

    def known(self, column: Column) -> Floats | None:
        """What is known of units; of a complete log also what no row tells: unlisted pairs are known negatives."""
        complete = self.log.complete and self.sample.drawn
        if column is Column.TOTAL or (complete and column is Column.DISCOUNT):
            return self.total_discount
        if column is Column.OTHERS or (complete and column is Column.BESIDE):
            return self.sample.n_candidates - self.total_discount
        return np.ones(self.log.n_units) if column is Column.UNITS else None

    def form_terms(
        self, form: Form, columns: Sequence[Column], reward: str, clips: Iterable[float], of: Limited
    ) -> list[Smooth]:
        """Terms of a form of these columns for each clip; the first is the gain."""
        logged = not self.sample.drawn
        return [(self.limited(clip) if logged else self).terms(form, columns) for clip in clips]

    def terms(self, form: Form, columns: Sequence[Column]) -> Smooth:
        """Terms of a form of these columns."""
        rows = {column: row for column in columns if (row := self.row_values(column)) is not None}
        sums = [
            per_unit(self.log, self.weight * rows[column]) if (known := self.known(column)) is None else known
            for column in columns
        ]
        return self.smooth(form, sums, list(rows.values()))

    def smooth(self, form: Form, sums: Sequence[Floats], row_values: Sequence[Floats] = ()) -> Smooth:
        """Terms of a form of these sums of units; `row_values` are what single rows add to the first of them."""
        sample = self.sample
        return smooth(
            form,
            sums,
            sample.defined,
            sample.clusters,
            exact=sample.exact,
            rows=sample.rows(self.log, row_values) if self.keeps and row_values else None,
            weighting=self.weighting(),
        )


FormOfSums = tuple[Form, tuple[Column, ...]]


class WeightedRows(RankedEstimator):
    """An estimator that is a form of weighted sums over rows, of labels or of ranked impressions."""

    __slots__ = ()

    exposed: ClassVar[Exposed | None] = None  # how its rows were drawn or logged; None: as the evaluation says
    sums: ClassVar[FormOfSums]  # the form of metrics that are sums

    def form(self, metric: Any) -> FormOfSums:
        """The form of the estimate, and the columns that it takes; the first is the gain."""
        return (Ratio(), (Column.GAIN, Column.RELEVANT)) if is_recall(metric) else self.sums

    def estimand(self, request: Request, unit: str = "user") -> str:
        if request.metric is None or isinstance(request.metric, Counted):
            normaliser: Normaliser = getattr(self, "normaliser", Normaliser.SESSION)
            return normaliser.estimand(request.reward, unit)
        return estimand(request.metric)

    def observed(self, units: ObservedUnits, request: Request) -> Rows | Exposures:
        if isinstance(units.view, Exposures):
            return units.view
        metric, keeps = additive(request.metric), units.keep_rows and self.info.design
        return Rows.of(units.chunk, units.ranks, metric, units.learned, exposed=self.exposed, keeps=keeps)

    def make(self, view: Any, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        metric = view.metric if isinstance(view, Rows) else self.metric
        terms: list[Smooth] = view.form_terms(*self.form(metric), reward, clips, limited_by(self))
        return terms

    def counted_columns(self) -> Sequence[Column]:
        return self.form(self.metric)[1]


def per_unit(log: Log, values: Floats) -> Floats:
    return sums_by(log.unit, values, n=log.n_units)


def total_discount(metric: Additive, ranks: Ranks, *, power: int = 1) -> Floats:
    """Σ w(r) over the ranks that a unit's list has: 1 ... min(K, candidates that are recommended). Or Σ w^power."""
    deepest = int(ranks.n_recommended.max(initial=0))
    deepest = deepest if metric.cutoff is None else min(deepest, metric.cutoff)
    running = np.concatenate([[0.0], np.cumsum(metric.rank_discount(np.arange(1.0, deepest + 1)) ** power)])
    return running[np.minimum(ranks.n_recommended, deepest).astype(np.int64)]


def propensity_of(log: Log, learned: Learned) -> Floats:
    """What was learned of exposure, or the propensity column of the log."""
    learner = learned.facts.get("propensity")
    if learner is None:
        return column_of(log, "propensity")
    propensity: Floats = learned[learner].at(log)
    if propensity.min(initial=1.0) < LEAST_CHANCE:
        raise RefusedError(
            f"{log.source}: the fitted propensities go down to {propensity.min():.3g}; expected no less than "
            f"{LEAST_CHANCE:g}, as no row stands for more than 1e40 rows. Use another model of propensities, or a "
            "smaller power."
        )
    return propensity


def check_clip(clip: float | None) -> None:
    if clip is not None and not (isinstance(clip, Real) and clip >= 1):
        raise InputError(f"clip {clip}; expected a number from 1 (the weight of what is always shown) to infinity.")


def _scored(ranks: Ranks, usable: Bools | None) -> Bools:
    return ranks.scored if usable is None else ranks.scored & usable


def _counted(log: Log) -> Floats:
    return np.bincount(log.unit, minlength=log.n_units).astype(np.float64)
