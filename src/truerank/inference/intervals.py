"""Intervals: how far the estimate may lie from what it estimates, and for whom.

Population (default): units are redrawn from the population they came from. Design: exactly these units, only the
choice of labelled items is redrawn. The two answer different questions; every result says which.

An interval takes the terms of several models and the pairs of them that are compared, all at once: a difference is over
the units that both define, and what is drawn is drawn once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import ClassVar, TypeVar

import numpy as np

from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.errors import InputError, RefusedError
from truerank.core.ids import Keys
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.core.sizes import check_size
from truerank.core.terms import Smooth, Terms
from truerank.core.threads import one_blas_thread
from truerank.core.validation import WHOLE, is_whole, shown
from truerank.core.wording import option
from truerank.inference.linearization import (
    Influences,
    Spread,
    difference_of,
    influences,
    rare_hits,
    spreads_of,
    spreads_of_pairs,
    unseen_variance,
)
from truerank.inference.moments import ROUNDING, Moments

MANY_PAIRS = 64  # of one set of units, from which they are taken at once
MOST_CLUSTERS = 2**15  # beyond which the arithmetic is what costs
MOST_REPLICATES = 1_000_000
WEIGHTS_AT_ONCE = 2**24
FEWEST_TOGETHER = 10  # rows of a unit from which a sample of fixed size is known to vary less than independent draws
FEWEST_ALIKE = 10  # units with a single labelled item that make a class of like activity
_POISSON = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(20)])

Name = TypeVar("Name")
Pairs = Sequence[tuple[Name, Name]]
Spreads = tuple[dict[Name, Spread], dict[tuple[Name, Name], Spread]]


class Interval:
    """A way to tell how sure values, and paired differences of two, are."""

    name: ClassVar[str] = "population"
    needs_rows: ClassVar[bool] = False  # single labelled rows must be kept
    refits: ClassVar[bool] = False  # takes account of models that were fitted to the same units

    def spreads(self, terms: Mapping[Name, Terms], pairs: Pairs[Name], *, level: float) -> Spreads[Name]:
        """The spread of each of the terms, and of the first minus the second of each pair."""
        raise NotImplementedError


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


@record
class Population(Interval):
    """For the population that the units were drawn from, by linearisation.

    With L the influence of a cluster and h its part of the denominator, Var = Σ L² / (1 - h) over the clusters that
    contribute; Student's t with degrees of freedom that fall as parts and residuals become unequal, and ends that
    follow the skewness of residuals (`inference.linearization`). A mean over G clusters with residuals of one size has
    the usual G / (G - 1) Σ L² and G - 1. Where clusters come from several sources of fixed size, variances are within
    these. Where a model was fitted to the same units, groups of clusters take the place of clusters (jackknife).

    >>> from truerank.core.clusters import Clusters
    >>> from truerank.core.terms import ratio
    >>> of_two = Clusters(np.arange(4), np.arange(4, dtype=np.uint64), stratum=np.array([0, 0, 1, 1]))
    >>> terms = ratio(np.array([0.0, 2.0, 10.0, 12.0]), np.ones(4), clusters=of_two)
    >>> around(Population(), terms, level=0.95).stderr
    0.7071067811865476
    """

    refits = True

    def spreads(self, terms: Mapping[Name, Terms], pairs: Pairs[Name], *, level: float) -> Spreads[Name]:
        alone = {name: influences(part) for name, part in terms.items()}
        packed = {name: np.packbits(part.defined).tobytes() for name, part in terms.items()} if pairs else {}
        groups: dict[frozenset[bytes], list[tuple[Name, Name]]] = {}
        for pair in pairs:
            groups.setdefault(frozenset(packed[name] for name in pair), []).append(pair)
        differences: dict[tuple[Name, Name], Spread] = {}
        for units, members in groups.items():
            parts = {name: terms[name] for name in chain.from_iterable(members)}
            effects = alone
            if len(units) > 1:
                both = terms[members[0][0]].defined & terms[members[0][1]].defined
                parts = {name: part.restrict(both) for name, part in parts.items()}
                effects = {name: influences(part) for name, part in parts.items()}
            differences |= _differences(parts, effects, members, level=level)
        values = {name: part.spread(level=level) for name, part in alone.items()}
        return values, {pair: differences[pair] for pair in pairs}


def _differences(
    terms: Mapping[Name, Terms], effects: Mapping[Name, Influences], pairs: Pairs[Name], *, level: float
) -> dict[tuple[Name, Name], Spread]:
    """The spreads of differences of terms of the same units: many at once where that pays, else one by one."""
    clusters = next(iter(terms.values())).clusters
    together: dict[tuple[Name, Name], Spread] = {}
    if clusters.stratum is None and len(pairs) >= MANY_PAIRS and 1 < len(clusters) <= MOST_CLUSTERS:
        sums = {
            name: sums
            for name, part in terms.items()
            if (sums := part.cluster_sums()) is not None and not math.isnan(effects[name].value)
        }
        batch = [
            (first, second)
            for first, second in pairs
            if first in sums and second in sums and unseen_variance(effects[first].hits, effects[second].hits) == 0
        ]
        if batch:
            together = spreads_of_pairs({name: effects[name] for name in sums}, sums, batch, level=level)
    return together | {
        (first, second): effects[first]
        .minus(effects[second], informative=terms[first].n_informative(terms[second]))
        .spread(level=level, difference=True)
        for first, second in pairs
        if (first, second) not in together
    }


# ----------------------------------------------------------------------------------------------------------- bootstrap


@record
class Bootstrap(Interval):
    """For the population that the units were drawn from, by redrawing clusters.

    Each cluster counts a Poisson(1) number of times, a function of seed, replicate and the cluster's id alone, so that
    neither order nor chunks matter. The standard error is the standard deviation over `replicates`; degrees of freedom
    and skewness are those of the clusters' influences, because with few or unequal clusters percentiles are too
    narrow. A difference redraws the same clusters for both models.

    >>> from truerank.core.terms import ratio
    >>> many = ratio(np.tile([0.0, 1.0], 50), np.ones(100))
    >>> found = around(Bootstrap(1000), many, level=0.95)
    >>> 0.35 < found.low < 0.45 and 0.55 < found.high < 0.65
    True
    """

    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if not is_whole(self.replicates) or not 2 <= self.replicates <= MOST_REPLICATES:
            samples = f"{self.replicates:,}" if is_whole(self.replicates) else shown(self.replicates)
            raise InputError(
                f"a bootstrap of {samples} samples; expected 2 to {MOST_REPLICATES:,}, and 1,000 is enough."
            )
        if not WHOLE.fits(self.seed):
            raise InputError(f"a bootstrap with seed {shown(self.seed)}; expected a whole number.")

    def spreads(self, terms: Mapping[Name, Terms], pairs: Pairs[Name], *, level: float) -> Spreads[Name]:
        shared = {pair: common(terms[pair[0]], terms[pair[1]]) for pair in pairs}
        parts = {id(part): part for part in chain(terms.values(), *shared.values())}
        n_clusters = len(next(iter(parts.values())).clusters) if parts else 0
        check_size(
            f"a bootstrap of {self.replicates:,} samples of {n_clusters:,} clusters for {len(terms):,} values",
            memory=8.0 * self.replicates * len(parts),
            seconds=1e-9 * self.replicates * n_clusters,
            instead="Take fewer samples: 1,000 are enough.",
        )
        redrawn = dict(zip(parts, self._redrawn(list(parts.values())), strict=True))
        return (
            {
                name: self._spread(influences(part), redrawn[id(part)], level=level, difference=False)
                for name, part in terms.items()
            },
            {
                pair: self._spread(difference_of(a, b), redrawn[id(a)] - redrawn[id(b)], level=level, difference=True)
                for pair, (a, b) in shared.items()
            },
        )

    def _redrawn(self, terms: Sequence[Terms]) -> list[Floats]:
        """The value of each of the terms, which have the same clusters, in each replicate."""
        key = terms[0].clusters.key if terms else np.zeros(0, dtype=np.uint64)
        step = max(1, min(100, WEIGHTS_AT_ONCE // max(len(key), 1)))
        values: list[list[Floats]] = []
        for start in range(0, self.replicates, step):
            numbers = np.arange(start, min(start + step, self.replicates), dtype=np.uint64)
            weights = weights_of(key, numbers, seed=self.seed)
            with one_blas_thread():
                values.append([part.values(weights) for part in terms])
        return [np.concatenate(parts) for parts in zip(*values, strict=True)]

    @staticmethod
    def _spread(effects: Influences, redrawn: Floats, *, level: float, difference: bool) -> Spread:
        defined = redrawn[~np.isnan(redrawn)]
        stderr = float(np.std(defined, ddof=1)) if len(defined) >= 2 else 0.0
        if stderr > 0:
            return replace(effects, stratum=None).spread(level=level, difference=difference, stderr=stderr)
        if effects.reach > 0:
            return effects.spread(level=level)
        return Spread.unknown(effects.value, informative=effects.informative)


def weights_of(key: Keys, replicates: Keys, *, seed: int, purpose: str = "bootstrap") -> Floats:
    """How often each cluster counts in each replicate, [replicates x clusters].

    >>> drawn = weights_of(np.arange(2000, dtype=np.uint64), np.arange(5, dtype=np.uint64), seed=1)
    >>> drawn.shape, bool(abs(drawn.mean() - 1) < 0.05), bool(abs(drawn.var() - 1) < 0.1)
    ((5, 2000), True, True)
    """
    uniform = cell_uniforms(seed, purpose, key[None, :], replicates[:, None])
    return np.searchsorted(_POISSON, uniform, side="right").astype(np.float64)


# -------------------------------------------------------------------------------------------------------------- design


@record
class Design(Interval):
    """For exactly these units: only which items were labelled is redrawn (statistics of finite populations).

    Row variable z = num - R den; within a unit Var = N² (1 - N-bar / N) s² / N-bar with s² the variance of z over all
    labelled rows, zeros included; under Bernoulli exposure Σ z² (1 - rate) / rate². A difference of two models takes
    z_A - z_B row by row. Units with a single labelled item are taken together with units of like activity (collapsed
    strata), which is conservative.
    Degrees of freedom and skewness are those of the rows.
    """

    name = "design"
    needs_rows = True

    def spreads(self, terms: Mapping[Name, Terms], pairs: Pairs[Name], *, level: float) -> Spreads[Name]:
        return (
            {name: self._spread([part], level=level) for name, part in terms.items()},
            {pair: self._spread(common(terms[pair[0]], terms[pair[1]]), level=level) for pair in pairs},
        )

    @staticmethod
    def _spread(terms: Sequence[Terms], *, level: float) -> Spread:
        parts, difference = [part.whole for part in terms], len(terms) > 1
        values = [part.value() for part in terms]
        value = values[0] - values[1] if difference else values[0]
        informative = terms[0].n_informative(*terms[1:])
        unknown = Spread.unknown(value, informative=informative)
        if all(part.exact for part in parts):
            # no label is missing, so for exactly these units nothing is left to chance: no width, no sampling error
            p = float(value == 0) if difference and not math.isnan(value) else math.nan
            return Spread(value, 0.0 * value, value, value, p, informative)
        if math.isnan(value):
            return unknown
        row = residuals(parts[0]) - residuals(parts[1]) if difference else residuals(parts[0])
        moments = design_moments(parts[0], row)
        scale = sum(map(abs, values)) / moments.unit
        if moments.n < 2 or not moments.highest_effect > ROUNDING * scale / moments.n:
            return unknown
        hits = [rare_hits(part) for part in parts]
        if difference:
            unseen = unseen_variance(hits[0], hits[1])
            moments = moments.with_unseen(unseen) if unseen else moments
        elif hits[0] is not None and hits[0].allowed:
            moments = moments.with_hit(hits[0].allowed)
        if math.isnan(moments.variance):
            return unknown
        (spread,) = spreads_of(
            value, moments.stderr, moments, level=level, difference=difference, informative=informative
        )
        return spread


def residuals(terms: Smooth) -> Floats:
    """What each labelled row adds to the error of the value, before expansion."""
    if terms.rows is None:
        raise RefusedError(
            "an interval for exactly these users needs the single labelled rows, which this estimator does not give. "
            f"Use {option('interval population', 'interval=Population()')}, or another estimator."
        )
    rows, totals = terms.rows.sums, terms.totals()
    if totals[1] == 0:
        return np.full(len(rows), math.nan)
    # a row has its part of what was sampled; what is known of a whole unit has no row
    return terms.form.influence(np.pad(rows, ((0, 0), (0, len(totals) - rows.shape[1]))), totals)


def design_moments(terms: Smooth, residual: Floats) -> Moments:
    """What an interval needs of the labelled rows; its `variance` is unbiased for sums.

    A labelled row adds l = (N / N-bar) √((1 - N-bar / N) N-bar / (N-bar - 1)) (z - mean of z in its unit), so that Σ l²
    is Σ_u N² (1 - N-bar / N) s² / N-bar; under Bernoulli exposure l = z √(1 - rate) / rate. Rows that are not kept have
    z = 0. Units with a single labelled row are taken together with units of like activity, around their mean.
    """
    rows, n_units = terms.rows, len(terms.defined)
    assert rows is not None
    used = terms.defined[rows.unit]
    unit, z = rows.unit[used], residual[used]
    n, size = rows.n_judged, rows.n_candidates
    if rows.chance is not None:
        return _of_rows(_unequal(unit, z, rows.chance[used], n), len(z))
    if rows.rate is not None:
        return _of_rows(z * (math.sqrt(1 - rows.rate) / rows.rate), int(n[terms.defined].sum()))
    several = terms.defined & (n > 1)
    single = np.flatnonzero(terms.defined & (n == 1) & (size > 1))
    if len(single) == 1:
        raise RefusedError(
            "one user has a single labelled item, which tells nothing about chance within that user. "
            f"Use {option('interval population', 'interval=Population()')}, or leave that user out."
        )
    share = np.divide(n, size, out=np.ones(n_units), where=several)
    factor = np.zeros(n_units)
    factor[several] = np.sqrt((1 - share[several]) * n[several] / (n[several] - 1)) / share[several]
    total = sums_by(unit, z, n=n_units)
    mean = np.divide(total, n, out=np.zeros(n_units), where=several)
    # as many rows as were labelled without a kept one, each 0 - mean
    missing = np.where(several, n - np.bincount(unit, minlength=n_units), 0.0).astype(np.int64)
    effects = [factor[unit] * (z - mean[unit]), np.repeat(-factor * mean, missing)]
    if len(single):
        effects.append(_collapsed(size[single], size[single] * total[single]))
    return _of_rows(np.concatenate(effects), int(n[several].sum()) + len(single))


def _of_rows(effect: Floats, n: int) -> Moments:
    """The moments of n independent rows."""
    return replace(Moments.sum(effect, np.zeros_like(effect)), n=n)


def _unequal(unit: Ints, z: Floats, probability: Floats, n: Floats) -> Floats:
    """What rows with unequal probabilities π add to the error: l = √c (z / π - A), c = (1 - π) n / (n - 1).

    A is the mean of z / π weighted by c (Hájek 1964, Deville 1999). Of units with fewer than 10 rows l is
    √(1 - π) z / π, as of independent draws, which is rather too large.
    """
    expanded, open_ = z / probability, np.maximum(1 - probability, 0.0)
    total, weighted = (sums_by(unit, values, n=len(n)) for values in (open_, open_ * expanded))
    mean = np.divide(weighted, total, out=np.zeros(len(n)), where=(total > 0) & (n >= FEWEST_TOGETHER))
    factor = np.where(n >= FEWEST_TOGETHER, n / np.maximum(n - 1, 1), 1.0)
    return np.asarray(np.sqrt(open_ * factor[unit]) * (expanded - mean[unit]))


def _collapsed(size: Floats, expanded: Floats) -> Floats:
    """Deviations of expanded totals from the mean of units with pools of like size, scaled for the mean's own freedom.

    Collapsed strata: never too small on average, whatever the pools. Active users have small pools, so pools of like
    size are users of like activity; classes of less than ten units join the class before.
    """
    order = np.lexsort((expanded, size))  # by value, so that the order of units cannot matter
    size, expanded = size[order], expanded[order]
    edges = [0]
    for start in np.flatnonzero(np.diff(size)) + 1:
        if start - edges[-1] >= FEWEST_ALIKE and len(size) - start >= FEWEST_ALIKE:
            edges.append(int(start))
    count = np.diff([*edges, len(size)])
    mean = np.add.reduceat(expanded, edges) / count
    return np.asarray((expanded - np.repeat(mean, count)) * np.repeat(np.sqrt(count / (count - 1)), count))
