"""The order in which exponential clocks ring: one kernel for weighted sampling and for stochastic rankings.

Member i has a clock that rings after an exponential time with rate w_i. The first n to ring are a weighted sample
without replacement (successive draws, each proportional to weight among those left); the whole order is a
Plackett-Luce ranking. Given the time t at which i rings, the others have rung independently, each with probability
1 - exp(-w_j t), so every probability is a one-dimensional integral.
"""

from __future__ import annotations

import math

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError

WIDEST = 0.2  # step in log time; the trapezoid rule then errs by less than 1e-12 for any smooth integrand here
NODES_AT_ONCE = 64
EXACT_STEPS = 3e8  # the integral is taken up to this many multiplications, about half a second


def rank_probabilities(weight: Floats, *, depth: int | None = None) -> Floats:
    """P(i rings as number r), [members x ranks up to `depth`], all ranks by default.

    P(rank of i = r) = ∫ w_i exp(-w_i t) P(r - 1 of the others have rung by t) dt. Members of weight 0 ring after all
    others, in any order.

    >>> rank_probabilities(np.array([2.0, 1.0])).round(12).tolist()
    [[0.666666666667, 0.333333333333], [0.333333333333, 0.666666666667]]
    """
    weight = checked_weights(weight)
    n = len(weight)
    depth = n if depth is None else min(depth, n)
    found = np.zeros((n, depth))
    able = np.flatnonzero(weight > 0)
    found[able, : min(depth, len(able))] = _positive(weight[able], min(depth, len(able)))
    if len(able) < min(depth, n):
        found[np.flatnonzero(weight == 0), len(able) :] = 1.0 / (n - len(able))
    return found


def inclusion_probabilities(weight: Floats, n: int, *, most_steps: float = EXACT_STEPS) -> Floats:
    """P(i is among the first n to ring): the inclusion probabilities of a weighted sample without replacement.

    By the integral while that takes at most `most_steps`, about half a second: any n of 250 members, the first few of
    thousands.
    Beyond, by Rosén's equation, π = 1 - exp(-w τ) with Σ π = n, whose error falls like 1 / members (at most 0.2 % for
    n = 250 of 500 members with lognormal weights). Members of weight 0 come in only when all others are in.

    >>> inclusion_probabilities(np.array([1.0, 1.0, 2.0]), 1).round(12).tolist()
    [0.25, 0.25, 0.5]
    """
    weight = checked_weights(weight)
    able = weight > 0
    if n <= 0:
        return np.zeros(len(weight))
    if n >= len(weight):
        return np.ones(len(weight))
    found = np.zeros(len(weight))
    if n >= able.sum():
        found[able] = 1.0
        found[~able] = (n - able.sum()) / (~able).sum()
    elif exact_steps(int(able.sum()), n) <= most_steps:
        found[able] = np.minimum(_positive(weight[able], n).sum(axis=1), 1.0)
    else:
        found[able] = rosen_probabilities(weight[able], n)
    return found


def exact_steps(n_members: int, n: int, *, first: bool = False) -> float:
    """About how many multiplications the inclusion probabilities of n of that many members take, or the first's."""
    nodes = 45 / min(WIDEST, 0.6 / math.sqrt(max(n, 1)))
    return n_members * (1 if first else math.log2(n_members + 1)) * n * nodes


def inclusion_of_first(weight: Floats, n: int) -> float:
    """P(the first member is among the first n to ring), by the integral; weights are positive, 0 < n < members.

    >>> round(inclusion_of_first(np.array([2.0, 1.0, 1.0]), 1), 12)
    0.5
    """
    time, step = _nodes(weight, n)
    rung = np.zeros((len(time), n))
    rung[:, 0] = 1.0
    for other in weight[1:]:
        _join(rung, -np.expm1(-other * time)[:, None])
    return min(float(step * weight[0] * (time * np.exp(-weight[0] * time)) @ rung.sum(axis=1)), 1.0)


def rosen_probabilities(weight: Floats, n: float) -> Floats:
    """π = 1 - exp(-w τ) with Σ π = n (Rosén 1972), for positive weights and 0 < n < members.

    >>> rosen_probabilities(np.array([1.0, 1.0, 1.0, 1.0]), 1).round(12).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    scaled = weight / weight.mean()
    # Σ π is concave and rising in τ, so Newton from below never overshoots; in log τ it also starts well
    tau = -math.log1p(-n / len(weight))
    for _ in range(200):
        rung = -np.expm1(-scaled * tau)
        step = (n - rung.sum()) / (scaled * np.exp(-scaled * tau)).sum()
        # far too long a step would leave the region where exp can be told from 0
        tau_next = tau * 2 if step > tau else tau + step
        if abs(tau_next - tau) <= 1e-15 * tau:
            break
        tau = tau_next
    return np.asarray(-np.expm1(-scaled * tau), dtype=np.float64)


def checked_weights(weight: Floats) -> Floats:
    """Weights as given; refused unless all are finite and not negative."""
    weight = np.asarray(weight, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise InputError(f"weight {weight[bad[0]]:g} of row {bad[0]:,}; expected a finite number from 0.")
    return weight


def _positive(weight: Floats, depth: int) -> Floats:
    """Rank probabilities of members whose weights are all positive, by the trapezoid rule in log time."""
    found = np.zeros((len(weight), depth))
    if depth == 0:
        return found
    time, step = _nodes(weight, depth)
    for start in range(0, len(time), NODES_AT_ONCE):
        t = time[start : start + NODES_AT_ONCE, None]
        rung = -np.expm1(-weight * t)
        density = step * weight * t * np.exp(-weight * t)
        nobody = np.zeros((len(t), depth))
        nobody[:, 0] = 1.0
        add_without_each(rung, density, nobody, np.arange(len(weight)), found)
    return found


def _nodes(weight: Floats, depth: int) -> tuple[Floats, float]:
    """Times at a constant step of their logarithm: none has rung at the first, more than `depth` have at the last."""
    # the count of rung clocks changes within about 1 / sqrt(count) of its time: the step has to resolve that
    step = min(WIDEST, 0.6 / math.sqrt(depth))
    low, high = math.log(1e-17 / weight.sum()), math.log(45.0 / weight.min())
    time = np.exp(np.arange(low, high + step, step))
    expected = np.array([float(-np.expm1(-weight * t).sum()) for t in time])
    return time[expected < depth + 12 * math.sqrt(depth) + 40], step


def add_without_each(rung: Floats, density: Floats, others: Floats, members: Ints, found: Floats) -> None:
    """Add Σ over nodes of density x P(r - 1 of the others have rung) to `found`, for each of `members`.

    `others` [nodes x depth] is the distribution of how many of those outside `members` have rung. Halving the members
    takes every one into all distributions but its own, with additions of positive numbers only.
    """
    if len(members) == 1:
        found[members[0]] += density[:, members[0]] @ others
        return
    for kept, joined in ((members[::2], members[1::2]), (members[1::2], members[::2])):
        count = others.copy()
        for i in joined:
            _join(count, rung[:, i : i + 1])
        add_without_each(rung, density, count, kept, found)


def _join(count: Floats, p: Floats) -> None:
    """One more member, rung with probability p, in the distribution of how many have rung."""
    count[:, 1:] = count[:, 1:] * (1 - p) + count[:, :-1] * p
    count[:, :1] *= 1 - p
