"""Comparisons of models: what each pair rests on, adjusted p, and the verdict that follows.

Made for many pairs: what is the same for all pairs of an estimate is made once, and each comparison is built once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Clipping
from truerank.core.ids import Keys
from truerank.core.messages import message
from truerank.core.record import record
from truerank.core.results import Comparison, Evidence
from truerank.core.sizes import check_size
from truerank.core.terms import Terms
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Adjust, Cell, Examined, Pair, Plan, PlannedEstimate, Question
from truerank.inference.clipping import chosen_clip
from truerank.inference.intervals import common
from truerank.inference.linearization import Influences, Spread, differences_at, influences, within_bounds
from truerank.inference.multiplicity import MOST_COMPARISONS, ComparisonFamily, correlation_of
from truerank.inference.verdicts import doubts, is_significant, verdict_of

Difference = tuple[Pair, int]  # two models, and the number of an estimate


@record
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


def adjusted_families(
    plan: Plan[Any],
    measured: Measured,
    differences: Mapping[Difference, Spread],
    *,
    untested: frozenset[Difference],
) -> list[AdjustedFamily]:
    """Every family after its adjustment; of a curve to choose from only the chosen difference is a test."""
    families = families_of(plan)
    members: dict[int, list[Difference]] = {}
    for cell in differences:
        members.setdefault(families[cell[1]], []).append(cell)
    adjusted = []
    for cells in members.values():
        tested = [cell for cell in cells if cell not in untested and not math.isnan(differences[cell].p)]
        matrix = _correlation(plan, tested, measured.terms)
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


def _correlation(plan: Plan[Any], tested: Sequence[Difference], terms: Mapping[Cell, Terms]) -> Floats | None:
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
        loaded |= {cell: terms[cell] for cell in cells if cell not in loaded}
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


COMPARISON_BYTES = 800.0  # with its evidence and spread
NOT_CHOSEN = message("clip-not-chosen")


def check_pairs(question: Question, models: Sequence[str], n_estimates: int) -> None:
    """Refuse comparisons that cannot be held, before anything is ranked."""
    n_pairs = len(models) * (len(models) - 1) // 2 if question.baseline is None else 0
    check_size(
        f"{len(models):,} models in all {n_pairs:,} pairs, for each of {n_estimates:,} questions,",
        memory=COMPARISON_BYTES * n_pairs * n_estimates,
        instead="Name the model that all are compared with (baseline), or leave models out.",
    )


@record
class PairedTerms:
    """The terms of all models of one estimate, two of them at a time on the units that both define."""

    terms: Mapping[str, Terms]
    units: dict[str, bytes] = field(default_factory=dict)  # which each model defines
    sizes: dict[tuple[bytes, bytes], tuple[int, int]] = field(default_factory=dict)  # units and clusters of both

    def __post_init__(self) -> None:
        self.units.update({model: np.packbits(part.defined).tobytes() for model, part in self.terms.items()})

    def both(self, pair: Pair) -> tuple[Terms, Terms]:
        first, second = pair
        terms = self.terms[first], self.terms[second]
        return terms if self.units[first] == self.units[second] else common(*terms)

    def size(self, pair: Pair, both: tuple[Terms, Terms], measured: Measured) -> tuple[int, int]:
        """How many units and clusters both define."""
        key = self.units[pair[0]], self.units[pair[1]]
        if key not in self.sizes:
            defined = both[0].defined & both[1].defined
            clusters = int(np.count_nonzero(both[0].clusters.has(defined)))
            self.sizes[key] = int(measured.size[defined].sum()), clusters
        return self.sizes[key]


def compare(
    plan: Plan[Any],
    measured: Measured,
    examined: Mapping[Cell, Examined],
    families: Sequence[AdjustedFamily],
    *,
    untested: frozenset[Difference],
) -> dict[Difference, Comparison]:
    """The comparisons, estimate by estimate: p, interval and verdict by the one adjustment of the family."""
    by_number: dict[int, list[tuple[Pair, AdjustedFamily]]] = {}
    for family in families:
        for pair, number in family.differences:
            by_number.setdefault(number, []).append((pair, family))
    comparisons: dict[Difference, Comparison] = {}
    for number, pairs in by_number.items():
        planned, level = plan.estimates[number], plan.question.level
        models = {model for pair, _ in pairs for model in pair}
        paired = PairedTerms({model: measured.terms[model, number] for model in plan.models if model in models})
        shared: dict[str, Any] = {
            "metric": planned.name, "estimator": planned.estimator.info.name, "reward": planned.request.reward,
            "clip": clip_of(planned), "segment": planned.request.segment, "level": level,
        }  # fmt: skip
        for pair, family in pairs:
            spread, p = family.differences[pair, number], family.p_adjusted[pair, number]
            both, (first, second) = paired.both(pair), (examined[model, number] for model in pair)
            reasons = doubts(
                *both,
                spread,
                reasons=tuple(dict.fromkeys(first.reasons + second.reasons)),
                unseen=(first.basis.unseen, second.basis.unseen),
                cluster=plan.cluster,
                level=family.level_alone,
            )
            if (pair, number) in untested:
                reasons = (*reasons, NOT_CHOSEN)
            units, clusters = paired.size(pair, both, measured)
            comparisons[pair, number] = Comparison(
                model=pair[0],
                baseline=pair[1],
                difference=spread.value,
                stderr=spread.stderr,
                low=spread.low,
                high=spread.high,
                interval_level=family.level_alone,
                p=spread.p,
                p_adjusted=p,
                family=family.n_tests,
                units=units,
                clusters=clusters,
                evidence=weaker(spread, first.evidence, second.evidence),
                verdict=verdict_of(spread.value, p, level=level, reasons=reasons, directed=planned.directed),
                reasons=reasons,
                **shared,
            )
    return comparisons


def weaker(spread: Spread, first: Evidence, second: Evidence) -> Evidence:
    """What a difference rests on: its own spread, and of what concerns lists and weights the worse of both models."""
    # below 0 where the balance of a list cannot be checked
    far = [-1.0 if part.balance is None else abs(part.balance - 1.0) for part in (first, second)]
    least = first if far[0] >= far[1] else second
    return Evidence(
        informative=spread.informative,
        df=spread.df,
        largest=spread.largest,
        balance=least.balance,
        balance_z=least.balance_z,
        lost=_larger(first.lost, second.lost),
        unsupported=_larger(first.unsupported, second.unsupported),
    )


def _larger(first: float | None, second: float | None) -> float | None:
    """
    >>> _larger(None, 0.5), _larger(0.7, 0.5), _larger(None, None)
    (0.5, 0.7, None)
    """
    return max((value for value in (first, second) if value is not None), default=None)


def _curves(plan: Plan[Any]) -> list[list[int]]:
    """The estimates of each estimator and reward that weights enter, ascending by clip."""
    curves: dict[int, list[int]] = {}
    for number, planned in enumerate(plan.estimates):
        if planned.estimator.info.clipping is not Clipping.NONE:
            curves.setdefault(planned.block, []).append(number)
    return list(curves.values())


def chosen_clips(
    plan: Plan[Any], measured: Measured, values: Mapping[Cell, Spread], differences: Mapping[Difference, Spread]
) -> tuple[list[dict[str, Any]], frozenset[Difference]]:
    """Which clip is taken for each value and difference, where the data choose; and the differences of other clips.

    The largest for estimators that allow no choice.
    """
    choices: list[dict[str, Any]] = []
    untested: set[Difference] = set()
    for numbers in _curves(plan) if plan.chooses_clip else ():
        planned = plan.estimates[numbers[0]]
        by_rule = planned.estimator.info.clipping is Clipping.CHOSEN
        models = [model for model in plan.models if (model, numbers[0]) in values]
        subjects: list[tuple[Any, tuple[str, ...], Mapping[Any, Spread]]] = [
            *((model, (model,), values) for model in models),
            *((pair, pair, differences) for pair in plan.question.pairs(models)),
        ]
        untested |= {cell for cell in differences if cell[1] in numbers}
        for subject, names, spreads in subjects:
            best = same = len(numbers) - 1
            if by_rule:
                best, same = chosen_clip(*([measured.terms[name, at].whole for at in numbers] for name in names))
            value = spreads[subject, numbers[best]].value
            choices.append(
                {
                    "of": " - ".join(names),
                    "reward": planned.request.reward,
                    "estimator": planned.estimator.info.name,
                    "clip": limit(plan.estimates[numbers[best]].request.clip),
                    "smallest_equal": limit(plan.estimates[numbers[same]].request.clip),
                    "value": value,
                    "against_largest_clip": value - spreads[subject, numbers[-1]].value,
                    "by_rule": by_rule,
                }
            )
            untested.discard((subject, numbers[best]))
    return choices, frozenset(untested)


def in_order(plan: Plan[Any], cells: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Cells in the order of output: by estimator and metric, then by model (or pair), then by clip."""
    place = {subject: number for number, subject in enumerate(dict.fromkeys(subject for subject, _ in cells))}
    return sorted(cells, key=lambda cell: (plan.estimates[cell[1]].block, place[cell[0]], cell[1]))


def clip_of(planned: PlannedEstimate) -> float | None:
    """Where weights were cut, None where they were not."""
    return None if planned.estimator.info.clipping is Clipping.NONE else limit(planned.request.clip)


def limit(clip: float) -> float | None:
    """A clip for the record: none is None."""
    return None if math.isinf(clip) else clip
