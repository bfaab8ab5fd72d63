"""The order in which exponential clocks ring: one kernel for weighted sampling and for stochastic rankings.

Member i has a clock that rings after an exponential time with rate w_i. The first n to ring are a weighted sample
without replacement (successive draws, each proportional to weight among those left); the whole order is a
Plackett-Luce ranking. Given the time t at which i rings, the others have rung independently, each with probability
1 - exp(-w_j t), so every probability is a one-dimensional integral.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError

WIDEST = 0.2  # step in log time; the trapezoid rule then errs by less than 1e-12 for any smooth integrand here
NODES_AT_ONCE = 64
JOIN = 20  # what taking one member into a distribution costs besides its multiplications
CALL = 2e5  # what one integral costs besides its steps
NEGLIGIBLE = -60.0  # logarithm of a probability that is left out
EXACT_STEPS = 1e9  # the integral is taken up to this many multiplications, about a third of a second


def rank_probabilities(weight: Floats, *, depth: int | None = None, retrieval: Floats | None = None) -> Floats:
    """P(i rings as number r), [members x ranks up to `depth`], all ranks by default.

    P(rank of i = r) = ∫ w_i exp(-w_i t) P(r - 1 of the others have rung by t) dt. Members of weight 0 ring after all
    others, in any order. With `retrieval` each clock is there by itself with that probability; weights are positive.

    >>> rank_probabilities(np.array([2.0, 1.0])).round(12).tolist()
    [[0.666666666667, 0.333333333333], [0.333333333333, 0.666666666667]]
    >>> rank_probabilities(np.array([1.0, 1.0]), retrieval=np.array([1.0, 0.5])).round(12).tolist()
    [[0.75, 0.25], [0.25, 0.25]]
    """
    weight = checked_weights(weight)
    n = len(weight)
    depth = n if depth is None else min(depth, n)
    probability = np.zeros((n, depth))
    able = np.flatnonzero(weight > 0)
    if len(able):
        ranks, there = np.zeros((len(able), min(depth, len(able)))), 1.0 if retrieval is None else retrieval
        _add_ranks(weight[able], *_nodes(weight[able], ranks.shape[1], there), ranks, there)
        probability[able, : ranks.shape[1]] = ranks
    if len(able) < depth:
        probability[np.flatnonzero(weight == 0), len(able) :] = 1.0 / (n - len(able))
    return probability


def inclusion_probabilities(weight: Floats, n: int, *, most_steps: float = EXACT_STEPS) -> Floats:
    """P(i is among the first n to ring): the inclusion probabilities of a weighted sample without replacement.

    Equal weights have a formula. Others by the integral while that takes at most `most_steps`, a third of a second: any
    n of 500 members, the first few of thousands. Beyond, by Rosén's equation, π = 1 - exp(-w τ) with Σ π = n, whose
    error falls like 1 / members and grows with the spread of weights: at most 0.2 % for n = 250 of 500 members with
    lognormal weights of σ = 1.5, 0.4 % for 150 of 300 with σ = 2. Members of weight 0 come in only when all others are
    in.

    >>> inclusion_probabilities(np.array([1.0, 1.0, 2.0]), 1).round(12).tolist()
    [0.25, 0.25, 0.5]
    """
    weight = checked_weights(weight)
    able = weight > 0
    if n <= 0:
        return np.zeros(len(weight))
    if n >= len(weight):
        return np.ones(len(weight))
    probability, n_able = np.zeros(len(weight)), int(able.sum())
    steps = exact_steps(weight, n)
    if n >= n_able:
        probability[able] = 1.0
        probability[~able] = (n - n_able) / (len(weight) - n_able)
    elif steps == 0:
        probability[able] = n / n_able
    elif steps <= most_steps:
        probability[able] = np.minimum(_first_of(weight[able], n), 1.0)
    else:
        probability[able] = rosen_probabilities(weight[able], n)
    return probability


def exact_steps(weight: Floats, n: int) -> float:
    """About how many multiplications the inclusion probabilities of n members take, 0 where there is a formula."""
    able = weight[weight > 0]
    if not 0 < n < len(able) or (able == able[0]).all():
        return 0.0
    return len(able) * math.log2(len(able) + 1) * (n + JOIN) * 10 / _step(n) + CALL


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
    """Weights as given, of one pool or in a row for each pool; refused unless all are finite and not negative."""
    weight = np.asarray(weight, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise InputError(f"weight {weight.flat[bad[0]]:g} of row {bad[0]:,}; expected a finite number from 0.")
    return weight


def _first_of(weight: Floats, n: int) -> Floats:
    """P(i is among the first n), 0 < n < members, all weights positive: their ranks up to n, summed."""
    time, width = _nodes(weight, n)
    sure = _sure(weight, n, time)
    ranks = np.zeros((len(weight), n))
    _add_ranks(weight, time[sure:], width[sure:], ranks)
    early = time[:sure, None]
    return np.asarray(ranks.sum(axis=1) + (width[:sure] * time[:sure]) @ np.exp(-weight * early) * weight)


def _add_ranks(
    weight: Floats, time: Floats, width: Floats, probability: Floats, retrieval: Floats | float = 1.0
) -> None:
    """Add Σ over nodes of density x P(r - 1 of the others have rung) to probability[i, r - 1]."""
    from truerank.sampling import fast_clocks

    for rung, density in _at_nodes(weight, time, width, retrieval):
        fast_clocks.add_without_each(rung * retrieval, density, probability)


def _at_nodes(
    weight: Floats, time: Floats, width: Floats, share: Floats | float = 1.0
) -> Iterator[tuple[Floats, Floats]]:
    """P(each has rung) and how much each counts in the integral, [nodes x members], some nodes at a time."""
    for start in range(0, len(time), NODES_AT_ONCE):
        t = time[start : start + NODES_AT_ONCE, None]
        density = width[start : start + NODES_AT_ONCE, None] * weight * t * np.exp(-weight * t)
        yield -np.expm1(-weight * t), density * share


def _step(depth: int) -> float:
    # the count of rung clocks changes within about 1 / sqrt(count) of its time: the step has to resolve that
    return min(WIDEST, 0.6 / math.sqrt(depth))


def _nodes(weight: Floats, depth: int, share: Floats | float = 1.0) -> tuple[Floats, Floats]:
    """Times at a constant step of their logarithm, and the weights of the trapezoid rule.

    From when hardly any has rung until more than `depth` have, each there with probability `share`. Before the first
    node every integrand here is linear in time (to 1e-16), so that the nodes left out there are a geometric series,
    which the first one carries.
    """
    step = _step(depth)
    low, high = math.log(1e-8 / weight.sum()), math.log(45.0 / weight.min())
    time = np.exp(np.arange(low, high + step, step))
    time = time[: bisect_left(range(len(time)), True, key=lambda node: _past(weight, depth, time[node], share))]
    width = np.full(len(time), step)
    width[0] /= -math.expm1(-step)
    return time, width


def _past(weight: Floats, depth: int, time: float, share: Floats | float) -> bool:
    """Whether hardly ever no more than `depth` have rung: m KL(depth / m, expected / m) is large (Hoeffding 1956)."""
    m, expected = len(weight), float(-(np.expm1(-weight * time) * share).sum())
    if depth >= m or expected <= depth:
        return False
    left = (m - depth) * math.log((m - depth) / (m - expected)) if expected < m else math.inf
    return depth * math.log(depth / expected) + left > -NEGLIGIBLE


def _sure(weight: Floats, n: int, time: Floats) -> int:
    """How many of the first nodes come before n members can have rung: P(n have) <= expected^n / n!."""
    bound = n * np.log(weight.sum() * time) - math.lgamma(n + 1)
    return int(np.searchsorted(bound, NEGLIGIBLE))
