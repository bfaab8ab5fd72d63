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

from truerank.core.arrays import Floats, Ints, exact_sum, largest_of, sums_by
from truerank.core.calls import WHOLE, is_whole, shown
from truerank.core.errors import InputError, RefusedError
from truerank.core.refits import Refitted
from truerank.core.rows import SampledRows
from truerank.core.sizes import check_size
from truerank.core.terms import Smooth, Terms
from truerank.core.wording import option
from truerank.inference.moments import ROUNDING, Moments, unit_of
from truerank.inference.pairs import spreads_of_pairs, worth_a_batch
from truerank.inference.rare_hits import unseen_variance, with_rare_hits
from truerank.inference.resampling import MOST_REPLICATES, replicates_of
from truerank.inference.spreads import Influences, Spread, influences, interval, spread_of

FEWEST_TOGETHER = 10  # rows of a unit from which a sample of fixed size is known to vary less than independent draws
FEWEST_ALIKE = 10  # units with a single judged item that make a class of like activity


def residuals(terms: Smooth) -> Floats:
    """What each judged row adds to the error of the value, before expansion."""
    rows, totals = _rows(terms), terms.totals()
    if totals[1] == 0:
        return np.full(len(rows.sums), math.nan)
    # a row has its part of what was sampled; what is known of a whole unit has no row
    sums = np.zeros((len(rows.sums), len(terms.form.columns)))
    sums[:, : rows.sums.shape[1]] = rows.sums
    return terms.form.influence(sums, totals)


def design_moments(terms: Smooth, residual: Floats) -> Moments:
    """What an interval needs of the judged rows; its `variance` is unbiased for sums.

    A judged row adds l = (N / N-bar) √((1 - N-bar / N) N-bar / (N-bar - 1)) (z - mean of z in its unit), so that Σ l²
    is Σ_u N² (1 - N-bar / N) s² / N-bar; under Bernoulli exposure l = z √(1 - rate) / rate. Rows that are not kept have
    z = 0. Units with a single judged row are taken together with units of like activity, around their mean.
    """
    rows = _rows(terms)
    n_units = len(terms.defined)
    used = terms.defined[rows.unit]
    unit, z = rows.unit[used], residual[used]
    n, size = rows.n_judged, rows.n_candidates
    kept = np.bincount(unit, minlength=n_units)
    if rows.chance is not None:
        return _design_sums([_unequal(unit, z, rows.chance[used], n)], [], n=len(z))
    if rows.rate is not None:
        count = int(n[terms.defined].sum())
        return _design_sums([z * (math.sqrt(1 - rows.rate) / rows.rate)], [], n=count)
    several = terms.defined & (n > 1)
    alone = np.flatnonzero(terms.defined & (n == 1) & (size > 1))
    if len(alone) == 1:
        raise RefusedError(
            "one user has a single judged item, which tells nothing about chance within that user. "
            f"Use {option('interval population', 'interval=Population()')}, or leave that user out."
        )
    share = np.divide(n, size, out=np.ones(n_units), where=several)
    factor = np.zeros(n_units)
    factor[several] = np.sqrt((1 - share[several]) * n[several] / (n[several] - 1)) / share[several]
    total = sums_by(unit, z, n=n_units)
    mean = np.divide(total, n, out=np.zeros(n_units), where=several)
    parts = [factor[unit] * (z - mean[unit])]
    # rows that are not kept: as many as judged without a kept one, each 0 - mean
    missing = [(-factor * mean, np.where(several, n - kept, 0.0))]
    if len(alone):
        parts.append(_collapsed(size[alone], size[alone] * total[alone]))
    count = int(n[several].sum()) + len(alone)
    return _design_sums(parts, missing, n=count)


def _unequal(unit: Ints, z: Floats, chance: Floats, n: Floats) -> Floats:
    """What rows with unequal chances π add to the error: l = √c (z / π - A), c = (1 - π) n / (n - 1).

    A is the mean of z / π weighted by c (Hájek 1964, Deville 1999). Of units with fewer than 10 rows l is
    √(1 - π) z / π, as of independent draws, which is rather too large.
    """
    expanded, open_ = z / chance, np.maximum(1 - chance, 0.0)
    total, around = (sums_by(unit, values, n=len(n)) for values in (open_, open_ * expanded))
    mean = np.divide(around, total, out=np.zeros(len(n)), where=(total > 0) & (n >= FEWEST_TOGETHER))
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


