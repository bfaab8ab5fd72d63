"""What uniform draws give: of the N_u candidates of each user, as many as were shown, all subsets equally likely.

The null of "is this log random": the number shown to each user is taken as given, users are independent, and a user's
set is a simple random sample without replacement. Means and variances of sums over rows are exact.
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np

from truerank.core.arrays import Floats, quotient
from truerank.core.errors import InputError
from truerank.core.log import Log, Pairs
from truerank.core.record import record

LEAST = 1e-9  # a variance below it is none
MOST_ITEMS = 3000  # up to which covariances of all pairs of items are added up where candidates differ by user


@record
class Draws:
    """The pairs that were shown (`shown`), among n_items items minus those `excluded` for each user."""

    shown: Pairs
    n_items: int
    excluded: Pairs | None = None

    @staticmethod
    def of(log: Log, *, excluded: Pairs | None = None) -> Draws:
        """Repeated pairs count once; excluded pairs leave the candidates and what was shown.

        >>> from truerank.core.ids import Ids
        >>> log = Log(Ids.of([1]), Ids.of([5, 6, 7, 8]), np.array([0, 0]), np.array([1, 2]), {})
        >>> draws = Draws.of(log)
        >>> draws.share.tolist(), draws.count.tolist()
        ([0.5], [0.0, 1.0, 1.0, 0.0])
        """
        shown = Pairs.of(log.user, log.item, n_units=log.n_units)
        if excluded is not None:
            left = ~excluded.hold(shown.unit, shown.item)
            shown = Pairs.of(shown.unit[left], shown.item[left], n_units=log.n_units)
        if not len(shown.item):
            raise InputError(f"{log.source}: no rows left to test; expected pairs of users and items.")
        return Draws(shown, len(log.items), excluded)

    @property
    def n_candidates(self) -> Floats:
        excluded = 0 if self.excluded is None else self.excluded.count
        return np.full(len(self.shown.count), float(self.n_items)) - excluded

    @property
    def share(self) -> Floats:
        """f_u: the share of a user's candidates that was shown."""
        return quotient(self.shown.count, self.n_candidates)

    @property
    def spread(self) -> Floats:
        """g_u = f_u (1 - f_u): the variance of whether one candidate was shown."""
        return self.share * (1 - self.share)

    @property
    def spread_of_sums(self) -> Floats:
        """g_u N_u / (N_u - 1), by which Σ (s - mean s)² over a user's candidates becomes the variance of a sum of s."""
        n = self.n_candidates
        return self.spread * quotient(n, n - 1)

    def over_candidates(self, score: Floats) -> Floats:
        """Σ of an item's score over the candidates of each user."""
        total = np.full(len(self.shown.count), float(score.sum()))
        if self.excluded is None:
            return total
        return total - np.bincount(self.excluded.unit, weights=score[self.excluded.item], minlength=len(total))

    def over_users(self, weight: Floats) -> Floats:
        """Σ of a user's weight over the users of whom each item is a candidate."""
        total = np.full(self.n_items, float(weight.sum()))
        if self.excluded is None:
            return total
        mass = np.bincount(self.excluded.item, weights=weight[self.excluded.unit], minlength=self.n_items)
        return np.maximum(total - mass, 0.0)

    @property
    def expected(self) -> Floats:
        """E_i: how many users uniform draws show each item to."""
        return self.over_users(self.share)

    @property
    def variance(self) -> Floats:
        """V_i: the variance of that number."""
        return self.over_users(self.spread)

    @property
    def count(self) -> Floats:
        """c_i: how many users were shown each item."""
        return np.bincount(self.shown.item, minlength=self.n_items).astype(np.float64)

    def contrast(self, score: Floats) -> tuple[float, float]:
        """Σ of the scores of shown items minus its mean under uniform draws, and its variance: both exact.

        Σ_u [Σ_{i shown} s_i - f_u Σ_{C_u} s_i]; Σ_u g_u N/(N-1) Σ_{C_u} (s_i - mean s)².
        """
        difference = float(score[self.shown.item].sum() - (self.share * self.over_candidates(score)).sum())
        return difference, float(self.variance_of_sums(score).sum())

    def variance_of_sums(self, score: Floats) -> Floats:
        """The variance of each user's sum of the scores of shown items."""
        around = self.over_candidates(score**2) - quotient(self.over_candidates(score) ** 2, self.n_candidates)
        return self.spread_of_sums * np.maximum(around, 0.0)


@record
class Dispersion:
    """Σ (c_i - E_i)² / V_i over items, its exact mean and variance under uniform draws, and Σ of squared correlations.

    `n` items can vary; `squares` is tr R² of the correlations R of their counts (n for independent items).
    """

    total: float
    n: int
    variance: float
    squares: float

    @property
    def statistic(self) -> float:
        """X², which a chi-square with `df` degrees of freedom approximates; (n - 1)/n of the total for equal items."""
        return self.total * self.n / self.squares

    @property
    def df(self) -> float:
        """n² / tr R²: n - 1 where every user has every item as a candidate."""
        return self.n**2 / self.squares

    @property
    def p(self) -> float:
        """Upper tail of the scaled chi-square that has the exact mean and variance of the total."""
        from truerank.core.special import chdtrc

        if self.variance <= 1e-9 * self.n:  # one user: every outcome has the same total
            return 1.0
        return float(chdtrc(2 * self.n**2 / self.variance, self.total * 2 * self.n / self.variance))

    def effect(self, expected: float) -> float:
        """√(max(0, X² - df) / Σ E): the coefficient of variation of exposure that chance does not explain."""
        return math.sqrt(max(0.0, self.statistic - self.df) / expected)


