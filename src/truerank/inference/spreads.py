"""How far a value may be off, from what each cluster adds to its error: few clusters, unequal ones, skewed ones.

A cluster with a large part of the denominator pulls the value to itself, so that its own residual looks too small: its
square is divided by 1 - h (h its part). How well the spread is known follows from how unequal the parts and the
residuals are: degrees of freedom. Where residuals are skewed, the interval reaches further to the side of rare ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from truerank.core import special
from truerank.core.arrays import Floats, Ints, exact_sum
from truerank.core.counted import CountedItems
from truerank.core.modelled import ModelledTerms
from truerank.core.terms import Ratio, Smooth, Terms
from truerank.inference.moments import Moments
from truerank.inference.rare_hits import RareHits, rare_hits, unseen_variance

ALLOWED, FLOOR = 0.4, 0.02  # of a model's correction, and of its value, that may be bias
NO_SKEW = 1e-6  # skewness below which the interval is symmetric

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Spread:
    """A value with its standard error and interval; `p` tests that the value is 0.

    `informative` clusters tell something about it; `df` are the degrees of freedom of its error, `skewness` that of the
    clusters' residuals, `largest` the part of the cluster that adds most to the variance; `correction` is how far a
    model moved the value, where its interval allows for bias.
    """

    value: float
    stderr: float
    low: float
    high: float
    p: float
    informative: int = 0
    df: float = math.nan
    skewness: float = 0.0
    largest: float = math.nan
    correction: float = math.nan

    @classmethod
    def unknown(cls, value: float, *, informative: int = 0) -> Spread:
        """A value of which nothing tells how far it may be off."""
        return cls(value, math.nan, math.nan, math.nan, math.nan, informative)

    def without_interval(self) -> Spread:
        return Spread.unknown(self.value, informative=self.informative)


@dataclass(frozen=True, slots=True)
class Influences:
    """What each cluster adds to the error of a value (L), and its part of the denominator (h).

    `scale` is the size of what residuals are differences of: what is below its rounding is 0. `informative` is the
    number of clusters that tell something. `stratum` is the source of fixed size of each cluster, where there are
    several: how their means differ is no chance. `reach` is how far a cluster unlike all of these could move the value,
    0 where that is not known. `correction` is how far a model moved the value: a part of it may be missing, or too
    much. `hits` are those that an assisted value rests on; `unseen` is the variance of hits that a list has none of.
    """

    value: float
    effect: Floats
    leverage: Floats
    scale: float
    informative: int
    stratum: Ints | None = None
    reach: float = 0.0
    correction: float | None = None
    hits: RareHits | None = None
    unseen: float = 0.0

    def minus(self, other: Influences, *, informative: int) -> Influences:
        """The same of the difference of two values."""
        return replace(
            self,
            value=self.value - other.value,
            effect=self.effect - other.effect,
            leverage=np.maximum(self.leverage, other.leverage),
            scale=self.scale + other.scale,
            informative=informative,
            reach=max(self.reach, other.reach),
            correction=None if self.correction is None else self.correction - (other.correction or 0.0),
            hits=None,
            unseen=unseen_variance(self.hits, other.hits),
        )

    def moments(self) -> Moments | None:
        """What the interval needs of them; None where there is no spread, or one cluster is all."""
        effect, leverage, most = self.effect, self.leverage, math.inf
        if self.stratum is not None:
            within = _within_strata(effect, leverage, self.stratum)
            if within is None:
                return None
            effect, leverage, most = within
        if math.isnan(self.value) or not len(effect):
            return None
        found = Moments.of(effect, leverage)
        if not found.show_spread(self.scale):
            return None
        found = found if math.isinf(most) else replace(found, df_most=most)
        if math.isnan(self.unseen):
            return None
        if self.unseen:
            return found.with_unseen(self.unseen)
        return found.with_hit(self.hits.allowed) if self.hits is not None and self.hits.allowed else found

    def spread(self, *, level: float, difference: bool = False, stderr: float | None = None) -> Spread:
        """Value, error and interval; another standard error takes the place of the linearised one."""
        moments = self.moments()
        if moments is None:
            if self.reach > 0 and np.count_nonzero(self.leverage) > 1:
                return unlike_any(self.value, self.reach, level=level, informative=self.informative)
            return Spread.unknown(self.value, informative=self.informative)
        allowed = self.unseen if self.hits is None else self.hits.allowed**2
        error = moments.stderr if stderr is None else math.hypot(stderr, math.sqrt(allowed))
        found = interval(self.value, error, moments, level=level, difference=difference, informative=self.informative)
        return found if self.correction is None else allowing(found, self.correction, level=level)


def _within_strata(effect: Floats, leverage: Floats, stratum: Ints) -> tuple[Floats, Floats, float] | None:
    """Residuals around the mean of each source, with parts of at least 1 / n of its n clusters; None if one has one."""
    used = np.flatnonzero((leverage != 0) | (effect != 0))
    own, of = effect[used], stratum[used]
    count = np.bincount(of)
    if (count == 1).any():
        return None
    mean = np.array([exact_sum(own[of == number]) / n if n else 0.0 for number, n in enumerate(count.tolist())])
    df = float((count[count > 0] - 1).sum())
    return own - mean[of], np.maximum(leverage[used], 1.0 / count[of]), df


# --------------------------------------------------------------------------------------------------------- from terms


def influences(terms: Terms) -> Influences:
    """The value of terms with what each cluster adds to its error."""
    value = terms.value()
    if math.isnan(value):
        return Influences(value, np.zeros(0), np.zeros(0), 0.0, 0)
    stratum = terms.clusters.stratum if isinstance(terms, Smooth) else None
    reach = terms.reach() if isinstance(terms, CountedItems) else 0.0
    correction = terms.correction() if isinstance(terms, ModelledTerms) else None
    hits = rare_hits(terms)
    return Influences(
        value, terms.influence(), terms.leverage(), abs(value), terms.n_informative(), stratum, reach, correction, hits
    )


def moments_of(terms: Terms, of: Influences | None = None) -> Moments | None:
    """What the interval of a value needs of its clusters; None where there is no spread. Looked up if asked before.

    `of` are the influences of its clusters, where these are known.
    """
    if not isinstance(terms, Smooth):
        return (of or influences(terms)).moments()
    if "moments" not in terms.known:
        terms.known["moments"] = _moments(terms) if of is None else of.moments()
    known: Moments | None = terms.known["moments"]
    return known


def _moments(terms: Smooth) -> Moments | None:
    value, clusters = terms.value(), terms.clusters
    if isinstance(terms.form, Ratio) and clusters.stratum is None and clusters.each_alone() and not math.isnan(value):
        found = Moments.of_ratio(terms.sums[:, 0], terms.sums[:, 1], terms.totals())
        if found is not None:
            return found if found.show_spread(abs(value)) else None
    return influences(terms).moments()


def spread_of(terms: Terms, of: Influences | None = None, *, level: float) -> Spread:
    """Value, error and interval by linearisation; `of` are the influences of its clusters, where these are known."""
    if not isinstance(terms, Smooth):
        return (of or influences(terms)).spread(level=level)
    value, moments = terms.value(), moments_of(terms, of)
    informative = of.informative if of is not None else 0 if math.isnan(value) else terms.n_informative()
    if moments is None:
        return Spread.unknown(value, informative=informative)
    return interval(value, moments.stderr, moments, level=level, difference=False, informative=informative)


# ------------------------------------------------------------------------------------------------------------ intervals


def interval(
    value: float, stderr: float, moments: Moments, *, level: float, difference: bool, informative: int
) -> Spread:
    """The interval of a value, or the more careful one of a difference, and p of the value 0.

    Hall's (1992) transformation for skewness k. For differences it may only widen, because the skewness of a sample
    leans with its mean; p is never below 2^(1 - informative), that of all of them on one side.
    """
    df, k = moments.df, moments.skewness
    t = float(special.stdtrit(df, (1 + level) / 2))
    upper, lower = unskewed(t, k), unskewed(-t, k)
    if difference:
        upper, lower = max(t, upper), min(-t, lower)
    ratio = value / stderr
    p = 2.0 * float(special.stdtr(df, -abs(skewed(ratio, k))))
    if difference:
        p = min(1.0, max(p, 2.0 * float(special.stdtr(df, -abs(ratio))), 2.0 ** (1 - informative)))
    return Spread(
        value, stderr, value - stderr * upper, value - stderr * lower, min(p, 1.0), informative, df, k, moments.largest
    )


def unskewed(x: float, k: float) -> float:
    """G(x) = (3 / k) (∛(1 + k (x - k / 6)) - 1), which grows with x; x itself without skewness.

    >>> unskewed(2.0, 0.0), round(unskewed(2.0, 0.5), 4)
    (2.0, 1.5067)
    """
    if abs(k) < NO_SKEW:
        return x
    return float(3.0 / k * (np.cbrt(1.0 + k * (x - k / 6.0)) - 1.0))


def skewed(t: float, k: float) -> float:
    """g(T) = T + k T² / 3 + k² T³ / 27 + k / 6, of which G is the inverse.

    >>> round(unskewed(skewed(1.25, 0.5), 0.5), 12)
    1.25
    """
    return t + k * t * t / 3.0 + k * k * t**3 / 27.0 + k / 6.0


def within(spread: Spread, bounds: Bounds | None) -> Spread:
    """The interval inside the bounds of a metric; none where it lies wholly outside."""
    if bounds is None or math.isnan(spread.stderr):
        return spread
    low, high = bounds
    if low <= spread.low and spread.high <= high:
        return spread
    if spread.low > high or spread.high < low:
        return spread.without_interval()
    return replace(spread, low=max(spread.low, low), high=min(spread.high, high))


def unlike_any(value: float, reach: float, *, level: float, informative: int) -> Spread:
    """The interval of a value that no single cluster changes: by clusters of a kind of which none was drawn.

    Of a kind that is expected λ times among as many clusters none is drawn with probability e^-λ, so that with 95 % at
    most -ln(0.05 / 2) = 3.7 of them are missing (the rule of three), each of which moves the value by up to `reach`.

    >>> found = unlike_any(0.5, 0.01, level=0.95, informative=100)
    >>> round(found.low, 3), round(found.high, 3)
    (0.463, 0.537)
    """
    half = -math.log((1.0 - level) / 2.0) * reach
    p = min(1.0, 2.0 * math.exp(-abs(value) / reach))
    return Spread(value, reach, value - half, value + half, p, informative)


def allowing(spread: Spread, correction: float, *, level: float) -> Spread:
    """The interval and p of a value that a model moved by `correction`: up to a part of it may still be bias.

    With B the bias allowed for, the larger of 0.4 |correction| and 0.02 |value|, the half-width is c se with
    Φ(c - B / se) - Φ(-c - B / se) = level (Armstrong and Kolesár 2018), widened as Student's t is for few clusters; p
    is the smallest 1 - level at which the interval is without 0. Both shares were measured, they are no theorem
    (docs/mean-recall.md).

    >>> plain = Spread(0.5, 0.1, 0.304, 0.696, 0.0, df=1e9)
    >>> found = allowing(plain, 0.25, level=0.95)
    >>> round(found.low, 3), round(found.high, 3)
    (0.235, 0.765)
    """
    bias = max(ALLOWED * abs(correction), FLOOR * abs(spread.value)) / spread.stderr
    low, high = 0.0, bias + 9.0
    for _ in range(100):
        middle = (low + high) / 2
        inside = float(special.ndtr(middle - bias) - special.ndtr(-middle - bias))
        low, high = (low, middle) if inside >= level else (middle, high)
    wider = float(special.stdtrit(spread.df, (1 + level) / 2)) / float(special.ndtri((1 + level) / 2))
    half = spread.stderr * high * wider
    away = abs(spread.value) / (spread.stderr * wider)
    p = min(1.0, max(float(special.ndtr(bias - away) + special.ndtr(-away - bias)), 2.0 ** (1 - spread.informative)))
    return replace(spread, low=spread.value - half, high=spread.value + half, p=p, skewness=0.0, correction=correction)


def at_a_bound(value: float, bounds: Bounds, n: float, *, level: float) -> Spread | None:
    """The interval of a value at a bound, where all n equally weighted clusters are: how far others may be from it.

    One-sided after Clopper and Pearson: [0, 1 - β^(1/n)] at 0, [β^(1/n), 1] at 1, β = (1 - level) / 2, scaled to the
    bounds. None for other values, and for a single cluster.

    >>> at_a_bound(0.0, (0.0, 1.0), 20.0, level=0.95).high.__round__(3)
    0.168
    """
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high)) or value not in (low, high) or not n > 1:
        return None
    reach = (high - low) * ((1.0 - level) / 2.0) ** (1.0 / n)
    first, last = (low, high - reach) if value == low else (low + reach, high)
    return Spread(value, math.nan, first, last, math.nan)
