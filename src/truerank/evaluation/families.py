"""Families of comparisons: which are adjusted together, and their p-values and intervals after the adjustment."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.ids import Keys
from truerank.core.terms import Terms
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Adjust, Cell, Pair, Plan
from truerank.inference.intervals import common
from truerank.inference.linearization import Influences, Spread, differences_at, influences, within_bounds
from truerank.inference.multiplicity import MOST_COMPARISONS, ComparisonFamily, correlation_of
from truerank.inference.verdicts import is_significant

Difference = tuple[Pair, int]  # two models, and the number of an estimate
Correlation = tuple[tuple[Difference, ...], Floats]  # of these differences


@dataclass(frozen=True, slots=True)
class AdjustedFamily:
    """The differences of a family with adjusted intervals, and adjusted p (NaN where nothing is tested).

    `level_alone` is the level of each interval, `n_tests` the number of comparisons that were adjusted for.
    """

    differences: Mapping[Difference, Spread]
    p_adjusted: Mapping[Difference, float]
    level_alone: float
    n_tests: int


def families_of(plan: Plan[Any]) -> list[int]:
    """For each estimate the family that its comparisons are adjusted with: their own, all, or all clips of a curve."""
    if plan.question.adjust is Adjust.ALL:
        return [0] * len(plan.estimates)
    return [planned.block if plan.chooses_clip else number for number, planned in enumerate(plan.estimates)]


def correlation_of_estimate(
    plan: Plan[Any], number: int, terms: Mapping[str, Terms], differences: Mapping[Difference, Spread]
) -> dict[int, Correlation]:
    """The correlation within a family that is one estimate, while its terms are in memory."""
    families = families_of(plan)
    if families.count(families[number]) > 1:
        return {}
    tested = [cell for cell, spread in differences.items() if cell[1] == number and not math.isnan(spread.p)]
    matrix = _correlation(plan, tested, lambda cell: terms[cell[0]])
    return {} if matrix is None else {families[number]: (tuple(tested), matrix)}


def adjusted_families(
    plan: Plan[Any],
    measured: Measured,
    differences: Mapping[Difference, Spread],
    correlations: Mapping[int, Correlation],
    *,
    untested: frozenset[Difference],
) -> list[AdjustedFamily]:
    """Every family after its adjustment; of a curve to choose from only the chosen difference is a test."""
    families = families_of(plan)
    members: dict[int, list[Difference]] = {}
    for cell in differences:
        members.setdefault(families[cell[1]], []).append(cell)
    adjusted = []
    for family, cells in members.items():
        tested = [cell for cell in cells if cell not in untested and not math.isnan(differences[cell].p)]
        matrix: Floats | None = None
        if family in correlations:
            place = {cell: row for row, cell in enumerate(correlations[family][0])}
            rows = [place[cell] for cell in tested]
            matrix = correlations[family][1][np.ix_(rows, rows)]
        elif families.count(family) > 1:
            matrix = _correlation(plan, tested, measured.terms.__getitem__)
        adjusted.append(_adjusted(plan, {cell: differences[cell] for cell in cells}, tested, matrix))
    return adjusted


def _adjusted(
    plan: Plan[Any], differences: Mapping[Difference, Spread], tested: Sequence[Difference], correlation: Floats | None
) -> AdjustedFamily:
    level = plan.question.level
    family = ComparisonFamily(max(len(tested), 1))
    if correlation is not None and len(tested) > 1:
        family = ComparisonFamily.correlated(correlation)
    level_alone = family.level_alone(level)
    p = family.adjust(np.array([differences[cell].p for cell in tested], dtype=np.float64))
    p_adjusted = dict.fromkeys(differences, math.nan) | dict(zip(tested, p.tolist(), strict=True))
    spreads = list(differences.values())
    if level_alone != level:
        spreads = differences_at(spreads, level=level_alone)
    inside = {}
    for cell, spread in zip(differences, spreads, strict=True):
        bounds = plan.estimates[cell[1]].bounds
        apart = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
        inside[cell] = _in_agreement(within_bounds(spread, apart), p_adjusted[cell], level=level)
    return AdjustedFamily(inside, p_adjusted, level_alone, family.n)


def _in_agreement(spread: Spread, p_adjusted: float, *, level: float) -> Spread:
    """The interval with 0 where p does not exclude it: so few informative clusters that all on one side are chance."""
    if math.isnan(p_adjusted) or is_significant(p_adjusted, level=level) or spread.low <= 0 <= spread.high:
        return spread
    return replace(spread, low=min(spread.low, 0.0), high=max(spread.high, 0.0))


def _correlation(plan: Plan[Any], tested: Sequence[Difference], terms: Callable[[Cell], Terms]) -> Floats | None:
    """The correlation of differences by the influences of clusters; None where Bonferroni's bound has to do."""
    if plan.question.interval.needs_rows or not 2 <= len(tested) <= MOST_COMPARISONS:
        return None
    alone: dict[Cell, Influences] = {}
    pairs: list[tuple[Influences, Influences]] = []
    key: Keys | None = None
    loaded: dict[Cell, Terms] = {}  # of one estimate: terms may be on disk
    for (first, second), number in tested:
        cells = ((first, number), (second, number))
        if loaded and next(iter(loaded))[1] != number:
            loaded.clear()
        loaded |= {cell: terms(cell) for cell in cells if cell not in loaded}
        models = (loaded[cells[0]], loaded[cells[1]])
        key = models[0].clusters.key
        both = common(*models)
        if both[0] is models[0] and both[1] is models[1]:
            alone |= {cell: influences(part) for cell, part in zip(cells, both, strict=True) if cell not in alone}
            pairs.append((alone[cells[0]], alone[cells[1]]))
        else:
            pairs.append((influences(both[0]), influences(both[1])))
    sizes = {len(part.effect) for pair in pairs for part in pair}
    if len(sizes) != 1 or any(part.stratum is not None for pair in pairs for part in pair):
        return None
    return correlation_of([(one.effect, two.effect) for one, two in pairs], key)
