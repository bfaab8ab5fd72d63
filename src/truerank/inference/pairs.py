"""Differences of many pairs of values at once: what `spreads` does one by one, as arrays of many pairs.

A thousand models have half a million pairs. One by one each costs about a millisecond, of which the arithmetic is the
smallest part; here the effects of a block of models stand below each other, and one is subtracted from all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

import numpy as np

from truerank.core import special
from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.terms import Smooth
from truerank.inference.moments import LARGE, ROUNDING, SMALL
from truerank.inference.spreads import NO_SKEW, Influences, Spread, allowing, unlike_any

Name = TypeVar("Name")

MANY_PAIRS = 64  # of one set of units, from which they are taken at once
MOST_CLUSTERS = 2**15  # beyond which the arithmetic is what costs, and sums are better exact
BLOCK_CELLS = 2**16  # effects in a block of models: a few of them fit a processor's cache


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Influences of many values over the same clusters as matrices [values x clusters], and what `_moments` needs.

    `leverage` has one row where it is the same for all; `sums` are those of clusters, which tell informative ones, but
    for columns that are the same for all.
    """

    value: Floats
    scale: Floats
    effect: Floats
    leverage: Floats
    sums: tuple[Floats, ...]

    @classmethod
    def of(cls, terms: Sequence[Smooth], influences: Sequence[Influences]) -> SideBySide:
        telling = range(terms[0].telling.shape[1])
        sums = (np.stack([part.clusters.sums(part.telling[:, at]) for part in terms]) for at in telling)
        leverage = np.stack([each.leverage for each in influences])
        return cls(
            np.array([each.value for each in influences]),
            np.array([each.scale for each in influences]),
            np.stack([each.effect for each in influences]),
            leverage[:1] if _same_rows(leverage) else leverage,
            tuple(column for column in sums if not _same_rows(column)),
        )


