"""What uniform draws give: of the N_u candidates of each user, as many as were shown, all subsets equally likely.

The null of "is this log random": the number shown to each user is taken as given, users are independent, and a user's
set is a simple random sample without replacement. Means and variances of sums over rows are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.errors import InputError
from truerank.core.log import Log, Pairs

MOST_ITEMS = 3000  # up to which covariances of all pairs of items are added up where candidates differ by user


@dataclass(frozen=True, slots=True)
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
            owner = owners(shown)
            width = max(len(log.items), 1)
            kept = ~np.isin(owner * width + shown.item, owners(excluded) * width + excluded.item)
            shown = Pairs.of(owner[kept], shown.item[kept], n_units=log.n_units)
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
        n = self.n_candidates
        return np.divide(self.shown.count, n, out=np.zeros(len(n)), where=n > 0)

    @property
    def spread(self) -> Floats:
        """g_u = f_u (1 - f_u): the variance of whether one candidate was shown."""
        return self.share * (1 - self.share)

    @property
    def spread_of_sums(self) -> Floats:
        """g_u N_u / (N_u - 1), by which Σ (s - mean s)² over a user's candidates becomes the variance of a sum of s."""
        n = self.n_candidates
        return self.spread * np.divide(n, n - 1, out=np.zeros(len(n)), where=n > 1)

    def over_candidates(self, score: Floats) -> Floats:
        """Σ of an item's score over the candidates of each user."""
        total = np.full(len(self.shown.count), float(score.sum()))
        if self.excluded is None:
            return total
        return total - np.bincount(owners(self.excluded), weights=score[self.excluded.item], minlength=len(total))

    def over_users(self, weight: Floats) -> Floats:
        """Σ of a user's weight over the users of whom each item is a candidate."""
        total = np.full(self.n_items, float(weight.sum()))
        if self.excluded is None:
            return total
        mass = np.bincount(self.excluded.item, weights=weight[owners(self.excluded)], minlength=self.n_items)
        return np.maximum(total - mass, 0.0)

    @property
    def count(self) -> Floats:
        """c_i: how many users were shown each item."""
        return np.bincount(self.shown.item, minlength=self.n_items).astype(np.float64)

    def contrast(self, score: Floats) -> tuple[float, float]:
        """Σ of the scores of shown items minus its mean under uniform draws, and its variance: both exact.

        Σ_u [Σ_{i shown} s_i - f_u Σ_{C_u} s_i]; Σ_u g_u N/(N-1) Σ_{C_u} (s_i - mean s)².
        """
        total, squares, n = self.over_candidates(score), self.over_candidates(score**2), self.n_candidates
        around = squares - np.divide(total**2, n, out=np.zeros(len(n)), where=n > 0)
        found = float(score[self.shown.item].sum() - (self.share * total).sum())
        return found, float((self.spread_of_sums * np.maximum(around, 0.0)).sum())


def owners(pairs: Pairs) -> Ints:
    """The unit of each pair."""
    return np.repeat(np.arange(len(pairs.start) - 1), pairs.count)


@dataclass(frozen=True, slots=True)
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


def item_dispersion(draws: Draws) -> Dispersion | None:
    """How much more item counts differ than uniform draws make them differ; None where no count can vary.

    E_i = Σ_u 1[i∈C_u] f_u, V_i = Σ_u 1[i∈C_u] g_u, cov(c_i, c_j) = -Σ_u 1[i,j∈C_u] g_u / (N_u - 1). The total T
    is a sum over pairs of users, whose terms are uncorrelated, so with R_u the part of user u in the correlations
    Var T = 2 (tr R² - Σ_u tr R_u²) + Σ_u (1 - 2 f_u)² Var Σ_{i shown} 1/V_i, exactly.
    """
    variance = draws.over_users(draws.spread)
    varies = variance > 1e-9
    if np.count_nonzero(varies) < 2:
        return None
    inverse = np.where(varies, 1 / np.where(varies, variance, 1.0), 0.0)
    expected = draws.over_users(draws.share)
    total = float((inverse * (draws.count - expected) ** 2).sum())
    n, g = draws.n_candidates, draws.spread
    sums, squares = draws.over_candidates(inverse), draws.over_candidates(inverse**2)
    h = np.divide(g, n - 1, out=np.zeros(len(n)), where=n > 1)
    per_user = g**2 * squares + h**2 * (sums**2 - squares)
    around = squares - np.divide(sums**2, n, out=np.zeros(len(n)), where=n > 0)
    own = (1 - 2 * draws.share) ** 2 * draws.spread_of_sums * np.maximum(around, 0.0)
    trace = float(np.count_nonzero(varies)) + _off_diagonal(draws, h, inverse)
    return Dispersion(
        total, int(np.count_nonzero(varies)), max(float(2 * (trace - per_user.sum()) + own.sum()), 0.0), trace
    )


