"""Differences of many pairs of values at once: what `spreads` does one by one, as arrays of many pairs.

A thousand models have half a million pairs. One by one each costs about a millisecond, of which the arithmetic is the
smallest part; here the effects of a block of models stand below each other, and one is subtracted from all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.terms import Smooth
from truerank.uncertainty.spreads import LARGE, NO_SKEW, ROUNDING, SMALL, Influences, Spread

Name = TypeVar("Name")

MANY_PAIRS = 64  # of one set of units, from which they are taken at once
MOST_CLUSTERS = 2**15  # beyond which the arithmetic is what costs, and sums are better exact
BLOCK_CELLS = 2**18  # effects in a block of models: a few of them fit a processor's cache


@dataclass(frozen=True, slots=True)
class Side:
    """What a pair needs of one of its values: influences, and the sums of its clusters, which tell informative ones."""

    influences: Influences
    sums: tuple[Floats, ...]

    @classmethod
    def of(cls, terms: Smooth, influences: Influences) -> Side:
        return cls(influences, tuple(terms.clusters.sums(column) for column in terms.sums.T))


@dataclass(frozen=True, slots=True)
class ManyMoments:
    """The fields of `Moments` that intervals need, of many pairs, and which of them have a spread at all."""

    value: Floats
    n: Ints
    variance: Floats
    squares: Floats
    cubes: Floats
    fourths: Floats
    parts: Floats  # Σ h² + (Σ h² / (1 - h))² - Σ h⁴ / (1 - h)²
    highest_effect: Floats
    informative: Ints
    spread: Bools
    usual: Bools  # fourth powers of whose effects are numbers


def worth_a_batch(first: Smooth, pairs: int) -> bool:
    """Whether so many pairs of terms like this are worth taking at once."""
    clusters = first.clusters
    return clusters.stratum is None and pairs >= MANY_PAIRS and 1 < len(clusters) <= MOST_CLUSTERS


def spreads_of_pairs(
    sides: Mapping[Name, Side], pairs: Sequence[tuple[Name, Name]], *, level: float
) -> dict[tuple[Name, Name], Spread]:
    """The spread of the first minus the second of each pair of values over the same clusters.

    The same numbers as `Influences.minus(...).spread(...)` but for the last digits: sums here are not exact.
    """
    of_block = max(1, BLOCK_CELLS // max(len(side.influences.effect) for side in sides.values()))
    shared = _shared_leverage(sides)
    same_sums = _same_columns(sides)
    blocks: list[ManyMoments] = []
    ordered: list[tuple[Name, Name]] = []
    for baseline, run in groupby(pairs, key=lambda pair: pair[1]):
        of_baseline = list(run)
        for at in range(0, len(of_baseline), of_block):
            block = of_baseline[at : at + of_block]
            models = [sides[model] for model, _ in block]
            blocks.append(_moments(models, sides[baseline], leverage=shared, skip=same_sums))
            ordered += block
    whole = _joined(blocks)
    found = dict(zip(ordered, _intervals(whole, level=level), strict=True))
    for at in np.flatnonzero(~whole.usual).tolist():
        one, other = (sides[name].influences for name in ordered[at])
        alone = one.minus(other, informative=int(whole.informative[at]))
        found[ordered[at]] = alone.spread(level=level, difference=True)
    return {pair: found[pair] for pair in pairs}


def _shared_leverage(sides: Mapping[Any, Side]) -> Floats | None:
    """The parts of the denominator, where they are the same for all."""
    first, *others = (side.influences.leverage for side in sides.values())
    return first if all(np.array_equal(first, other) for other in others) else None


def _same_columns(sides: Mapping[Any, Side]) -> frozenset[int]:
    """The columns of sums that are the same for all, and tell nothing about a difference."""
    first, *others = (side.sums for side in sides.values())
    same = {at for at, own in enumerate(first) if all(np.array_equal(own, other[at]) for other in others)}
    return frozenset(same)


def _moments(models: Sequence[Side], baseline: Side, *, leverage: Floats | None, skip: frozenset[int]) -> ManyMoments:
    """The moments of each of some models minus one baseline."""
    of = baseline.influences
    values = np.array([side.influences.value for side in models]) - of.value
    scale = np.array([side.influences.scale for side in models]) + of.scale
    informative = _informative(models, baseline, skip=skip)
    effect = np.stack([side.influences.effect for side in models])
    effect -= of.effect
    largest = np.maximum(effect.max(axis=1), -effect.min(axis=1))
    usual = ((largest == 0) | ((largest > SMALL) & (largest < LARGE))) & np.isfinite(values)
    effect[~usual] = 0.0  # these are taken one by one
    h = leverage
    if h is None:
        h = np.maximum(np.stack([side.influences.leverage for side in models]), of.leverage)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weight = 1.0 / (1.0 - h)
        scaled = h * h * weight
        square = effect * effect
        variance = np.einsum("ij,j->i" if h.ndim == 1 else "ij,ij->i", square, weight)
        squares, leverages = square.sum(axis=1), (h * h).sum(axis=-1)
        parts = leverages + scaled.sum(axis=-1) ** 2 - (scaled * scaled).sum(axis=-1)
    used = np.count_nonzero((effect != 0) | (h != 0), axis=1)
    highest = np.broadcast_to(h.max(axis=-1), values.shape)
    return ManyMoments(
        value=values,
        n=used,
        variance=variance,
        squares=squares,
        cubes=np.einsum("ij,ij->i", square, effect),
        fourths=np.einsum("ij,ij->i", square, square),
        parts=np.broadcast_to(parts, values.shape),
        highest_effect=np.where(usual, largest, 0.0),
        informative=informative,
        spread=usual & (used >= 2) & (highest < 1) & (largest > ROUNDING * scale * highest),
        usual=usual,
    )


def _informative(models: Sequence[Side], baseline: Side, *, skip: frozenset[int]) -> Ints:
    """How many clusters differ in one of their sums."""
    differ = np.zeros((len(models), len(baseline.influences.effect)), dtype=bool)
    for at, own in enumerate(baseline.sums):
        if at not in skip:
            differ |= np.stack([side.sums[at] for side in models]) != own
    return np.asarray(np.count_nonzero(differ, axis=1), dtype=np.int64)


def _joined(blocks: Sequence[ManyMoments]) -> ManyMoments:
    names = ManyMoments.__slots__
    return ManyMoments(**{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names})


def _intervals(moments: ManyMoments, *, level: float) -> list[Spread]:
    """What `spreads.interval` makes of a difference, of many."""
    from scipy.special import stdtr, stdtrit

    n, value, informative = moments.n.astype(np.float64), moments.value, moments.informative
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        stderr = np.sqrt(moments.variance)
        k = moments.cubes / (moments.squares * np.sqrt(moments.squares))
        by_parts = np.where(moments.parts > 0, 1.0 / moments.parts, np.inf)
        excess = n * moments.fourths / moments.squares**2 - 1.0
        by_residuals = np.where(excess <= ROUNDING, n - 1.0, 2.0 * n / excess - 1.0)
        df = np.minimum(np.minimum(by_parts, np.maximum(by_residuals, 1.0)), n - 1.0)
        t = stdtrit(df, (1 + level) / 2)
        upper, lower = np.maximum(t, _unskewed(t, k)), np.minimum(-t, _unskewed(-t, k))
        ratio = value / stderr
        skewed = ratio + k * ratio * ratio / 3.0 + k * k * ratio**3 / 27.0 + k / 6.0
        p = 2.0 * np.maximum(stdtr(df, -np.abs(skewed)), stdtr(df, -np.abs(ratio)))
        p = np.minimum(1.0, np.maximum(p, 2.0 ** (1.0 - informative)))
        columns = (value, stderr, value - stderr * upper, value - stderr * lower, p, informative, df, k)
        largest = moments.highest_effect**2 / moments.squares
    rows = zip(*(column.tolist() for column in (*columns, largest)), moments.spread.tolist(), strict=True)
    return [Spread(*row) if has_spread else Spread.unknown(row[0], informative=row[5]) for *row, has_spread in rows]


def _unskewed(x: Floats, k: Floats) -> Floats:
    """`spreads.unskewed` of many."""
    turned = 3.0 / k * (np.cbrt(1.0 + k * (x - k / 6.0)) - 1.0)
    return np.where(np.abs(k) < NO_SKEW, x, turned)