def item_dispersion(draws: Draws) -> Dispersion | None:
    """How much more item counts differ than uniform draws make them differ; None where no count can vary.

    E_i = Σ_u 1[i∈C_u] f_u, V_i = Σ_u 1[i∈C_u] g_u, cov(c_i, c_j) = -Σ_u 1[i,j∈C_u] g_u / (N_u - 1). The total T
    is a sum over pairs of users, whose terms are uncorrelated, so with R_u the part of user u in the correlations
    Var T = 2 (tr R² - Σ_u tr R_u²) + Σ_u (1 - 2 f_u)² Var Σ_{i shown} 1/V_i, exactly.
    """
    variance = draws.variance
    varies = variance > LEAST
    n_varying = int(np.count_nonzero(varies))
    if n_varying < 2:
        return None
    inverse = np.where(varies, 1 / np.where(varies, variance, 1.0), 0.0)
    total = float((inverse * (draws.count - draws.expected) ** 2).sum())
    g, h = draws.spread, quotient(draws.spread, draws.n_candidates - 1)
    sums, squares = draws.over_candidates(inverse), draws.over_candidates(inverse**2)
    per_user = g**2 * squares + h**2 * (sums**2 - squares)
    within = (1 - 2 * draws.share) ** 2 * draws.variance_of_sums(inverse)
    trace = n_varying + _off_diagonal(draws, h, inverse)
    return Dispersion(total, n_varying, max(float(2 * (trace - per_user.sum()) + within.sum()), 0.0), trace)


def _off_diagonal(draws: Draws, h: Floats, inverse: Floats) -> float:
    """Σ_{i≠j} (Σ_u 1[i,j∈C_u] h_u)² / (V_i V_j).

    Exclusions x give Σ_u h_u (1 - x_ui)(1 - x_uj) = H - a_i - a_j + B_ij. For many items the covariances are taken as
    proportional to V_i V_j, which has the right sum in every row; the whole is about 1 beside n.
    """
    if draws.excluded is None:
        return float(h.sum() ** 2 * (inverse.sum() ** 2 - (inverse**2).sum()))
    if draws.n_items > MOST_ITEMS:
        variance = draws.variance[inverse > 0]
        return float(1 - (variance**2).sum() / variance.sum() ** 2)
    from scipy.sparse import csr_array

    excluded = csr_array(
        (np.sqrt(h)[draws.excluded.unit], draws.excluded.item, draws.excluded.start),
        shape=(len(h), draws.n_items),
    )
    a = draws.over_users(h)  # H - a_i
    covariance = a[:, None] + a[None, :] - h.sum() + (excluded.T @ excluded).toarray()
    np.fill_diagonal(covariance, 0.0)
    return float(inverse @ (covariance**2) @ inverse)


# ------------------------------------------------------------------------------------------------------- uneven items

MUCH = 0.10  # an effect from which items are shown "far" more often or more rarely
SIDE = 2 / 3  # the part of the squared deviations from which one side is the direction


class Direction(StrEnum):
    """On which side of chance the deviating items lie."""

    OFTEN = "items shown too often"
    RARELY = "items shown too rarely"
    BOTH = "items shown too often and items shown too rarely"


@record
class Unevenness:
    """How unevenly items were shown, beyond what uniform draws give.

    `effect` is the coefficient of variation of exposure beyond chance, 0.58 where rates differ by a standard deviation
    of 58 % of their mean; `direction` is None where it is 0.
    """

    effect: float
    direction: Direction | None

    @property
    def words(self) -> str:
        """What the effect means for items, in words."""
        more = "far more" if self.effect >= MUCH else "a little more"
        if self.direction is Direction.BOTH:
            return f"some items were exposed {more} often, others {more} rarely than uniform draws give"
        how = "rarely" if self.direction is Direction.RARELY else "often"
        return f"some items were exposed {more} {how} than uniform draws give"


def unevenness(draws: Draws, dispersion: Dispersion) -> Unevenness:
    """The effect, √(max(0, X² - df) / Σ E), and its direction: the side that has two thirds of Σ (c - E)² / V.

    >>> from truerank.core.ids import Ids
    >>> user, item = np.arange(40), np.repeat([0, 1], [35, 5])
    >>> draws = Draws.of(Log(Ids.of(range(40)), Ids.of(["a", "b", "c", "d"]), user, item, {}))  # 10 of each by chance
    >>> uneven = unevenness(draws, item_dispersion(draws))
    >>> round(uneven.effect, 2), uneven.direction.value  # X² = (25² + 5² + 2 · 10²) / 7.5 · 3/4 = 85 on 3 df, Σ E = 40
    (1.43, 'items shown too often')
    """
    varies = draws.variance > LEAST
    expected, variance = draws.expected[varies], draws.variance[varies]
    effect, away = dispersion.effect(float(expected.sum())), draws.count[varies] - expected
    if effect == 0:
        return Unevenness(effect, None)
    squares = away**2 / variance
    above = float(squares[away > 0].sum() / squares.sum())
    direction = Direction.OFTEN if above >= SIDE else Direction.RARELY if above <= 1 - SIDE else Direction.BOTH
    return Unevenness(effect, direction)
