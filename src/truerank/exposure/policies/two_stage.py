"""Rank probabilities of two-stage systems: a random candidate generator, then a ranker over what it retrieved (eq. 6).

Exact, without a sum over candidate sets. The exponential-clock integral of `clocks.py` goes through: given the time at
which an item's clock rings, each other item was retrieved and has rung, retrieved and has not, or not retrieved.
"""

from __future__ import annotations

import math

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.special import gammaln
from truerank.sampling.clocks import add_ranks, checked_weights

WIDEST = 0.2  # step in log time, as in clocks.py
NODES_AT_ONCE = 128


def subset_rank_probabilities(weight: Floats, k: int, *, depth: int | None = None) -> Floats:
    """P(item i stands at rank r), [items x ranks]: a uniform subset of k items, ranked by Plackett-Luce.

    Rows sum to k / n where depth is k. With F_j = 1 - exp(-w_j t), P(rank r | t) is the sum over sets of k - 1 others,
    r - 1 of which have rung, of Π F Π (1 - F), divided by C(n, k).

    >>> subset_rank_probabilities(np.array([1.0, 1.0, 1.0]), 2).round(12).tolist()
    [[0.333333333333, 0.333333333333], [0.333333333333, 0.333333333333], [0.333333333333, 0.333333333333]]
    """
    weight = _positive(weight)
    n = len(weight)
    if not 1 <= k <= n:
        raise InputError(f"{k} candidates of {n} items; expected from 1 to all of them.")
    depth = k if depth is None else min(depth, k)
    found = np.zeros((n, depth))
    time, step = _nodes(weight, depth)
    # the state holds P(m of those seen so far are in the subset, b of them have rung), so that nothing grows with n: an
    # item is in given that m of the earlier ones are with the odds of drawing k - 1 of n - 1 one after the other
    for start in range(0, len(time), NODES_AT_ONCE):
        t = time[start : start + NODES_AT_ONCE, None]
        rung = -np.expm1(-weight * t)
        density = step * weight * t * np.exp(-weight * t) * (k / n)
        nobody = np.zeros((len(t), 1, depth))
        nobody[:, 0, 0] = 1.0
        _leave_one_out(rung, density, nobody, np.arange(n), found, seen=0, k=k)
    return found


def retrieved_rank_probabilities(weight: Floats, retrieval: Floats, *, depth: int | None = None) -> Floats:
    """P(item i stands at rank r): each item is retrieved by itself with its probability, then ranked by Plackett-Luce.

    >>> retrieved_rank_probabilities(np.array([1.0, 1.0]), np.array([1.0, 0.5])).round(12).tolist()
    [[0.75, 0.25], [0.25, 0.25]]
    """
    weight, retrieval = _positive(weight), checked_retrieval(retrieval, len(weight))
    n = len(weight)
    depth = n if depth is None else min(depth, n)
    found = np.zeros((n, depth))
    time, step = _nodes(weight, depth)
    for start in range(0, len(time), NODES_AT_ONCE):
        t = time[start : start + NODES_AT_ONCE, None]
        rung = -np.expm1(-weight * t) * retrieval
        density = step * weight * t * np.exp(-weight * t) * retrieval
        add_ranks(rung, density, found)
    return found


def subset_order_probabilities(place: Ints, k: int, *, depth: int | None = None) -> Floats:
    """P(item i stands at rank r): a uniform subset of k items in a fixed order; `place` is 0 for the best item.

    Hypergeometric: r - 1 of the `place` better items and k - r of the worse ones are in the subset with it.

    >>> subset_order_probabilities(np.array([0, 1, 2]), 2).round(12).tolist()
    [[0.666666666667, 0.0], [0.333333333333, 0.333333333333], [0.0, 0.666666666667]]
    """
    n = len(place)
    if not 1 <= k <= n:
        raise InputError(f"{k} candidates of {n} items; expected from 1 to all of them.")
    depth = k if depth is None else min(depth, k)
    better, rank = np.asarray(place, dtype=np.float64)[:, None], np.arange(1.0, depth + 1.0)[None, :]
    possible = (rank - 1 <= better) & (k - rank <= n - 1 - better)
    ways = _log_choose(better, rank - 1) + _log_choose(n - 1 - better, k - rank)
    whole = _log_choose(np.float64(n), np.float64(k))
    return np.where(possible, np.exp(np.where(possible, ways, 0.0) - whole), 0.0)