def _off_diagonal(draws: Draws, h: Floats, inverse: Floats) -> float:
    """Σ_{i≠j} (Σ_u 1[i,j∈C_u] h_u)² / (V_i V_j).

    Exclusions x give Σ_u h_u (1 - x_ui)(1 - x_uj) = H - a_i - a_j + B_ij. For many items the covariances are taken as
    proportional to V_i V_j, which has the right sum in every row; the whole is about 1 beside n.
    """
    if draws.excluded is None:
        return float(h.sum() ** 2 * (inverse.sum() ** 2 - (inverse**2).sum()))
    if draws.n_items > MOST_ITEMS:
        variance = draws.over_users(draws.spread)[inverse > 0]
        return float(1 - (variance**2).sum() / variance.sum() ** 2)
    from scipy.sparse import csr_array

    excluded = csr_array(
        (np.sqrt(h)[owners(draws.excluded)], draws.excluded.item, draws.excluded.start),
        shape=(len(h), draws.n_items),
    )
    a = draws.over_users(h)  # H - a_i
    covariance = a[:, None] + a[None, :] - h.sum() + (excluded.T @ excluded).toarray()
    np.fill_diagonal(covariance, 0.0)
    return float(inverse @ (covariance**2) @ inverse)


GROUPS = 3
MOST = 1500  # users and items that enter: those with the most rows in what the groups are made of
FEWEST = 20  # rows expected in a cell of the table of groups, below which nothing is said


@dataclass(frozen=True, slots=True)
class Interaction:
    """The score test of user group x item group given the margins."""

    statistic: float
    df: int
    p: float
    rows: int  # tested


def interaction(draws: Draws, source: Pairs) -> Interaction | None:
    """Test the draws with groups from `source`, None where there are too few rows for groups.

    `source` must not be the tested pairs: either other data, or pairs that the draws exclude.
    """
    users, items = _busiest(source, draws.n_items)
    shown, possible = _block(draws, users, items)
    user_side, item_side = _leading(source, users, items, draws.n_items)
    keep_users, keep_items = _can_vary(shown, possible)
    shown, possible = shown[np.ix_(keep_users, keep_items)], possible[np.ix_(keep_users, keep_items)]
    user_group, item_group = _thirds(user_side[keep_users]), _thirds(item_side[keep_items])
    if len(np.unique(user_group)) < GROUPS or len(np.unique(item_group)) < GROUPS:
        return None
    if shown.sum() < FEWEST * GROUPS**2:
        return None
    chance = _margins_fitted(shown, possible)
    contrasts = _without_margins(user_group, item_group, chance * (1 - chance))
    residual = shown - chance
    z = np.array([float((each * residual).sum()) for each in contrasts])
    weight = chance * (1 - chance)
    # fixed margins make pairs of a row and of a column compete; exactly this factor where all margins are equal
    n_users, n_items = shown.shape
    competing = n_users * n_items / ((n_users - 1) * (n_items - 1))
    covariance = competing * np.array([[float((a * b * weight).sum()) for b in contrasts] for a in contrasts])
    statistic = float(z @ np.linalg.pinv(covariance, hermitian=True) @ z)
    df = int(np.linalg.matrix_rank(covariance, hermitian=True))
    return Interaction(statistic, df, _upper_tail(statistic, df), int(shown.sum()))


def _upper_tail(statistic: float, df: int) -> float:
    from truerank.core.special import chdtrc

    return float(chdtrc(df, statistic))


def _busiest(source: Pairs, n_items: int) -> tuple[Ints, Ints]:
    """Users and items with the most source rows, ascending; ties by position."""
    of_item = np.bincount(source.item, minlength=n_items)
    return tuple(np.sort(np.argsort(-count, kind="stable")[:MOST]) for count in (source.count, of_item))  # type: ignore[return-value]


def _block(draws: Draws, users: Ints, items: Ints) -> tuple[Floats, Floats]:
    """Of these users and items: which pairs were shown, and which could have been."""
    shown = _dense(draws.shown, users, items, draws.n_items)
    if draws.excluded is None:
        return shown, np.ones_like(shown)
    return shown, 1 - _dense(draws.excluded, users, items, draws.n_items)