def _same_rows(matrix: Floats) -> bool:
    return bool((matrix == matrix[0]).all())


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
    terms: Mapping[Name, Smooth],
    influences: Mapping[Name, Influences],
    pairs: Sequence[tuple[Name, Name]],
    *,
    level: float,
) -> dict[tuple[Name, Name], Spread]:
    """The spread of the first minus the second of each pair of values over the same clusters.

    The same numbers as `Influences.minus(...).spread(...)` but for the last digits: sums here are not exact.
    """
    names = list(influences)
    place = {name: at for at, name in enumerate(names)}
    sides = SideBySide.of([terms[name] for name in names], [influences[name] for name in names])
    of_block = max(1, BLOCK_CELLS // sides.effect.shape[1])
    blocks = []
    for baseline, run in groupby(pairs, key=lambda pair: pair[1]):
        models = np.array([place[model] for model, _ in run])
        parts = (models[at : at + of_block] for at in range(0, len(models), of_block))
        blocks += [_moments(sides, _run(part), place[baseline]) for part in parts]
    whole = _joined(blocks)
    found = dict(zip(pairs, _intervals(whole, level=level), strict=True))
    for at in np.flatnonzero(~whole.usual).tolist():
        one, other = (influences[name] for name in pairs[at])
        alone = one.minus(other, informative=int(whole.informative[at]))
        found[pairs[at]] = alone.spread(level=level, difference=True)
    return found


def _run(places: Ints) -> Ints | slice:
    """Places that follow each other as a slice: what they choose needs no copy."""
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if (places == np.arange(first, first + len(places))).all() else places


def _moments(sides: SideBySide, models: Ints | slice, baseline: int) -> ManyMoments:
    """The moments of each of some models minus one baseline."""
    value = sides.value[models] - sides.value[baseline]
    scale = sides.scale[models] + sides.scale[baseline]
    effect = sides.effect[models] - sides.effect[baseline]
    largest = np.maximum(effect.max(axis=1), -effect.min(axis=1))
    usual = ((largest == 0) | ((largest > SMALL) & (largest < LARGE))) & np.isfinite(value)
    if not usual.all():
        effect[~usual] = 0.0  # these are taken one by one
    shared = len(sides.leverage) == 1
    h = sides.leverage if shared else np.maximum(sides.leverage[models], sides.leverage[baseline])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weight = 1.0 / (1.0 - h)
        scaled = h * h * weight
        square = effect * effect
        variance = np.einsum("ij,j->i", square, weight[0]) if shared else np.einsum("ij,ij->i", square, weight)
        parts = (h * h).sum(axis=1) + scaled.sum(axis=1) ** 2 - (scaled * scaled).sum(axis=1)
    without = h[0] == 0 if shared else None  # only these clusters may tell nothing
    used = (
        np.count_nonzero((effect != 0) | (h != 0), axis=1)
        if without is None
        else (np.count_nonzero(~without) + np.count_nonzero(effect[:, without], axis=1))
    )
    highest = h.max(axis=1)
    return ManyMoments(
        value=value,
        n=used,
        variance=variance,
        squares=square.sum(axis=1),
        cubes=np.einsum("ij,ij->i", square, effect),
        fourths=np.einsum("ij,ij->i", square, square),
        parts=np.broadcast_to(parts, value.shape),
        highest_effect=np.where(usual, largest, 0.0),
        informative=_informative(sides, models, baseline),
        spread=usual & (used >= 2) & (highest < 1) & (largest > ROUNDING * scale * highest),
        usual=usual,
    )


def _informative(sides: SideBySide, models: Ints | slice, baseline: int) -> Ints:
    """How many clusters differ in one of their sums."""
    differ = np.zeros(sides.effect[models].shape, dtype=bool)
    for column in sides.sums:
        differ |= column[models] != column[baseline]
    return np.asarray(np.count_nonzero(differ, axis=1), dtype=np.int64)


def _joined(blocks: Sequence[ManyMoments]) -> ManyMoments:
    names = ManyMoments.__slots__
    return ManyMoments(**{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names})


def _intervals(moments: ManyMoments, *, level: float) -> list[Spread]:
    """What `spreads.interval` makes of a difference, of many."""
    n, value, informative = moments.n.astype(np.float64), moments.value, moments.informative
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        stderr = np.sqrt(moments.variance)
        k = moments.cubes / (moments.squares * np.sqrt(moments.squares))
        by_parts = np.where(moments.parts > 0, 1.0 / moments.parts, np.inf)
        excess = n * moments.fourths / moments.squares**2 - 1.0
        by_residuals = np.where(excess <= ROUNDING, n - 1.0, 2.0 * n / excess - 1.0)
        df = np.minimum(np.minimum(by_parts, np.maximum(by_residuals, 1.0)), n - 1.0)
        t = special.stdtrit(df, (1 + level) / 2)
        upper, lower = np.maximum(t, unskewed_of_many(t, k)), np.minimum(-t, unskewed_of_many(-t, k))
        ratio = value / stderr
        skewed = ratio + k * ratio * ratio / 3.0 + k * k * ratio**3 / 27.0 + k / 6.0
        p = 2.0 * np.maximum(special.stdtr(df, -np.abs(skewed)), special.stdtr(df, -np.abs(ratio)))
        p = np.minimum(1.0, np.maximum(p, 2.0 ** (1.0 - informative)))
        columns = (value, stderr, value - stderr * upper, value - stderr * lower, p, informative, df, k)
        largest = moments.highest_effect**2 / moments.squares
    rows = zip(*(column.tolist() for column in (*columns, largest)), moments.spread.tolist(), strict=True)
    return [Spread(*row) if has_spread else Spread.unknown(row[0], informative=row[5]) for *row, has_spread in rows]


def differences_at(spreads: Sequence[Spread], *, level: float) -> list[Spread]:
    """The same differences with intervals of another level."""
    plain = [at for at, one in enumerate(spreads) if not math.isnan(one.df) and math.isnan(one.correction)]
    value, stderr, df, k = (
        np.array([getattr(spreads[at], name) for at in plain], dtype=np.float64)
        for name in ("value", "stderr", "df", "skewness")
    )
    t = special.stdtrit(df, (1 + level) / 2)
    low = value - stderr * np.maximum(t, unskewed_of_many(t, k))
    high = value - stderr * np.minimum(-t, unskewed_of_many(-t, k))
    changed = list(spreads)
    for at, start, end in zip(plain, low.tolist(), high.tolist(), strict=True):
        changed[at] = replace(spreads[at], low=start, high=end)
    for at, one in enumerate(spreads):
        if not math.isnan(one.correction):
            changed[at] = allowing(one, one.correction, level=level)
        elif math.isnan(one.df) and one.stderr > 0:
            changed[at] = unlike_any(one.value, one.stderr, level=level, informative=one.informative)
    return changed


def unskewed_of_many(x: Floats, k: Floats) -> Floats:
    """`unskewed` of many."""
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = 3.0 / k * (np.cbrt(1.0 + k * (x - k / 6.0)) - 1.0)
    return np.where(np.abs(k) < NO_SKEW, x, turned)
