"""How much data a difference needs: the power of the tests of `spreads`, before the data are there.

What users contribute to a difference varies between users, and, where few rows of each are seen, within them: with n
rows per user σ²(n) = between + within / n - finite, and the estimate has the variance σ²(n) / users. For judged items
within = mean N² S² and finite = mean N S², so that σ_W² = mean N² (1 / n - 1 / N) S² (simple random sampling; Cochran
1977); for sessions of users finite is 0. An interval for exactly these users knows no variance between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from truerank.core import special
from truerank.inference.spreads import unskewed
from truerank.inference.verdicts import FEWEST

MOST_USERS = 10**9
ATTENUATED = 2.5  # how much smaller the kurtosis of small samples is; see `_seen`
MANY = 500.0  # degrees of freedom from which Student's t is taken as normal
SMALLEST = 0.25  # that skewness may make of the variance of T
NODES = 9


@dataclass(frozen=True, slots=True)
class Components:
    """What the contribution of a user to a difference varies by, and what its distribution looks like.

    Skewness and kurtosis are those of contributions with `rows` rows per user; `row_third` and `row_fourth` are what
    rows add to the third and fourth cumulant, mean N³ k₃ and mean N⁴ k₄, which fall as n² and n³. `telling` is
    the share of users who tell two models apart, `uneven` is users x Σh² (1 for equal parts) with `rows` rows, of which
    `row_uneven` / n falls with more; `most_df` is what else limits degrees of freedom, `most_rows` how many rows a user
    can have. With `by_rows` the rows are drawn, not users.

    >>> Components(between=1.0, within=40.0, finite=0.5).variance(20.0)
    2.5
    """

    between: float
    within: float = 0.0
    finite: float = 0.0
    rows: float = 1.0
    skewness: float = 0.0
    kurtosis: float = 3.0
    row_third: float = 0.0
    row_fourth: float = 0.0
    telling: float = 1.0
    uneven: float = 1.0
    row_uneven: float = 0.0
    most_df: float = math.inf
    most_rows: float = math.inf
    by_rows: bool = False

    def variance(self, n: float) -> float:
        """σ²(n) of one user with n rows; of that between users nothing is left by more rows."""
        return self.between + max(self.within / n - self.finite, 0.0)

    def shape(self, n: float) -> tuple[float, float]:
        """Skewness and kurtosis with n rows per user; what is not of rows keeps its own as the variance changes."""
        if self.by_rows or n == self.rows:
            return self.skewness, self.kurtosis
        now, then = self.variance(n), self.variance(self.rows)
        if now <= 0 or then <= 0:
            return 0.0, 3.0
        third = self.skewness * then**1.5 - self.row_third / self.rows**2
        fourth = (self.kurtosis - 3.0) * then**2 - self.row_fourth / self.rows**3
        scale = now / then
        skewness = (third * scale**1.5 + self.row_third / n**2) / now**1.5
        excess = (fourth * scale**2 + self.row_fourth / n**3) / now**2
        return skewness, max(3.0 + excess, 1.0 + skewness**2)

    def telling_with(self, n: float) -> float:
        """The share of users who tell two models apart with n rows: each row has the same chance to."""
        return self.telling if self.telling >= 1 else 1.0 - (1.0 - self.telling) ** (n / self.rows)

    def uneven_with(self, n: float) -> float:
        """users x Σh² with n rows per user."""
        return max(self.uneven + self.row_uneven * (1.0 / n - 1.0 / self.rows), 1.0)

    def towards(self, difference: float) -> Components:
        """The same seen from the side on which the difference is positive."""
        if difference >= 0:
            return self
        return replace(self, skewness=-self.skewness, row_third=-self.row_third)


# --------------------------------------------------------------------------------------------------------------- power


@dataclass(frozen=True, slots=True)
class Sure:
    """What counts as shown: the power and level asked for, and over how many comparisons p is adjusted.

    The power is that of Bonferroni's bound, level / family: comparisons that are correlated have more.
    """

    power: float = 0.8
    level: float = 0.95
    family: int = 1

    @property
    def alpha(self) -> float:
        return (1.0 - self.level) / self.family


def power_of(of: Components, difference: float, *, users: float, rows: float, sure: Sure) -> float:
    """The probability that a true difference is shown, and with the right sign.

    T is noncentral t with the degrees of freedom that the interval takes, its noncentrality √users Δ / σ(n). Where
    contributions are skewed, T varies by 1 - c k instead of 1 around its mean (k their skewness / √users, c the
    critical value), because mean and standard error go together; c itself is larger where the interval reaches further,
    and varies with the skewness of the sample.

    >>> of = Components(between=0.0, within=20.0)
    >>> round(power_of(of, 0.1, users=785, rows=20, sure=Sure()), 3)
    0.798
    """
    variance = of.variance(rows)
    parts = users * rows if of.by_rows else users
    if difference == 0 or parts < 2:
        return 0.0
    noncentral = math.sqrt(users / variance) * abs(difference) if variance > 0 else math.inf
    if math.isinf(noncentral):
        return 1.0
    skewness, kurtosis = _seen(*of.shape(rows), parts)
    df = _df(of, kurtosis, parts, users / of.uneven_with(rows))
    k, sd = skewness / math.sqrt(parts), _sd_of_skewness(parts, kurtosis) / math.sqrt(parts)
    nodes, weights = _normal_nodes()
    t = _quantile(df, 1.0 - sure.alpha / 2.0)
    shown = 0.0
    for node, weight in zip(nodes, weights, strict=True):
        critical = max(t, unskewed(t, min(max(k + sd * node, -0.999), 0.999)))
        scale = math.sqrt(max(1.0 - critical * k, SMALLEST))
        shown += weight * _beyond(critical / scale, df, noncentral / scale)
    return min(shown, _enough_tell(of.telling_with(rows), users, sure))


def _seen(skewness: float, kurtosis: float, parts: float) -> tuple[float, float]:
    """The skewness and kurtosis that samples show: rare large parts are not in small ones.

    (κ - 1) f and γ √f with f = n / (n + 2.5 (κ - 1)): 4.3 and 1.41 for 20 draws of an exponential, which has 9 and 2.
    """
    share = parts / (parts + ATTENUATED * (kurtosis - 1.0))
    return skewness * math.sqrt(share), 1.0 + (kurtosis - 1.0) * share


def _df(of: Components, kurtosis: float, parts: float, equal: float) -> float:
    """By unequal residuals, and by parts that are worth so many `equal` ones."""
    excess = max(kurtosis - 1.0, 1e-9)
    by_parts = math.inf if of.by_rows else equal - 1.0
    return max(min(2.0 * parts / excess - 1.0, by_parts, parts - 1.0, of.most_df), 1.0)


def _sd_of_skewness(n: float, kurtosis: float) -> float:
    """How much the skewness of a sample varies: √((μ₆ - 6 κ + 9) / n), μ₆ as 5/3 κ² (15 for normal ones)."""
    sixth = 5.0 * kurtosis**2 / 3.0 - 6.0 * kurtosis + 9.0
    return math.sqrt(sixth * (n - 2.0) / ((n + 1.0) * (n + 3.0))) if n > 2 else 0.0


@lru_cache(maxsize=1)
def _normal_nodes() -> tuple[list[float], list[float]]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return nodes.tolist(), (weights / weights.sum()).tolist()


def _quantile(df: float, share: float) -> float:
    return float(special.stdtrit(df, share) if math.isfinite(df) else special.ndtri(share))


def _beyond(critical: float, df: float, noncentral: float) -> float:
    """P(T > critical) of noncentral t."""
    spread = math.sqrt(1.0 + critical**2 / (2.0 * df)) if math.isfinite(df) else 1.0
    usual = float(special.ndtr((noncentral - critical) / spread))
    if df > MANY or usual < 1e-6 or usual > 1.0 - 1e-6:
        return usual
    return 1.0 - float(special.nctdtr(df, noncentral, critical))


def _enough_tell(telling: float, users: float, sure: Sure) -> float:
    """The chance that as many users tell the two apart as a verdict at this level needs."""
    least = max(FEWEST, math.floor(1.0 - math.log2(sure.alpha)) + 1)
    if telling >= 1 and users >= least:
        return 1.0
    return float(special.bdtrc(least - 1, math.floor(users), min(telling, 1.0)))


# ------------------------------------------------------------------------------------------------------------- searches


def users_for(of: Components, difference: float, *, rows: float, sure: Sure) -> int | None:
    """The smallest number of users with which a difference is shown with the power asked for; None: no number is.

    >>> users_for(Components(between=0.0, within=20.0), 0.1, rows=20, sure=Sure())
    789
    """
    return _smallest(lambda n: power_of(of, difference, users=n, rows=rows, sure=sure), sure.power, most=MOST_USERS)


def rows_for(of: Components, difference: float, *, users: float, sure: Sure) -> int | None:
    """The smallest number of rows per user that does, None where not even all that a user can have would."""
    most = int(min(of.most_rows, MOST_USERS))
    return _smallest(lambda n: power_of(of, difference, users=users, rows=n, sure=sure), sure.power, most=most)


def _smallest(reached: Callable[[int], float], power: float, *, most: int) -> int | None:
    low, high = 0, 1
    while reached(high) < power:
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) < power else (low, middle)
    return high


def smallest_difference(of: Components, *, users: float, rows: float, sure: Sure) -> float:
    """The smallest difference that is shown with the power asked for; NaN where none is.

    >>> round(smallest_difference(Components(between=0.0, within=20.0), users=789, rows=20, sure=Sure()), 3)
    0.1
    """
    unit = math.sqrt(of.variance(rows) / users)
    if unit == 0:
        return 0.0
    low, high = 0.0, 1.0
    while power_of(of, high * unit, users=users, rows=rows, sure=sure) < sure.power:
        low, high = high, 2.0 * high
        if high > 1e6:
            return math.nan
    for _ in range(40):
        middle = (low + high) / 2.0
        reached = power_of(of, middle * unit, users=users, rows=rows, sure=sure) >= sure.power
        low, high = (low, middle) if reached else (middle, high)
    return high * unit