def _design_sums(parts: Sequence[Floats], repeated: Sequence[tuple[Floats, Floats]], *, n: int) -> Moments:
    effect = np.concatenate([*parts, *(value for value, _ in repeated)])
    times = np.concatenate([*(np.ones(len(part)) for part in parts), *(count for _, count in repeated)])
    kept = times > 0
    effect, times = effect[kept], times[kept]
    largest = largest_of(effect)
    unit = unit_of(largest)
    effect = effect / unit
    squares, cubes, fourths = (exact_sum(times * effect**power) for power in (2, 3, 4))
    moved, absolute = float(np.count_nonzero(effect)), float(np.abs(effect).sum())
    found = Moments.listed(n, [squares, squares, cubes, fourths, 0.0, 0.0, 0.0, moved, absolute, 0.0, largest / unit])
    return replace(found, unit=unit)


def _rows(terms: Smooth) -> SampledRows:
    if terms.rows is None:
        raise RefusedError(
            "an interval for exactly these users needs the single judged rows, which this estimator does not give. "
            f"Use {option('interval population', 'interval=Population()')}, or another estimator."
        )
    return terms.rows


Name = TypeVar("Name")


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


def difference_of(first: Terms, second: Terms, known: Mapping[int, Influences] | None = None) -> Influences:
    """The same of the difference of two values of the same units."""
    one, other = (known[id(part)] if known and id(part) in known else influences(part) for part in (first, second))
    if len(one.effect) != len(other.effect):
        return Influences(one.value - other.value, np.zeros(0), np.zeros(0), 0.0, 0)
    return one.minus(other, informative=first.n_informative(second))


def _by_units(
    terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]]
) -> dict[tuple[bytes, ...], list[tuple[Name, Name]]]:
    """Pairs whose two terms define the same units, and pairs of those that define some units with those of others."""
    packed = {name: np.packbits(part.defined).tobytes() for name, part in terms.items()}
    found: dict[tuple[bytes, ...], list[tuple[Name, Name]]] = {}
    for first, second in pairs:
        units = tuple({packed[first]: None, packed[second]: None})
        found.setdefault(units, []).append((first, second))
    return found


def _restricted(terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]]) -> dict[Name, Terms]:
    """The terms of these pairs on the units that both of each define, which are the same for all of them."""
    first, second = pairs[0]
    both = terms[first].defined & terms[second].defined
    return {name: terms[name].restrict(both) for name in dict.fromkeys(name for pair in pairs for name in pair)}


def _differences(
    terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]], known: Mapping[int, Influences], *, level: float
) -> dict[tuple[Name, Name], Spread]:
    """The spreads of differences of terms of the same units: many at once where that pays, else one by one."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    parts = {name: part for name in names if isinstance(part := terms[name], Smooth)}
    found: dict[tuple[Name, Name], Spread] = {}
    if len(parts) == len(names) and worth_a_batch(parts[names[0]], len(pairs)):
        own = {name: known.get(id(part)) or influences(part) for name, part in parts.items()}
        own = {name: each for name, each in own.items() if not math.isnan(each.value)}
        defined = [
            (first, second)
            for first, second in pairs
            if first in own and second in own and unseen_variance(own[first].hits, own[second].hits) == 0
        ]
        found = spreads_of_pairs(parts, own, defined, level=level) if defined else {}
    for first, second in pairs:
        if (first, second) not in found:
            alone = difference_of(terms[first], terms[second], known)
            found[first, second] = alone.spread(level=level, difference=True)
    return found


@dataclass(frozen=True, slots=True)
class Population:
    """For the population that the units were drawn from, by linearisation.

    With L the influence of a cluster and h its part of the denominator, Var = Σ L² / (1 - h) over the clusters that
    contribute; Student's t with degrees of freedom that fall as parts and residuals become unequal, and ends that
    follow the skewness of residuals (`uncertainty.spreads`). A mean over G clusters with residuals of one size has the
    usual G / (G - 1) Σ L² and G - 1. Where clusters come from several sources of fixed size, variances are within
    these. Where a model was fitted to the same units, groups of clusters take the place of clusters (jackknife).

    >>> from truerank.core.clusters import Clusters
    >>> from truerank.core.terms import ratio
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
        paired = {name for pair in pairs for name in pair}
        alone = {id(part): influences(part) for name, part in terms.items() if name in paired}
        found: dict[tuple[Name, Name], Spread] = {}
        for units, of_units in _by_units(terms, pairs).items():
            shared = terms if len(units) == 1 else _restricted(terms, of_units)
            found |= _differences(shared, of_units, alone, level=level)
        return (
            {name: spread_of(part, alone.get(id(part)), level=level) for name, part in terms.items()},
            {pair: found[pair] for pair in pairs},
        )


