"""Intervals: how far the estimate may lie from what it estimates, and for whom.

Population (default): units are redrawn from the population they came from. Design: exactly these units, only the
choice of judged items is redrawn. The two answer different questions; every result says which.

An interval takes the terms of several models and the pairs of them that are compared, all at once: a difference is over
the units that both define, and what is drawn is drawn once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from truerank.core.arrays import Floats, Ints, exact_sum, sum_of_squares, sums_by
from truerank.core.errors import InputError, RefusedError
from truerank.core.rows import SampledRows
from truerank.core.terms import Smooth, Terms
from truerank.uncertainty.resampling import MOST_REPLICATES, replicates_of


def residuals(terms: Smooth) -> Floats:
    """What each judged row adds to the error of the value, before expansion."""
    rows, totals = _rows(terms), terms.totals()
    if totals[1] == 0:
        return np.full(len(rows.num), math.nan)
    # a row has its part of numerator and denominator; a known total is known for the whole unit, not by row
    sums = np.zeros((len(rows.num), len(terms.form.columns)))
    sums[:, 0], sums[:, 1] = rows.num, rows.den
    return terms.form.influence(sums, totals)


def design_error(terms: Smooth, residual: Floats) -> float:
    """√ Σ_u N² (1 - N-bar / N) s² / N-bar, s² the variance of the residuals over the judged rows of a unit."""
    rows = _rows(terms)
    n_units = len(terms.defined)
    used = terms.defined[rows.unit]
    unit, z = rows.unit[used], residual[used]
    square = sums_by(unit, z**2, n=n_units)
    if rows.rate is not None:
        return math.sqrt(exact_sum(square) * (1 - rows.rate)) / rows.rate
    total = sums_by(unit, z, n=n_units)
    n, size = rows.n_judged, rows.n_candidates
    several = terms.defined & (n > 1)
    variance = np.zeros(n_units)
    variance[several] = np.maximum(square[several] - total[several] ** 2 / n[several], 0) / (n[several] - 1)
    alone = np.flatnonzero(terms.defined & (n == 1) & (size > 1))
    if len(alone) == 1:
        raise RefusedError(
            "one user has a single judged item, which tells nothing about chance within that user. "
            "Use --interval population, or leave that user out."
        )
    used_units = terms.defined & (n > 0)
    share = np.divide(n, size, out=np.ones(n_units), where=used_units)
    spread = np.divide(size**2 * (1 - share) * variance, n, out=np.zeros(n_units), where=used_units)
    if len(alone):
        # collapsed strata on expanded totals: never too small on average, whatever the sizes of the pools
        expanded = size[alone] * total[alone]
        spread[alone] = exact_sum((expanded - exact_sum(expanded) / len(alone)) ** 2) / (len(alone) - 1)
    return math.sqrt(exact_sum(spread))


def _rows(terms: Smooth) -> SampledRows:
    if terms.rows is None:
        raise RefusedError(
            "an interval for exactly these users needs the single judged rows, which this estimator does not give. "
            "Use --interval population, or another estimator."
        )
    return terms.rows


Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Spread:
    """A value with its standard error and interval; `p` tests that the value is 0."""

    value: float
    stderr: float
    low: float
    high: float
    p: float

    @classmethod
    def unknown(cls, value: float) -> Spread:
        """A value of which nothing tells how far it may be off."""
        return cls(value, math.nan, math.nan, math.nan, math.nan)


class Interval(Protocol):
    """A way to say how sure values, and paired differences of two, are."""

    name: ClassVar[str]
    needs_rows: ClassVar[bool]  # single judged rows must be kept
    refits: ClassVar[bool]  # takes account of models that were fitted to the same units

    def spreads(
        self, terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]], *, level: float
    ) -> tuple[dict[Name, Spread], dict[tuple[Name, Name], Spread]]:
        """The spread of each of the terms, and of the first minus the second of each pair."""
        ...


def around(interval: Interval, terms: Terms, *, level: float) -> Spread:
    """The spread of one value.

    >>> from truerank.core.terms import ratio
    >>> mean_of_two = ratio(np.array([0.0, 1.0]), np.ones(2))
    >>> around(Population(), mean_of_two, level=0.95).stderr
    0.5
    """
    return interval.spreads({"": terms}, [], level=level)[0][""]


def between(interval: Interval, first: Terms, second: Terms, *, level: float) -> Spread:
    """The spread of the difference of two values of the same units."""
    return interval.spreads({0: first, 1: second}, [(0, 1)], level=level)[1][0, 1]


def common(first: Terms, second: Terms) -> tuple[Terms, Terms]:
    """Both terms on the units that both define: a paired difference is over the same units."""
    if (first.defined == second.defined).all():
        return first, second
    both = first.defined & second.defined
    return first.restrict(both), second.restrict(both)


# ---------------------------------------------------------------------------------------------------------- population


@dataclass(frozen=True, slots=True)
class Linear:
    """A value with what each cluster adds to its error, of which `n` count; strata are sources of fixed size."""

    value: float
    effect: Floats
    n: int
    stratum: Ints | None
    used: Ints | None

    @classmethod
    def of(cls, terms: Terms) -> Linear:
        clusters = terms.clusters
        strata = clusters.stratum if isinstance(terms, Smooth) else None
        used = None if strata is None else np.flatnonzero(clusters.has(terms.defined))
        return cls(terms.value(), terms.influence(), terms.n_independent(), strata, used)

    def minus(self, other: Linear) -> Linear:
        return replace(self, value=self.value - other.value, effect=self.effect - other.effect)

    def spread(self, *, level: float) -> Spread:
        if self.n < 2 or math.isnan(self.value):
            return Spread.unknown(self.value)
        if self.stratum is not None:
            return self._within_strata(level=level)
        stderr = math.sqrt(sum_of_squares(self.effect) * self.n / (self.n - 1))
        return cautious(normal(self.value, stderr, df=self.n - 1, level=level), self.n)

    def _within_strata(self, *, level: float) -> Spread:
        """How sources of fixed size differ in their means is no chance: variance within strata."""
        if self.stratum is None or self.used is None:
            return Spread.unknown(self.value)
        variance, df = 0.0, 0
        stratum, effect = self.stratum[self.used], self.effect[self.used]
        for number in np.unique(stratum):
            own = effect[stratum == number]
            if len(own) < 2:
                return Spread.unknown(self.value)
            deviation = own - exact_sum(own) / len(own)
            variance += sum_of_squares(deviation) * len(own) / (len(own) - 1)
            df += len(own) - 1
        return normal(self.value, math.sqrt(variance), df=df, level=level)


@dataclass(frozen=True, slots=True)
class Population:
    """For the population that the units were drawn from, by linearisation.

    Var = G / (G - 1) Σ_g z_g², z_g the influence of a cluster; Student's t with G - 1 degrees of freedom. Clusters that
    are undefined do not count in G. Where clusters come from several sources of fixed size, variances are within these.
    Where a model was fitted to the same units, groups of clusters take the place of clusters (jackknife).

    >>> from truerank.core.terms import Clusters, ratio
    >>> of_two = Clusters(np.arange(4), np.arange(4, dtype=np.uint64), stratum=np.array([0, 0, 1, 1]))
    >>> terms = ratio(np.array([0.0, 2.0, 10.0, 12.0]), np.ones(4), clusters=of_two)
    >>> around(Population(), terms, level=0.95).stderr
    0.7071067811865476
    """

    name: ClassVar[str] = "population"
    needs_rows: ClassVar[bool] = False
    refits: ClassVar[bool] = True

    def spreads(
        self, terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]], *, level: float
    ) -> tuple[dict[Name, Spread], dict[tuple[Name, Name], Spread]]:
        alone = {name: Linear.of(part) for name, part in terms.items()}

        def difference(first: Name, second: Name) -> Linear:
            both = common(terms[first], terms[second])
            if both == (terms[first], terms[second]):
                return alone[first].minus(alone[second])
            return Linear.of(both[0]).minus(Linear.of(both[1]))

        return (
            {name: linear.spread(level=level) for name, linear in alone.items()},
            {pair: difference(*pair).spread(level=level) for pair in pairs},
        )


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """For the population that the units were drawn from, by redrawing clusters.

    Each cluster counts a Poisson(1) number of times, a function of seed, replicate and the cluster's id alone, so that
    neither order nor chunks matter. Percentile interval over `replicates`; a difference redraws the same clusters for
    both models. p = twice the smaller share of replicates on one side of 0, counting the data itself.

    >>> from truerank.core.terms import ratio
    >>> many = ratio(np.tile([0.0, 1.0], 50), np.ones(100))
    >>> found = around(Bootstrap(1000), many, level=0.95)
    >>> 0.35 < found.low < 0.45 and 0.55 < found.high < 0.65
    True
    """

    replicates: int = 1000
    seed: int = 0

    name: ClassVar[str] = "population"
    needs_rows: ClassVar[bool] = False
    refits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 2 <= self.replicates <= MOST_REPLICATES:
            raise InputError(
                f"a bootstrap of {self.replicates:,} samples; expected 2 to {MOST_REPLICATES:,}, and 1,000 is enough."
            )

    def spreads(
        self, terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]], *, level: float
    ) -> tuple[dict[Name, Spread], dict[tuple[Name, Name], Spread]]:
        shared = {pair: common(terms[pair[0]], terms[pair[1]]) for pair in pairs}
        every = (*terms.values(), *(one for two in shared.values() for one in two))
        wanted = list({id(part): part for part in every}.values())
        drawn = replicates_of(wanted, n=self.replicates, seed=self.seed)
        by_terms = {id(part): values for part, values in zip(wanted, drawn, strict=True)}
        return (
            {
                name: self._spread(part.value(), by_terms[id(part)], part.n_independent(), level=level)
                for name, part in terms.items()
            },
            {
                pair: self._spread(
                    a.value() - b.value(), by_terms[id(a)] - by_terms[id(b)], a.n_independent(), level=level
                )
                for pair, (a, b) in shared.items()
            },
        )

    @staticmethod
    def _spread(value: float, redrawn: Floats, n: int, *, level: float) -> Spread:
        known = redrawn[~np.isnan(redrawn)]
        if len(known) < 2 or n < 2:
            return Spread.unknown(value)
        low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
        one_side = min(np.count_nonzero(known <= 0), np.count_nonzero(known >= 0))
        p = float(min(1.0, 2 * (one_side + 1) / (len(known) + 1)))
        return cautious(Spread(value, float(np.std(known, ddof=1)), float(low), float(high), p), n)


def cautious(spread: Spread, n: int) -> Spread:
    """Where all n units differ by the same amount there is no spread to test with: a sign test is all there is."""
    if spread.stderr > 0 or math.isnan(spread.stderr):
        return spread
    return replace(spread, p=1.0 if spread.value == 0 else min(1.0, 2.0 ** (1 - n)))


# -------------------------------------------------------------------------------------------------------------- design


@dataclass(frozen=True, slots=True)
class Design:
    """For exactly these units: only which items were judged is redrawn (statistics of finite populations).

    Row variable z = num - R den; within a unit Var = N² (1 - N-bar / N) s² / N-bar with s² the variance of z over all
    judged rows, zeros included; under Bernoulli exposure Σ z² (1 - rate) / rate². A difference of two models takes
    z_A - z_B row by row. Units with a single judged item are taken together (collapsed strata), which is conservative.
    """

    name: ClassVar[str] = "design"
    needs_rows: ClassVar[bool] = True
    refits: ClassVar[bool] = False

    def spreads(
        self, terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]], *, level: float
    ) -> tuple[dict[Name, Spread], dict[tuple[Name, Name], Spread]]:
        return (
            {name: self._spread(_sampled(part), None, level=level) for name, part in terms.items()},
            {
                pair: self._spread(*(_sampled(part) for part in common(terms[pair[0]], terms[pair[1]])), level=level)
                for pair in pairs
            },
        )

    @staticmethod
    def _spread(first: Smooth, second: Smooth | None, *, level: float) -> Spread:
        value = first.value() - (0.0 if second is None else second.value())
        if first.exact and (second is None or second.exact):
            # no label is missing, so for exactly these units nothing is left to chance: no width, no test to make
            return Spread(value, math.nan if math.isnan(value) else 0.0, value, value, math.nan)
        row = residuals(first) if second is None else residuals(first) - residuals(second)
        return normal(value, design_error(first, row), df=math.inf, level=level)


def _sampled(terms: Terms) -> Smooth:
    if not isinstance(terms, Smooth):
        raise InputError("an interval for exactly these units needs the rows that were judged, and no fitted weights.")
    return terms


def normal(value: float, stderr: float, *, df: float, level: float) -> Spread:
    """value ± t stderr, and the two-sided p of value = 0.

    >>> normal(1.0, 1.0, df=math.inf, level=0.95).low.__round__(4)
    -0.96
    """
    if math.isnan(stderr) or math.isnan(value):
        return Spread.unknown(value)
    from scipy.special import stdtr, stdtrit  # loads slowly, and what is refused needs none of it

    half = float(stdtrit(df, (1 + level) / 2)) * stderr
    if stderr == 0:
        return Spread(value, 0.0, value, value, 1.0 if value == 0 else 0.0)
    return Spread(value, stderr, value - half, value + half, 2 * float(stdtr(df, -abs(value) / stderr)))
