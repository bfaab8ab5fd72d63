"""Were some groups of users shown other items than other groups? Groups come from other rows than the tested ones."""

from __future__ import annotations

from itertools import product

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.log import Pairs
from truerank.exposure.randomness.draws import Draws

GROUPS = 3
MOST = 1500  # users and items that enter: those with the most rows in what the groups are made of
FEWEST = 20  # rows expected in a cell of the table of groups, below which nothing is tested


def interaction(draws: Draws, source: Pairs) -> tuple[float, int] | None:
    """The score test of user group x item group given the margins: its statistic and degrees of freedom.

    Groups are those of `source`, which must not be the tested pairs: either other data, or pairs that the draws
    exclude. None where there are too few rows for groups.
    """
    of_item = np.bincount(source.item, minlength=draws.n_items)
    users, items = (np.sort(np.argsort(-count, kind="stable")[:MOST]) for count in (source.count, of_item))

    def block(pairs: Pairs) -> Floats:
        from scipy.sparse import csr_array

        shape = len(pairs.start) - 1, draws.n_items
        whole = csr_array((np.ones(len(pairs.item)), pairs.item, pairs.start), shape=shape)
        return np.asarray(whole[users][:, items].toarray())

    shown = block(draws.shown)
    possible = np.ones_like(shown) if draws.excluded is None else 1 - block(draws.excluded)
    user_side, item_side = _leading(block(source))
    varying = _can_vary(shown, possible)
    shown, possible = shown[np.ix_(*varying)], possible[np.ix_(*varying)]
    user_group, item_group = _thirds(user_side[varying[0]]), _thirds(item_side[varying[1]])
    if min(len(np.unique(user_group)), len(np.unique(item_group))) < GROUPS or shown.sum() < FEWEST * GROUPS**2:
        return None
    probability = _margins_fitted(shown, possible)
    weight = probability * (1 - probability)
    contrasts = np.stack(_without_margins(user_group, item_group, weight))
    z = (contrasts * (shown - probability)).sum(axis=(1, 2))
    # fixed margins make pairs of a row and of a column compete; exactly this factor where all margins are equal
    n_users, n_items = shown.shape
    competing = n_users * n_items / ((n_users - 1) * (n_items - 1))
    covariance = competing * np.einsum("aui,bui,ui->ab", contrasts, contrasts, weight, optimize=True)
    statistic = float(z @ np.linalg.pinv(covariance, hermitian=True) @ z)
    return statistic, int(np.linalg.matrix_rank(covariance, hermitian=True))


def _leading(matrix: Floats) -> tuple[Floats, Floats]:
    """The leading direction of the source beyond its margins: a number for each user and each item.

    Correspondence analysis: the first singular vectors of (O - r c / n) / sqrt(r c), with margins raised by their means
    so that users and items with few rows do not rule; by power iteration from a fixed start.
    """
    r, c = matrix.sum(axis=1), matrix.sum(axis=0)
    left, right = 1 / np.sqrt(r + r.mean() + 1e-12), 1 / np.sqrt(c + c.mean() + 1e-12)
    matrix = (matrix - np.outer(r, c) / max(float(r.sum()), 1.0)) * left[:, None] * right[None, :]
    v = np.cos(1 + np.arange(matrix.shape[1], dtype=np.float64))  # any start that is no margin
    for _ in range(60):
        v = matrix.T @ (matrix @ v)
        norm = float(np.linalg.norm(v))
        if norm == 0:
            break
        v /= norm
    return matrix @ v, v


def _thirds(value: Floats) -> Ints:
    """Three groups of about equal size by value; equal values stay together."""
    edge = np.unique(np.quantile(value, np.arange(1, GROUPS) / GROUPS)) if len(value) else value
    return np.searchsorted(edge, value, side="left").astype(np.int64)


def _can_vary(shown: Floats, possible: Floats) -> list[Bools]:
    """Users and items that have some but not all of what is possible; the others tell nothing given the margins."""
    varying = [np.ones(n, dtype=bool) for n in shown.shape]
    while True:
        inside = np.outer(*varying)
        counts = [((shown * inside).sum(axis=axis), (possible * inside).sum(axis=axis)) for axis in (1, 0)]
        new = [side & (n > 0) & (n < most) for side, (n, most) in zip(varying, counts, strict=True)]
        if all((a == b).all() for a, b in zip(new, varying, strict=True)):
            return varying
        varying = new


def _margins_fitted(shown: Floats, possible: Floats) -> Floats:
    """σ(a_u + b_i) on possible pairs, with the same numbers of rows for every user and item; 0 elsewhere."""
    from truerank.core.special import expit

    r = shown.sum(axis=1)
    a, b = np.log(r / np.maximum(possible.sum(axis=1) - r, 1e-9)), np.zeros(shown.shape[1])
    probability: Floats = possible * expit(a[:, None] + b)
    for _ in range(200):
        for axis, effect in enumerate((b, a)):
            slope = (probability * (1 - probability)).sum(axis=axis)
            missing = shown.sum(axis=axis) - probability.sum(axis=axis)
            np.add(effect, np.clip(missing / np.maximum(slope, 1e-12), -2.0, 2.0), out=effect)
            probability = possible * expit(a[:, None] + b)
        if max(float(np.abs((shown - probability).sum(axis=axis)).max()) for axis in (0, 1)) < 1e-6:
            break
    return probability


def _without_margins(user_group: Ints, item_group: Ints, weight: Floats) -> list[Floats]:
    """The indicators of pairs of groups minus their weighted projection on users and items."""
    row, column = weight.sum(axis=1), weight.sum(axis=0)
    contrasts = []
    for a, b in product(range(GROUPS - 1), repeat=2):
        contrast = np.outer(user_group == a, item_group == b).astype(np.float64)
        for _ in range(100):
            contrast = contrast - ((contrast * weight).sum(axis=1) / row)[:, None]
            shift = (contrast * weight).sum(axis=0) / column
            contrast = contrast - shift[None, :]
            if float(np.abs(shift).max()) < 1e-9:
                break
        contrasts.append(contrast)
    return contrasts