@dataclass(frozen=True, slots=True)
class Bootstrap:
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

    name: ClassVar[str] = "population"
    needs_rows: ClassVar[bool] = False
    refits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_whole(self.replicates) or not 2 <= self.replicates <= MOST_REPLICATES:
            samples = f"{self.replicates:,}" if is_whole(self.replicates) else shown(self.replicates)
            raise InputError(
                f"a bootstrap of {samples} samples; expected 2 to {MOST_REPLICATES:,}, and 1,000 is enough."
            )
        if not WHOLE.fits(self.seed):
            raise InputError(f"a bootstrap with seed {shown(self.seed)}; expected a whole number.")

    def spreads(
        self, terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]], *, level: float
    ) -> tuple[dict[Name, Spread], dict[tuple[Name, Name], Spread]]:
        shared = {pair: common(terms[pair[0]], terms[pair[1]]) for pair in pairs}
        every = (*terms.values(), *(one for two in shared.values() for one in two))
        wanted = list({id(part): part for part in every}.values())
        n_clusters = len(wanted[0].clusters) if wanted else 0
        check_size(
            f"a bootstrap of {self.replicates:,} samples of {n_clusters:,} clusters for {len(terms):,} values",
            memory=8.0 * self.replicates * len(wanted),
            seconds=1e-9 * self.replicates * n_clusters,
            instead="Take fewer samples: 1,000 are enough.",
        )
        drawn = replicates_of(wanted, n=self.replicates, seed=self.seed)
        by_terms = {id(part): values for part, values in zip(wanted, drawn, strict=True)}
        return (
            {
                name: self._spread(influences(part), by_terms[id(part)], level=level, difference=False)
                for name, part in terms.items()
            },
            {
                pair: self._spread(difference_of(a, b), by_terms[id(a)] - by_terms[id(b)], level=level, difference=True)
                for pair, (a, b) in shared.items()
            },
        )

    @staticmethod
    def _spread(of: Influences, redrawn: Floats, *, level: float, difference: bool) -> Spread:
        known = redrawn[~np.isnan(redrawn)]
        stderr = float(np.std(known, ddof=1)) if len(known) >= 2 else 0.0
        if not stderr > 0:
            return of.spread(level=level) if of.reach > 0 else Spread.unknown(of.value, informative=of.informative)
        return replace(of, stratum=None).spread(level=level, difference=difference, stderr=stderr)


# -------------------------------------------------------------------------------------------------------------- design


@dataclass(frozen=True, slots=True)
class Design:
    """For exactly these units: only which items were judged is redrawn (statistics of finite populations).

    Row variable z = num - R den; within a unit Var = N² (1 - N-bar / N) s² / N-bar with s² the variance of z over all
    judged rows, zeros included; under Bernoulli exposure Σ z² (1 - rate) / rate². A difference of two models takes
    z_A - z_B row by row. Units with a single judged item are taken together with units of like activity (collapsed
    strata), which is conservative.
    Degrees of freedom and skewness are those of the rows.
    """

    name: ClassVar[str] = "design"
    needs_rows: ClassVar[bool] = True
    refits: ClassVar[bool] = False

    def spreads(
        self, terms: Mapping[Name, Terms], pairs: Sequence[tuple[Name, Name]], *, level: float
    ) -> tuple[dict[Name, Spread], dict[tuple[Name, Name], Spread]]:
        return (
            {name: self._spread(part, None, level=level) for name, part in terms.items()},
            {pair: self._spread(*common(terms[pair[0]], terms[pair[1]]), level=level) for pair in pairs},
        )

    @staticmethod
    def _spread(first: Terms, second: Terms | None, *, level: float) -> Spread:
        value = first.value() - (0.0 if second is None else second.value())
        informative = first.n_informative(second)
        own, other = _sampled(first), None if second is None else _sampled(second)
        if own.exact and (other is None or other.exact):
            # no label is missing, so for exactly these units nothing is left to chance: no width, no sampling error
            p = math.nan if second is None or math.isnan(value) else float(value == 0)
            return Spread(value, math.nan if math.isnan(value) else 0.0, value, value, p, informative)
        if math.isnan(value):
            return Spread.unknown(value, informative=informative)
        row = residuals(own) if other is None else residuals(own) - residuals(other)
        moments = design_moments(own, row)
        scale = abs(first.value()) + (0.0 if second is None else abs(second.value()))
        if moments.n < 2 or not moments.highest_effect > ROUNDING * (scale / moments.unit) / moments.n:
            return Spread.unknown(value, informative=informative)
        difference = second is not None
        moments = with_rare_hits(moments, own, other)
        if math.isnan(moments.variance):
            return Spread.unknown(value, informative=informative)
        return interval(value, moments.stderr, moments, level=level, difference=difference, informative=informative)


def _sampled(terms: Terms) -> Smooth:
    if isinstance(terms, Refitted):
        raise InputError("an interval for exactly these units needs the rows that were judged, and no fitted weights.")
    return terms.whole