def _dense(pairs: Pairs, users: Ints, items: Ints, n_items: int) -> Floats:
    row, column = np.full(len(pairs.start) - 1, -1), np.full(n_items, -1)
    row[users], column[items] = np.arange(len(users)), np.arange(len(items))
    u, i = row[owners(pairs)], column[pairs.item]
    inside = (u >= 0) & (i >= 0)
    found = np.zeros((len(users), len(items)))
    found[u[inside], i[inside]] = 1.0
    return found


def _leading(source: Pairs, users: Ints, items: Ints, n_items: int) -> tuple[Floats, Floats]:
    """The leading direction of the source beyond its margins: a number for each user and each item.

    Correspondence analysis: the first singular vectors of (O - r c / n) / sqrt(r c), with margins raised by their means
    so that users and items with few rows do not rule; by power iteration from a fixed start.
    """
    matrix = _dense(source, users, items, n_items)
    r, c = matrix.sum(axis=1), matrix.sum(axis=0)
    left, right = 1 / np.sqrt(r + r.mean() + 1e-12), 1 / np.sqrt(c + c.mean() + 1e-12)
    matrix = (matrix - np.outer(r, c) / max(float(r.sum()), 1.0)) * left[:, None] * right[None, :]
    v = np.cos(1 + np.arange(len(items), dtype=np.float64))  # any start that is no margin
    for _ in range(60):
        u = matrix @ v
        v = matrix.T @ u
        norm = float(np.linalg.norm(v))
        if norm == 0:
            break
        v /= norm
    return matrix @ v, v


def _thirds(value: Floats) -> Ints:
    """Three groups of about equal size by value; equal values stay together."""
    edge = np.unique(np.quantile(value, np.arange(1, GROUPS) / GROUPS)) if len(value) else value
    return np.searchsorted(edge, value, side="left").astype(np.int64)


def _can_vary(shown: Floats, possible: Floats) -> tuple[Bools, Bools]:
    """Users and items that have some but not all of what is possible; the others say nothing given the margins."""
    users, items = np.ones(len(shown), dtype=bool), np.ones(shown.shape[1], dtype=bool)
    while True:
        inside = np.outer(users, items)
        n, all_of = (shown * inside).sum(axis=1), (possible * inside).sum(axis=1)
        m, all_at = (shown * inside).sum(axis=0), (possible * inside).sum(axis=0)
        new_users, new_items = users & (n > 0) & (n < all_of), items & (m > 0) & (m < all_at)
        if (new_users == users).all() and (new_items == items).all():
            return users, items
        users, items = new_users, new_items


def _margins_fitted(shown: Floats, possible: Floats) -> Floats:
    """σ(a_u + b_i) on possible pairs, with the same numbers of rows for every user and item; 0 elsewhere."""
    from truerank.core.special import expit

    r, c = shown.sum(axis=1), shown.sum(axis=0)
    a, b = np.log(r / np.maximum(possible.sum(axis=1) - r, 1e-9)), np.zeros(len(c))
    chance: Floats = possible * expit(a[:, None] + b[None, :])
    for _ in range(200):
        b += _step(c - chance.sum(axis=0), (chance * (1 - chance)).sum(axis=0))
        chance = possible * expit(a[:, None] + b[None, :])
        a += _step(r - chance.sum(axis=1), (chance * (1 - chance)).sum(axis=1))
        chance = possible * expit(a[:, None] + b[None, :])
        if float(np.abs(c - chance.sum(axis=0)).max()) < 1e-6 and float(np.abs(r - chance.sum(axis=1)).max()) < 1e-6:
            break
    return chance


def _step(difference: Floats, slope: Floats) -> Floats:
    return np.clip(difference / np.maximum(slope, 1e-12), -2.0, 2.0)


def _without_margins(user_group: Ints, item_group: Ints, weight: Floats) -> list[Floats]:
    """The indicators of pairs of groups minus their weighted projection on users and items."""
    row, column = weight.sum(axis=1), weight.sum(axis=0)
    found = []
    for a in range(GROUPS - 1):
        for b in range(GROUPS - 1):
            each = np.outer(user_group == a, item_group == b).astype(np.float64)
            for _ in range(100):
                each = each - ((each * weight).sum(axis=1) / row)[:, None]
                shift = (each * weight).sum(axis=0) / column
                each = each - shift[None, :]
                if float(np.abs(shift).max()) < 1e-9:
                    break
            found.append(each)
    return found
