"""Families of comparisons: which are adjusted together, and their p-values and intervals after the adjustment."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.ids import Keys
from truerank.core.terms import Terms
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Adjust, Cell, Pair, Plan
from truerank.inference.intervals import common
from truerank.inference.linearization import Bounds, Influences, Spread, differences_at, influences, within_bounds
from truerank.inference.multiplicity import MOST_COMPARISONS, ComparisonFamily, correlation_of
from truerank.inference.verdicts import is_significant

Difference = tuple[Pair, int]  # two models, and the number of what is asked
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


def family_of(plan: Plan, number: int) -> int:
    """The family of comparisons that those of a question are adjusted with."""
    return 0 if plan.question.adjust is Adjust.ALL else plan.family(number)


def correlation_of_question(
    plan: Plan, number: int, terms: Mapping[str, Terms], differences: Mapping[Difference, Spread]
) -> dict[int, Correlation]:
    """The correlation within a family that is one question, while its terms are in memory."""
    family = family_of(plan, number)
    if _is_shared(plan, family):
        return {}
    tested = [cell for cell, spread in differences.items() if cell[1] == number and not math.isnan(spread.p)]
    matrix = _correlation(plan, tested, lambda cell: terms[cell[0]])
    return {} if matrix is None else {family: (tuple(tested), matrix)}


def adjusted_families(
    plan: Plan,
    measured: Measured,
    differences: Mapping[Difference, Spread],
    correlations: Mapping[int, Correlation],
    *,
    untested: frozenset[Difference],
) -> dict[int, AdjustedFamily]:
    """Every family after its adjustment; of a curve to choose from only the chosen difference is a test."""
    members: dict[int, list[Difference]] = {}
    for cell in differences:
        members.setdefault(family_of(plan, cell[1]), []).append(cell)
    families: dict[int, AdjustedFamily] = {}
    for family, cells in members.items():
        tested = [cell for cell in cells if cell not in untested and not math.isnan(differences[cell].p)]
        if family in correlations:
            place = {cell: at for at, cell in enumerate(correlations[family][0])}
            rows = [place[cell] for cell in tested]
            matrix: Floats | None = correlations[family][1][np.ix_(rows, rows)]
        else:
            matrix = _correlation(plan, tested, measured.terms.__getitem__) if _is_shared(plan, family) else None
        families[family] = _adjusted(plan, {cell: differences[cell] for cell in cells}, tested, matrix)
    return families


def _is_shared(plan: Plan, family: int) -> bool:
    """Whether several questions are in a family."""
    return sum(family_of(plan, number) == family for number in range(len(plan.question.asked))) > 1


def _adjusted(
    plan: Plan, differences: Mapping[Difference, Spread], tested: Sequence[Difference], correlation: Floats | None
) -> AdjustedFamily:
    level = plan.question.level
    if correlation is None or len(tested) < 2:
        family = ComparisonFamily(max(len(tested), 1))
    else:
        family = ComparisonFamily.correlated(correlation)
    level_alone = family.level_alone(level)
    p = family.adjust(np.array([differences[cell].p for cell in tested], dtype=np.float64))
    p_adjusted = dict.fromkeys(differences, math.nan) | dict(zip(tested, p.tolist(), strict=True))
    spreads = list(differences.values())
    if level_alone != level:
        spreads = differences_at(spreads, level=level_alone)
    return AdjustedFamily(
        {
            cell: _in_agreement(within_bounds(spread, _apart(plan, cell[1])), p_adjusted[cell], level=level)
            for cell, spread in zip(differences, spreads, strict=True)
        },
        p_adjusted,
        level_alone,
        family.n,
    )


def _apart(plan: Plan, number: int) -> Bounds | None:
    """What the difference of two values between bounds lies between."""
    bounds = plan.bounds(*plan.question.asked[number])
    return None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])


def _in_agreement(spread: Spread, p_adjusted: float, *, level: float) -> Spread:
    """The interval with 0 where p does not exclude it: so few informative clusters that all on one side are chance."""
    if math.isnan(p_adjusted) or is_significant(p_adjusted, level=level) or spread.low <= 0 <= spread.high:
        return spread
    return replace(spread, low=min(spread.low, 0.0), high=max(spread.high, 0.0))


def _correlation(plan: Plan, tested: Sequence[Difference], terms: Callable[[Cell], Terms]) -> Floats | None:
    """The correlation of differences by the influences of clusters; None where Bonferroni's bound has to do."""
    if plan.question.interval.needs_rows or not 2 <= len(tested) <= MOST_COMPARISONS:
        return None
    terms = _of_one_question(terms)
    alone: dict[Cell, Influences] = {}
    pairs: list[tuple[Influences, Influences]] = []
    key: Keys | None = None
    for (first, second), number in tested:
        models = (terms((first, number)), terms((second, number)))
        key = models[0].clusters.key
        both = common(*models)
        shares_units = both[0] is models[0] and both[1] is models[1]
        cells = ((first, number), (second, number))
        if shares_units:
            alone |= {cell: influences(part) for cell, part in zip(cells, both, strict=True) if cell not in alone}
        one, other = (alone[cell] for cell in cells) if shares_units else map(influences, both)
        pairs.append((one, other))
    sizes = {len(part.effect) for pair in pairs for part in pair}
    if len(sizes) != 1 or any(part.stratum is not None for pair in pairs for part in pair):
        return None
    return correlation_of([(one.effect, other.effect) for one, other in pairs], key)


def _of_one_question(terms: Callable[[Cell], Terms]) -> Callable[[Cell], Terms]:
    """The same lookup, which keeps what it returned for the question last asked for: terms may be on disk."""
    kept: dict[Cell, Terms] = {}

    def lookup(cell: Cell) -> Terms:
        if cell not in kept:
            if kept and next(iter(kept))[1] != cell[1]:
                kept.clear()
            kept[cell] = terms(cell)
        return kept[cell]

    return lookup
