"""How far a value may be off, from what each cluster adds to its error: few clusters, unequal ones, skewed ones.

A cluster with a large part of the denominator pulls the value to itself, so that its own residual looks too small: its
square is divided by 1 - h (h its part). How well the spread is known follows from how unequal the parts and the
residuals are: degrees of freedom. Where residuals are skewed, the interval reaches further to the side of rare ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from truerank.core import special
from truerank.core.arrays import Floats, Ints, equal_parts, smallest_that, sums_by
from truerank.core.forms import HitMove, Ratio
from truerank.core.record import record
from truerank.core.terms import Smooth, Terms
from truerank.inference.moments import Moments, ends, skewed

Name = TypeVar("Name")
Bounds = tuple[float, float]

ALLOWED, FLOOR = 0.4, 0.02  # of a model's correction, and of its value, that may be bias
FEW_HITS = 10  # units with a labelled hit in the list, below which an assisted value allows for one hit more
EFFECTS_AT_ONCE = 2**16  # of a block of differences


@record
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


@record
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
    scale: float = 0.0
    informative: int = 0
    stratum: Ints | None = None
    reach: float = 0.0
    correction: float | None = None
    hits: RareHits | None = None
    unseen: float = 0.0

    def minus(self, baseline: Influences, *, informative: int) -> Influences:
        """The same of the difference of two values."""
        if len(self.effect) != len(baseline.effect):
            return Influences(self.value - baseline.value, np.zeros(0), np.zeros(0))
        return replace(
            self,
            value=self.value - baseline.value,
            effect=self.effect - baseline.effect,
            leverage=np.maximum(self.leverage, baseline.leverage),
            scale=self.scale + baseline.scale,
            informative=informative,
            reach=max(self.reach, baseline.reach),
            correction=None if self.correction is None else self.correction - (baseline.correction or 0.0),
            hits=None,
            unseen=unseen_variance(self.hits, baseline.hits),
        )

    def moments(self) -> Moments | None:
        """What the interval needs of them; None where there is no spread, or one cluster is all."""
        effect, leverage, most_df = self.effect, self.leverage, math.inf
        if math.isnan(self.value) or not len(effect):
            return None
        if self.stratum is not None:
            # residuals around the mean of each source, with parts of at least 1 / n of its n clusters
            used = np.flatnonzero((leverage != 0) | (effect != 0))
            effect, source = effect[used], self.stratum[used]
            count = np.bincount(source)
            if (count == 1).any():
                return None
            mean = sums_by(source, effect, n=len(count)) / np.maximum(count, 1)
            effect, leverage = effect - mean[source], np.maximum(leverage[used], 1.0 / count[source])
            most_df = float((count[count > 0] - 1).sum())
        moments = Moments.sum(effect, leverage)
        if math.isnan(self.unseen) or not moments.show_spread(self.scale):
            return None
        moments = replace(moments, most_df=most_df)
        if self.unseen:
            return moments.with_unseen(self.unseen)
        return moments.with_hit(self.hits.allowed) if self.hits is not None and self.hits.allowed else moments

    def spread(self, *, level: float, difference: bool = False, stderr: float | None = None) -> Spread:
        """Value, error and interval; another standard error takes the place of the linearised one."""
        moments = self.moments()
        if moments is None:
            if self.reach > 0 and np.count_nonzero(self.leverage) > 1:
                return unlike_any(self.value, self.reach, level=level, informative=self.informative)
            return Spread.unknown(self.value, informative=self.informative)
        allowed = self.unseen if self.hits is None else self.hits.allowed**2
        error = moments.stderr if stderr is None else math.hypot(stderr, math.sqrt(allowed))
        (spread,) = spreads_of(
            self.value, error, moments, level=level, difference=difference, informative=self.informative
        )
        return spread if self.correction is None else allowing(spread, self.correction, level=level)


def influences(terms: Terms) -> Influences:
    """The value of terms with what each cluster adds to its error."""
    value = terms.value()
    if math.isnan(value):
        return Influences(value, np.zeros(0), np.zeros(0))
    return Influences(
        value,
        terms.influence(),
        terms.leverage(),
        abs(value),
        terms.n_informative(),
        terms.strata,
        terms.reach(),
        terms.correction(),
        rare_hits(terms),
    )


def difference_of(first: Terms, second: Terms) -> Influences:
    """The same of the difference of two values of the same units."""
    return influences(first).minus(influences(second), informative=first.n_informative(second))


# ----------------------------------------------------------------------------------------------------------- rare hits


@record
class RareHits:
    """How many units have a labelled hit in their list, and how far one hit more would move the value.

    Residuals of an assisted value cannot show that hits are rare: predictions fit those that there are too well.
    """

    units: int
    move: HitMove

    @property
    def allowed(self) -> float:
        """How far one hit more would move an assisted value that rests on few of them, else 0."""
        few = 0 < self.units < FEW_HITS and self.move.assisted and math.isfinite(self.move.size)
        return self.move.size if few else 0.0


def rare_hits(terms: Terms) -> RareHits | None:
    """The hits that an assisted value rests on; None of other values, and where every label is known."""
    whole = terms.whole
    move = None if whole.exact else whole.form.one_hit_more(whole.totals())
    return None if move is None else RareHits(int(np.count_nonzero(whole.sums[:, 0])), move)


def unseen_variance(first: RareHits | None, second: RareHits | None) -> float:
    """The variance to add to a difference of which one list has no labelled hit: one hit more in either list, squared.

    Residuals of a list without a hit are all 0, and predictions may fit the hits of the other almost perfectly, so that
    residuals do not show that a hit would have been possible. Without help of predictions they do (Hájek).
    """
    if first is None or second is None or min(first.units, second.units) > 0:
        return 0.0
    assisted = first.move.assisted or second.move.assisted
    return first.move.size**2 + second.move.size**2 if assisted else 0.0


# ----------------------------------------------------------------------------------------------------------- intervals


def spreads_of(
    value: Any, stderr: Any, moments: Moments, *, level: float, difference: bool, informative: Any
) -> list[Spread]:
    """The intervals of one value, or of as many as there are moments, and p of the value 0.

    That of a difference is more careful, and its p is never below 2^(1 - informative), that of all informative clusters
    on one side.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        df, k = moments.df, moments.skewness
        low, high = ends(value, stderr, special.stdtrit(df, (1 + level) / 2), k, widened=difference)
        ratio = value / stderr
        p = 2.0 * special.stdtr(df, -np.abs(skewed(ratio, k)))
        if difference:
            p = np.maximum(np.maximum(p, 2.0 * special.stdtr(df, -np.abs(ratio))), 2.0 ** (1.0 - informative))
        columns = (value, stderr, low, high, np.minimum(p, 1.0), informative, df, k, moments.largest)
    rows = zip(*(np.atleast_1d(column).tolist() for column in columns), strict=True)
    return [Spread(*row) for row in rows]


