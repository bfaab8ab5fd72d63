"""How much data a difference needs: the power of the tests of `linearization`, before the data are there.

What users contribute to a difference varies between users, and, where few rows of each are seen, within them: with n
rows per user σ²(n) = between + within / n - finite, and the estimate has the variance σ²(n) / users. For labelled items
within = mean N² S² and finite = mean N S², so that σ_W² = mean N² (1 / n - 1 / N) S² (simple random sampling; Cochran
1977); for sessions of users finite is 0. An interval for exactly these users knows no variance between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from truerank.core import special
from truerank.core.arrays import Floats, smallest_that
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.inference.moments import unskewed
from truerank.inference.verdicts import FEWEST

MOST_USERS = 10**9
ATTENUATED = 2.5  # how much smaller the kurtosis of small samples is
MANY = 500.0  # degrees of freedom from which Student's t is taken as normal
SMALLEST = 0.25  # that skewness may make of the variance of T
USUAL_ROWS = 20.0  # at which shapes of assumed lists are worked out; any number gives the same plan


@record
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

    def towards(self, difference: float) -> Components:
        """The same seen from the side on which the difference is positive."""
        if difference >= 0:
            return self
        return replace(self, skewness=-self.skewness, row_third=-self.row_third)


@record
class Sure:
    """What counts as significant: the wanted power, the level, and over how many comparisons p is adjusted.

    The power is that of Bonferroni's bound, level / family: comparisons that are correlated have more.
    """

    power: float = 0.8
    level: float = 0.95
    family: int = 1

    @property
    def alpha(self) -> float:
        return (1.0 - self.level) / self.family


def power_of(components: Components, difference: float, *, users: float, rows: float, sure: Sure) -> float:
    """The probability that a true difference is significant, and with the right sign.

    T is noncentral t with the degrees of freedom that the interval takes, its noncentrality √users Δ / σ(n). Where
    contributions are skewed, T varies by 1 - c k instead of 1 around its mean (k their skewness / √users, c the
    critical value), because mean and standard error go together; c itself is larger where the interval reaches further,
    and varies with the skewness of the sample.

    Small samples do not contain rare large parts: they show (κ - 1) f and γ √f with f = n / (n + 2.5 (κ - 1)), 4.3 and
    1.41 for 20 draws of an exponential, which has 9 and 2. The skewness of a sample varies by √((μ₆ - 6 κ + 9) / n),
    with μ₆ as 5/3 κ² (15 for normal ones).

    >>> components = Components(between=0.0, within=20.0)
    >>> round(power_of(components, 0.1, users=785, rows=20, sure=Sure()), 3)
    0.798
    """
    variance = components.variance(rows)
    n = users * rows if components.by_rows else users
    if difference == 0 or n < 2:
        return 0.0
    if variance <= 0:
        return 1.0
    noncentral = math.sqrt(users / variance) * abs(difference)
    skewness, kurtosis = components.shape(rows)
    share = n / (n + ATTENUATED * (kurtosis - 1.0))
    skewness, kurtosis = skewness * math.sqrt(share), 1.0 + (kurtosis - 1.0) * share
    uneven = max(components.uneven + components.row_uneven * (1.0 / rows - 1.0 / components.rows), 1.0)
    by_parts = math.inf if components.by_rows else users / uneven - 1.0
    by_residuals = 2.0 * n / max(kurtosis - 1.0, 1e-9) - 1.0
    df = max(min(by_residuals, by_parts, n - 1.0, components.most_df), 1.0)
    sixth = 5.0 * kurtosis**2 / 3.0 - 6.0 * kurtosis + 9.0
    error = math.sqrt(sixth * (n - 2.0) / ((n + 1.0) * (n + 3.0))) if n > 2 else 0.0
    k = skewness / math.sqrt(n)
    nodes, weights = _normal_nodes()
    t = special.stdtrit(df, 1.0 - sure.alpha / 2.0)
    critical = np.maximum(t, unskewed(t, np.clip(k + error / math.sqrt(n) * nodes, -0.999, 0.999)))
    scale = np.sqrt(np.maximum(1.0 - critical * k, SMALLEST))
    shown = _beyond(critical / scale, df, noncentral / scale) @ (weights / weights.sum())
    return min(float(shown), _enough_informative(components, users, rows, sure))


@lru_cache(maxsize=1)
def _normal_nodes() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    return nodes, weights


def _beyond(critical: Floats, df: float, noncentral: Floats) -> Floats:
    """P(T > critical) of noncentral t."""
    normal = special.ndtr((noncentral - critical) / np.sqrt(1.0 + critical**2 / (2.0 * df)))
    if df > MANY:
        return np.asarray(normal)
    plain = (normal < 1e-6) | (normal > 1.0 - 1e-6)
    return np.asarray(np.where(plain, normal, 1.0 - special.nctdtr(df, np.where(plain, 0.0, noncentral), critical)))


def _enough_informative(components: Components, users: float, rows: float, sure: Sure) -> float:
    """The probability that as many users tell the two apart as a verdict at this level needs.

    Each row has the same probability to tell them apart.
    """
    telling, least = components.telling, max(FEWEST, math.floor(1.0 - math.log2(sure.alpha)) + 1)
    telling = telling if telling >= 1 else 1.0 - (1.0 - telling) ** (rows / components.rows)
    if telling >= 1 and users >= least:
        return 1.0
    return float(special.bdtrc(least - 1, math.floor(users), min(telling, 1.0)))


# ------------------------------------------------------------------------------------------------------------- searches


def users_for(components: Components, difference: float, *, rows: float, sure: Sure) -> int | None:
    """The smallest number of users with which a difference has the wanted power; None: no number has.

    >>> users_for(Components(between=0.0, within=20.0), 0.1, rows=20, sure=Sure())
    789
    """
    return _smallest(
        lambda n: power_of(components, difference, users=n, rows=rows, sure=sure) >= sure.power, most=MOST_USERS
    )


def rows_for(components: Components, difference: float, *, users: float, sure: Sure) -> int | None:
    """The smallest number of rows per user that does, None where not even all that a user can have would."""
    return _smallest(
        lambda n: power_of(components, difference, users=users, rows=n, sure=sure) >= sure.power,
        most=int(min(components.most_rows, MOST_USERS)),
    )


def _smallest(enough: Callable[[int], bool], *, most: int) -> int | None:
    low, high = 0, 1
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def smallest_difference(components: Components, *, users: float, rows: float, sure: Sure) -> float:
    """The smallest difference with the wanted power; NaN where none has.

    >>> round(smallest_difference(Components(between=0.0, within=20.0), users=789, rows=20, sure=Sure()), 3)
    0.1
    """
    unit = math.sqrt(components.variance(rows) / users)
    if unit == 0:
        return 0.0

    def enough(errors: float) -> bool:
        return power_of(components, errors * unit, users=users, rows=rows, sure=sure) >= sure.power

    high = next((2.0**power for power in range(20) if enough(2.0**power)), None)
    if high is None:
        return math.nan
    return smallest_that(enough, high / 2.0 if high > 1 else 0.0, high, steps=40) * unit


# ------------------------------------------------------------------------------------------------------ assumed figures


def assumed_lists(
    discount: Floats, *, n_items: int, value: float, relevant: float | None, shared: float, normalised: bool
) -> Components:
    """Of two lists with this discount by rank, whose value is about `value` and that share a part of their items.

    Labels are independent and as often 1 in both lists, p = value / Σw; of a recall (`relevant` is the share of
    relevant items among all) the discount of a rank is 1 / (relevant x items). An item that one of them lists adds
    ±w y, so that Σd² = 2 (1 - shared) p Σw², S² = Σd² / N, and σ_B² = 2 (1 - shared) p (1 - p) Σw². `normalised`
    subtracts from y what is expected there: Hájek's ratio p, post-stratified recall R the share (1 - R) p + R q, with q
    that of relevant items among those that are not listed.

    >>> found = assumed_lists(np.full(10, 0.1), n_items=100, value=0.5, relevant=None, shared=0.0, normalised=False)
    >>> round(found.within, 6), round(found.finite, 6), round(found.between, 6)  # Σd² = 2 · 0.5 · 0.1
    (10.0, 0.1, 0.05)
    """
    k, total = len(discount), float(discount.sum())
    if relevant is None:
        p, expected = value / total, f"{total:g}, what a list of relevant items alone is worth"
        expected_label = p
    else:
        p = value * relevant * n_items / k  # hits = value x relevant items, over the ranks of the list
        discount = discount / (relevant * n_items)
        expected = f"{k / (relevant * n_items):.3g}, what a list of relevant items alone reaches"
        unlisted = (1.0 - value) * relevant * n_items / (n_items - k) if n_items > k else 0.0
        expected_label = (1.0 - value) * p + value * unlisted
    if not 0 < p < 1:
        raise InputError(f"a value of {value:g}; expected one between 0 and {expected}.")
    y = expected_label if normalised else 0.0
    rate, fourth_rate = (p * (1.0 - y) ** power + (1.0 - p) * y**power for power in (2, 4))
    differ, square, fourth = 2.0 * (1.0 - shared), float((discount**2).sum()), float((discount**4).sum())
    s2 = differ * rate * square / n_items
    ranks = differ * k * (1.0 if normalised else p) / n_items
    rows = min(USUAL_ROWS, float(n_items))
    components = Components(
        between=differ * p * (1.0 - p) * square,
        within=n_items**2 * s2,
        finite=n_items * s2,
        rows=rows,
        row_fourth=n_items**4 * (differ * fourth_rate * fourth / n_items - 3.0 * s2**2),
        telling=1.0 - (1.0 - min(ranks, 1.0)) ** rows,
        most_rows=float(n_items),
    )
    excess = components.row_fourth / rows**3 / components.variance(rows) ** 2
    return replace(components, kurtosis=max(3.0 + excess, 1.0))


def assumed_sessions(*, reward: float, effective: float, sessions: float, alike: float, normalised: bool) -> Components:
    """Of a target against the logging policy: what its weights and the rewards of sessions vary by.

    Sessions earn `reward` on average, most once or nothing; weights w have mean 1 and leave the `effective` share of
    sessions, 1 / E w². (w - 1) c varies by (1 / effective - 1) r, and normalised (w - 1) (c - r) by
    (1 / effective - 1) r (1 - r). `alike` is the correlation of two sessions of one user.

    >>> found = assumed_sessions(reward=0.2, effective=0.5, sessions=4.0, alike=0.0, normalised=False)
    >>> found.between, found.within, found.variance(4.0)
    (0.0, 0.2, 0.05)
    """
    if not 0 < effective < 1:
        raise InputError(f"effective {effective:g}; expected a share between 0 and 1.")
    if not 0 <= alike <= 1:
        raise InputError(f"alike {alike:g}; expected a share between 0 and 1.")
    if not 0 < reward < 1:
        raise InputError(f"a mean reward of {reward:g}; expected a share of sessions, between 0 and 1.")
    varies = (1.0 / effective - 1.0) * (reward * (1.0 - reward) if normalised else reward)
    return Components(
        between=alike * varies,
        within=(1.0 - alike) * varies,
        rows=sessions,
        telling=1.0 - math.pow(1.0 - reward, sessions),
    )
