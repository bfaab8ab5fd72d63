"""Intervals: how far the estimate may lie from what it estimates, and for whom.

Population (default): units are redrawn from the population they came from. Design: exactly these units, only the
choice of judged items is redrawn. The two answer different questions; every result says which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import stdtr, stdtrit

from truerank.core.arrays import Floats, exact_sum, sums_by
from truerank.core.chance import generator
from truerank.core.errors import InputError, RefusedError
from truerank.core.rows import SampledRows
from truerank.core.terms import Terms
from truerank.core.threads import one_blas_thread

REPLICATES_AT_ONCE = 100
MOST_REPLICATES = 1_000_000


@dataclass(frozen=True, slots=True)
class Spread:
    """A value with its standard error and interval; `p` tests that the value is 0."""

    value: float
    stderr: float
    low: float
    high: float
    p: float


class Interval(Protocol):
    """A way to say how sure a value, or a paired difference of two, is."""

    name: ClassVar[str]
    needs_rows: ClassVar[bool]

    def around(self, terms: Terms, *, level: float) -> Spread: ...
    def between(self, a: Terms, b: Terms, *, level: float) -> Spread: ...


@dataclass(frozen=True, slots=True)
class Population:
    """For the population that the units were drawn from, by linearisation of the ratio.

    Var = G / (G - 1) Σ_g (Σ_{u in g} z_u)², z the influence of a unit, g its cluster; Student's t with G - 1 degrees
    of freedom. Clusters that are undefined do not count in G.

    >>> mean_of_two = Terms.ratio(np.array([0.0, 1.0]), np.ones(2))
    >>> Population().around(mean_of_two, level=0.95).stderr
    0.5
    """

    name: ClassVar[str] = "population"
    needs_rows: ClassVar[bool] = False

    def around(self, terms: Terms, *, level: float) -> Spread:
        return self._spread(terms.value(), terms.influence(), terms, level=level)

    def between(self, a: Terms, b: Terms, *, level: float) -> Spread:
        a, b = common(a, b)
        return self._spread(a.value() - b.value(), a.influence() - b.influence(), a, level=level)

    def _spread(self, value: float, influence: Floats, terms: Terms, *, level: float) -> Spread:
        n = _n_clusters(terms)
        if n < 2:
            return Spread(value, math.nan, math.nan, math.nan, math.nan)
        effect = sums_by(terms.cluster, influence, n=int(terms.cluster.max()) + 1)
        stderr = math.sqrt(exact_sum(effect**2) * n / (n - 1))
        return cautious(normal(value, stderr, df=n - 1, level=level), n)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """For the population that the units were drawn from, by redrawing clusters with replacement.

    Percentile interval over `replicates`; a difference redraws the same clusters for both models. p = twice the
    smaller share of replicates on one side of 0, counting the data itself. Weights that were fitted are fitted again in
    every replicate; the interval is then value ± t x the standard deviation of replicates.

    >>> mean_of_two = Terms.ratio(np.array([0.0, 1.0]), np.ones(2))
    >>> found = Bootstrap(1000).around(mean_of_two, level=0.95)
    >>> found.low, found.high
    (0.0, 1.0)
    """

    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.replicates <= MOST_REPLICATES:
            raise InputError(
                f"a bootstrap of {self.replicates:,} samples; expected 2 to {MOST_REPLICATES:,}, and 1,000 is enough."
            )

    name: ClassVar[str] = "population"
    needs_rows: ClassVar[bool] = False

    def around(self, terms: Terms, *, level: float) -> Spread:
        return self._spread(terms.value(), self._redrawn(terms), terms, level=level)

    def between(self, a: Terms, b: Terms, *, level: float) -> Spread:
        a, b = common(a, b)
        return self._spread(a.value() - b.value(), self._redrawn(a) - self._redrawn(b), a, level=level)

    def _redrawn(self, terms: Terms) -> Floats:
        """The value in each replicate; clusters without a defined unit are drawn where weights are fitted to them."""
        drawn = terms.defined if terms.reweighted is None else np.ones(len(terms.num), dtype=bool)
        used, at = np.unique(terms.cluster[drawn], return_inverse=True)
        rng = generator(self.seed, "bootstrap")
        parts = []
        for start in range(0, self.replicates, REPLICATES_AT_ONCE):
            n = min(REPLICATES_AT_ONCE, self.replicates - start)
            weights = np.zeros((n, len(terms.num)))
            weights[:, drawn] = _counts(rng, n, len(used))[:, at]
            with one_blas_thread():
                parts.append(terms.values(weights))
        return np.concatenate(parts)

    def _spread(self, value: float, redrawn: Floats, terms: Terms, *, level: float) -> Spread:
        known = redrawn[~np.isnan(redrawn)]
        if len(known) < 2 or _n_clusters(terms) < 2:
            return Spread(value, math.nan, math.nan, math.nan, math.nan)
        if terms.reweighted is not None:
            # weights fitted to redrawn users lean further than the data's own did, and quantiles would lean with them:
            # what is redrawn gives the spread, the data give the place
            spread = normal(value, float(np.std(known, ddof=1)), df=_n_clusters(terms) - 1, level=level)
            return cautious(spread, _n_clusters(terms))
        low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
        one_side = min(np.count_nonzero(known <= 0), np.count_nonzero(known >= 0))
        p = float(min(1.0, 2 * (one_side + 1) / (len(known) + 1)))
        spread = Spread(value, float(np.std(known, ddof=1)), float(low), float(high), p)
        return cautious(spread, _n_clusters(terms))


def cautious(spread: Spread, n: int) -> Spread:
    """Where all n units differ by the same amount there is no spread to test with: a sign test is all there is."""
    if spread.stderr > 0 or math.isnan(spread.stderr):
        return spread
    return replace(spread, p=1.0 if spread.value == 0 else min(1.0, 2.0 ** (1 - n)))


def _n_clusters(terms: Terms) -> int:
    return int(np.count_nonzero(np.bincount(terms.cluster[terms.defined])))


def _counts(rng: np.random.Generator, n: int, size: int) -> Floats:
    """How often each of `size` clusters is drawn in each of n replicates."""
    drawn = rng.integers(0, size, size=(n, size)) + size * np.arange(n)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * size).reshape(n, size).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Design:
    """For exactly these units: only which items were judged is redrawn (statistics of finite populations).

    Row variable z = num - R den; within a unit Var = N² (1 - N-bar / N) s² / N-bar with s² the variance of z over all
    judged rows, zeros included; under Bernoulli exposure Σ z² (1 - rate) / rate². A difference of two models takes
    z_A - z_B row by row. Units with a single judged item are taken together (collapsed strata), which is conservative.
    """

    name: ClassVar[str] = "design"
    needs_rows: ClassVar[bool] = True

    def around(self, terms: Terms, *, level: float) -> Spread:
        if terms.exact:
            return _known(terms.value())
        return normal(terms.value(), _design_error(terms, _residual(terms)), df=math.inf, level=level)

    def between(self, a: Terms, b: Terms, *, level: float) -> Spread:
        a, b = common(a, b)
        value = a.value() - b.value()
        if a.exact and b.exact:
            return _known(value)
        return normal(value, _design_error(a, _residual(a) - _residual(b)), df=math.inf, level=level)


def _known(value: float) -> Spread:
    """No label is missing, so for exactly these units nothing is left to chance: no width, and no test to make."""
    return Spread(value, math.nan if math.isnan(value) else 0.0, value, value, math.nan)


def _rows(terms: Terms) -> SampledRows:
    if terms.rows is None:
        raise RefusedError(
            "a design interval (exactly these users) is known for pooled, horvitz-thompson and hajek, and for full "
            "labels. Use --interval population, or another estimator."
        )
    return terms.rows


def _residual(terms: Terms) -> Floats:
    """What each judged row adds to the error of the value, before expansion."""
    rows = _rows(terms)
    den = exact_sum(terms.den)
    if den == 0:
        return np.full(len(rows.num), math.nan)
    # where the denominator is the known number of units, rows have den = 0 and z = num
    ratio = exact_sum(terms.num) / den
    return (rows.num - ratio * rows.den) * (terms.mean_total() / den)


def _design_error(terms: Terms, z: Floats) -> float:
    rows = _rows(terms)
    n_units = len(terms.num)
    used = terms.defined[rows.unit]
    unit, z = rows.unit[used], z[used]
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


def common(a: Terms, b: Terms) -> tuple[Terms, Terms]:
    """Both terms on the units that both define: a paired difference is over the same units."""
    both = a.defined & b.defined
    return (a, b) if (a.defined == b.defined).all() else (a.restrict(both), b.restrict(both))


def normal(value: float, stderr: float, *, df: float, level: float) -> Spread:
    """value ± t stderr, and the two-sided p of value = 0.

    >>> normal(1.0, 1.0, df=math.inf, level=0.95).low.__round__(4)
    -0.96
    """
    if math.isnan(stderr) or math.isnan(value):
        return Spread(value, math.nan, math.nan, math.nan, math.nan)
    half = float(stdtrit(df, (1 + level) / 2)) * stderr
    if stderr == 0:
        return Spread(value, 0.0, value, value, 1.0 if value == 0 else 0.0)
    return Spread(value, stderr, value - half, value + half, 2 * float(stdtr(df, -abs(value) / stderr)))
