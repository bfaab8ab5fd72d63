"""Do kinds of users get kinds of items? User group x item group, given how much each user and item was shown.

Margins can look random while each user was shown what suits them. Groups come from other pairs than those tested: from
training data, or from a half of the log. Given the numbers of rows of users and items, which are the sufficient
statistics of P(shown) = σ(a_u + b_i), every matrix with these margins is equally likely if users and items do not
interact; the table of groups then has known mean and covariance, to first order those of the score test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.log import Pairs
from truerank.exposure.randomness.draws import Draws, owners

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
    from scipy.special import chdtrc

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
    from scipy.special import expit

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