def spreads_of_pairs(
    influences: Mapping[Name, Influences],
    sums: Mapping[Name, Floats],
    pairs: Sequence[tuple[Name, Name]],
    *,
    level: float,
) -> dict[tuple[Name, Name], Spread]:
    """The spread of the first minus the second of each pair of values over the same clusters, many at once.

    `sums` of clusters tell two values apart. A thousand models have half a million pairs, of which each would take
    about a millisecond alone.
    """
    place = {name: number for number, name in enumerate(influences)}
    effect, leverage = (
        np.stack([getattr(part, field) for part in influences.values()]) for field in ("effect", "leverage")
    )
    value, scale = np.array([(part.value, part.scale) for part in influences.values()]).T
    shared = bool((leverage == leverage[0]).all())
    telling = np.stack([sums[name] for name in place])
    places = np.array([(place[first], place[second]) for first, second in pairs])
    step = max(1, EFFECTS_AT_ONCE // effect.shape[1])
    spreads: list[Spread] = []
    for first, second in (places[start : start + step].T for start in range(0, len(places), step)):
        h = leverage[0] if shared else np.maximum(leverage[first], leverage[second])
        moments = Moments.sum(effect[first] - effect[second], h)
        difference = value[first] - value[second]
        informative = (telling[first] != telling[second]).any(axis=1).sum(axis=1)
        block = spreads_of(difference, moments.stderr, moments, level=level, difference=True, informative=informative)
        shown = np.broadcast_to(moments.show_spread(scale[first] + scale[second]), len(block)).tolist()
        spreads += [spread if has else spread.without_interval() for spread, has in zip(block, shown, strict=True)]
    return dict(zip(pairs, spreads, strict=True))


def differences_at(spreads: Sequence[Spread], *, level: float) -> list[Spread]:
    """The same differences with intervals of another level."""
    columns = [(spread.value, spread.stderr, spread.df, spread.skewness) for spread in spreads]
    value, stderr, df, k = np.array(columns).reshape(-1, 4).T
    low, high = ends(value, stderr, special.stdtrit(df, (1 + level) / 2), k)
    changed = []
    for spread, start, end in zip(spreads, low.tolist(), high.tolist(), strict=True):
        if not math.isnan(spread.correction):
            changed.append(allowing(spread, spread.correction, level=level))
        elif not math.isnan(spread.df):
            changed.append(replace(spread, low=start, high=end))
        elif spread.stderr > 0:
            changed.append(unlike_any(spread.value, spread.stderr, level=level, informative=spread.informative))
        else:
            changed.append(spread)
    return changed


def within_bounds(spread: Spread, bounds: Bounds | None) -> Spread:
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
    (research/estimators.md).

    >>> plain = Spread(0.5, 0.1, 0.304, 0.696, 0.0, df=1e9)
    >>> found = allowing(plain, 0.25, level=0.95)
    >>> round(found.low, 3), round(found.high, 3)
    (0.235, 0.765)
    """
    bias = max(ALLOWED * abs(correction), FLOOR * abs(spread.value)) / spread.stderr
    reach = smallest_that(
        lambda c: bool(special.ndtr(c - bias) - special.ndtr(-c - bias) >= level), 0.0, bias + 9.0, steps=100
    )
    wider = float(special.stdtrit(spread.df, (1 + level) / 2)) / float(special.ndtri((1 + level) / 2))
    half = spread.stderr * reach * wider
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
    if not (math.isfinite(low) and math.isfinite(high)) or value not in bounds or not n > 1:
        return None
    reach = (high - low) * ((1.0 - level) / 2.0) ** (1.0 / n)
    first, last = (low, high - reach) if value == low else (low + reach, high)
    return Spread(value, math.nan, first, last, math.nan)


# ------------------------------------------------------------------------------------------------- what labels can show


def spread_from_labels(spread: Spread, terms: Sequence[Terms]) -> Spread:
    """The spread of a value or a difference from labelled rows; unknown where weighted rows show none."""
    parts = [part.whole for part in terms]
    if len(parts) > 1 and not any(part.weighting for part in parts):
        return spread
    blind = [shows_no_spread(part) and (len(parts) == 1 or part.weighting is not None) for part in parts]
    return spread.without_interval() if any(blind) else spread


def equally_weighted(terms: Smooth) -> float:
    """The effective number of clusters by the denominator, B² / Σ b²; 0 for means.

    A mean divides by all clusters, whether or not anything of their lists was labelled: it does not tell.
    """
    below = terms.clusters.sums(np.where(terms.defined, terms.sums[:, 1], 0.0))
    return 0.0 if (below[below != 0] == 1).all() else equal_parts(below)


def shows_no_spread(terms: Smooth) -> bool:
    """Whether weighted rows are all hits or all misses, so that an interval of no width would be a lie."""
    if terms.exact:
        return False
    if not np.any(terms.sums[:, 0]):
        return True
    if terms.weighting is None or terms.n_defined < 2:
        return False
    effect = Ratio().influence(terms.sums[:, :2], terms.totals()[:2])
    return bool(np.abs(effect).max() <= 1e-12 * abs(terms.value()))
