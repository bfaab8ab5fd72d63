"""Samples of fixed size with exactly the requested probabilities: systematic, pivotal, conditional Poisson.

A pool has a chance π for each member with Σ π = n, and n members are drawn so that member i is among them with
probability π_i exactly. Members that are sure (π = 1) are taken first; what is left is drawn in the order given, which
the caller has made random. Members without a chance may stand among the others.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError

WHOLE = 1e-6  # how far Σ π may be from a whole number
MOST_ROUNDS = 500
CLOSE = 1e-13  # to which odds give the requested chances


def size_of_sample(chance: Floats) -> int:
    """n = Σ π, which must be a whole number, of chances between 0 and 1.

    >>> size_of_sample(np.array([0.5, 1.0, 0.5]))
    2
    """
    low, high = float(chance.min(initial=0.0)), float(chance.max(initial=0.0))
    if not (low >= 0 and high <= 1):
        raise InputError(f"a chance of {low if low < 0 else high:g}; expected one between 0 and 1.")
    total = float(chance.sum())
    if abs(total - round(total)) > WHOLE:
        raise InputError(f"chances that sum to {total:g}; expected a whole number, how many are drawn.")
    return round(total)


def systematic(chance: Floats, rng: np.random.Generator) -> Ints:
    """Members laid end to end, each as long as its chance: those in which start, start + 1, ... lie (Madow 1949).

    The start is uniform on [0, 1), so that a member of length π < 1 is met with probability π.
    """
    end = np.cumsum(chance)
    n = round(float(end[-1]))
    end[np.flatnonzero(end >= end[-1])] = n  # the last that has a chance ends there whatever the rounding
    return np.searchsorted(end, rng.random() + np.arange(n), side="right").astype(np.int64)


def pivotal(chance: Floats, rng: np.random.Generator) -> Ints:
    """Members meet in order; of two one wins the other's chance, up to 1, and who reaches 1 is drawn.

    Deville and Tillé 1998.
    """
    from truerank.sampling import fast_clocks

    drawn = np.zeros(len(chance), dtype=bool)
    fast_clocks.meet(chance, rng.random(len(chance)), drawn)
    return np.flatnonzero(drawn)


def conditional_poisson(chance: Floats, rng: np.random.Generator) -> Ints:
    """Independent draws, again and again until n members are drawn; the odds are those that give π (Hájek 1964)."""
    able = np.flatnonzero(chance)
    odds = odds_for(chance[able])
    single = odds / (1 + odds)
    n = round(float(chance.sum()))
    while True:
        drawn = np.flatnonzero(rng.random(len(able)) < single)
        if len(drawn) == n:
            return able[drawn].astype(np.int64)


def conditional_inclusion(odds: Floats, n: int) -> Floats:
    """π_i = p_i P(n - 1 of the others) / P(n), p = odds / (1 + odds): of independent draws, given that n were drawn.

    >>> (35 * conditional_inclusion(np.array([1.0, 2.0, 3.0, 4.0]), 2)).round(9).tolist()
    [9.0, 16.0, 21.0, 24.0]
    """
    from truerank.sampling import fast_clocks

    p, others = odds / (1 + odds), np.zeros((len(odds), n))
    if n == 0:
        return np.zeros(len(odds))
    fast_clocks.add_without_each(p[None, :], np.ones((1, len(odds))), others)
    return np.asarray(n * p * others[:, -1] / (p * others[:, -1]).sum())  # Σ π = n


def odds_for(chance: Floats) -> Floats:
    """The odds of independent draws that, given their number n = Σ π, have these chances (Chen, Dempster, Liu 1994).

    >>> odds = odds_for(np.array([9.0, 16.0, 21.0, 24.0]) / 35)
    >>> (odds / odds[0]).round(9).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    order = np.argsort(chance, kind="stable")
    odds = np.empty(len(chance))
    odds[order] = _odds_of(np.ascontiguousarray(chance[order]).tobytes())
    return odds


@lru_cache(maxsize=64)
def _odds_of(sorted_chances: bytes) -> Floats:
    """Of chances in ascending order; pools with the same chances share one computation."""
    chance = np.frombuffer(sorted_chances)
    n = round(float(chance.sum()))
    odds = chance / (1 - chance)
    for _ in range(MOST_ROUNDS):
        reached = conditional_inclusion(odds, n)
        if np.abs(reached - chance).max(initial=0.0) < CLOSE:
            break
        # half way between the update in chances, which is slow near 1, and that in odds, which overshoots
        odds = odds * chance / reached * np.sqrt((1 - reached) / (1 - chance))
    return odds


def allocate(base: Floats, wish: Floats, n: int) -> Floats:
    """Chances min(1, base + c wish) with Σ = n: what everybody gets, and the rest by what is wished for.

    c is found exactly: Σ is piecewise linear in c, and members that reach 1 stay there. Where all that is wished for is
    sure and members are still to be drawn, the base of the others grows in proportion. Members without a base are none;
    of n members or fewer all are sure.

    >>> allocate(np.full(10, 0.05), np.array([1.0, 1.0] + [0.0] * 8), 2).round(3).tolist()
    [0.8, 0.8, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]
    >>> allocate(np.full(4, 0.25), np.array([1.0, 0.0, 0.0, 0.0]), 2).round(3).tolist()
    [1.0, 0.333, 0.333, 0.333]
    """
    if n >= np.count_nonzero(base):
        return (base > 0).astype(np.float64)
    chance = fill(np.minimum(base, 1.0), wish, n)
    if chance.sum() < n - WHOLE:
        chance = fill(np.where(chance < 1, 0.0, 1.0), np.where(chance < 1, base, 0.0), n)
    return chance


def fill(base: Floats, wish: Floats, n: int) -> Floats:
    """min(1, base + c wish) with Σ = n, or as near as it comes."""
    chance, rows = base.copy(), np.flatnonzero((wish > 0) & (base < 1))
    fixed = float(base.sum() - base[rows].sum())
    while len(rows):
        c = (n - fixed - float(base[rows].sum())) / float(wish[rows].sum())
        if c <= 0:
            break
        reached = base[rows] + c * wish[rows] >= 1
        if not reached.any():
            chance[rows] = base[rows] + c * wish[rows]
            break
        chance[rows[reached]] = 1.0
        fixed += int(np.count_nonzero(reached))
        rows = rows[~reached]
    return chance


class DrawBy(StrEnum):
    """How samples of fixed size are drawn with given probabilities.

    Systematic, pivotal, or conditional Poisson, the design of most entropy, for pools of thousands: its odds are found
    by iteration, which takes time that grows with members x drawn.
    """

    SYSTEMATIC = "systematic"
    PIVOTAL = "pivotal"
    CONDITIONAL_POISSON = "conditional-poisson"

    def pick(self, chance: Floats, rng: np.random.Generator) -> Ints:
        """Which members of one pool are drawn, ascending; the order of members is random already.

        >>> len(DrawBy.SYSTEMATIC.pick(np.full(4, 0.5), np.random.default_rng(1)))
        2
        """
        n, sure = size_of_sample(chance), np.flatnonzero(chance == 1)
        if len(sure):
            chance = np.where(chance == 1, 0.0, chance)
        ways = {"systematic": systematic, "pivotal": pivotal, "conditional-poisson": conditional_poisson}
        others = ways[self](chance, rng) if len(sure) < n else np.zeros(0, dtype=np.int64)
        return np.sort(np.concatenate([sure, others])).astype(np.int64)