def retrieved_order_probabilities(place: Ints, retrieval: Floats, *, depth: int | None = None) -> Floats:
    """P(item i stands at rank r): items retrieved each by itself, then in a fixed order; `place` is 0 for the best.

    >>> retrieved_order_probabilities(np.array([0, 1]), np.array([0.5, 1.0])).tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """
    n, retrieval = len(place), checked_retrieval(retrieval, len(place))
    depth = n if depth is None else min(depth, n)
    found, better = np.zeros((n, depth)), np.zeros(depth)
    better[0] = 1.0
    for item in np.argsort(place):
        p = retrieval[item]
        found[item] = p * better
        better = better * (1 - p) + np.concatenate([[0.0], better[:-1] * p])
    return found


def checked_retrieval(retrieval: Floats, n: int) -> Floats:
    retrieval = np.asarray(retrieval, dtype=np.float64)
    if retrieval.shape != (n,) or not ((retrieval >= 0) & (retrieval <= 1)).all():
        raise InputError(f"retrieval probabilities of shape {retrieval.shape}; expected {n} numbers in [0, 1].")
    return retrieval


def _positive(weight: Floats) -> Floats:
    weight = checked_weights(weight)
    if not len(weight) or not (weight > 0).all():
        raise InputError("a ranker weight of 0, or none at all; expected a positive weight for every item of the pool.")
    return weight


def _nodes(weight: Floats, depth: int) -> tuple[Floats, float]:
    step = min(WIDEST, 0.6 / math.sqrt(depth))
    low, high = math.log(1e-17 / weight.sum()), math.log(45.0 / weight.min())
    return np.exp(np.arange(low, high + step, step)), step


def _log_choose(n: Floats | np.float64, k: Floats | np.float64) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def _leave_one_out(
    rung: Floats, density: Floats, others: Floats, members: Ints, found: Floats, *, seen: int, k: int
) -> None:
    """As in clocks.py, by halving: every item enters all states but its own, with additions of positive numbers only.

    `others` [nodes x members of the subset x rung] after `seen` of the n - 1 other items; only numbers of members are
    kept from which k - 1 can still be reached.
    """
    if len(members) == 1:
        found[members[0]] += density[:, members[0]] @ others[:, -1, :]
        return
    n = rung.shape[1]
    for kept, joined in ((members[::2], members[1::2]), (members[1::2], members[::2])):
        state = others
        for number, j in enumerate(joined, seen):
            low, _ = _reachable(number, n, k)
            new_low, new_high = _reachable(number + 1, n, k)
            # k - 1 of n - 1 others: the next one is in with the share of places that are left
            enters = ((k - 1 - low - np.arange(state.shape[1])) / (n - 1 - number))[None, :, None]
            p = rung[:, j, None, None]
            moved = state * enters
            new = np.zeros((len(state), new_high - new_low + 1, state.shape[2]))
            stays = (state - moved)[:, new_low - low :]
            new[:, : stays.shape[1]] = stays
            moved = moved[:, : new_high - low]
            at = low + 1 - new_low
            new[:, at : at + moved.shape[1]] += moved * (1 - p)
            new[:, at : at + moved.shape[1], 1:] += moved[:, :, :-1] * p
            state = new
        _leave_one_out(rung, density, state, kept, found, seen=seen + len(joined), k=k)


def _reachable(seen: int, n: int, k: int) -> tuple[int, int]:
    """How many of `seen` others can be in the subset when k - 1 of all n - 1 are."""
    return max(0, k - 1 - (n - 1 - seen)), min(seen, k - 1)
