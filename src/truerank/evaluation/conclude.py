"""conclude(Plan, Measured) -> Results: intervals, comparisons, messages, provenance, written once for every data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.errors import RefusedError, TruerankError
from truerank.core.estimator import Asked, Estimator
from truerank.core.garbage import without_collecting
from truerank.core.messages import Message, message
from truerank.core.results import Estimate, Results
from truerank.core.terms import Terms
from truerank.evaluation.compare import ComparedTerms, Judged, clip_of, compared, in_order
from truerank.evaluation.families import AdjustedFamily, Correlation, adjusted_families, correlation_of_question
from truerank.evaluation.measure import Measured
from truerank.evaluation.power import check_detectable
from truerank.evaluation.question import Cell, Pair, Plan, Points
from truerank.evaluation.units import Segments, UnitsOf
from truerank.inference.linearization import Bounds, Spread, at_a_bound, within_bounds

# each of these says why there is no interval
WITHOUT_INTERVAL = frozenset(
    {"single-user", "same-value", "no-spread", "no-hit", "no-hit-pairs", "interval-outside", "no-interval"}
)


@without_collecting()
def conclude(plan: Plan, measured: Measured, *, n_rows: int | None = None, n_units: int | None = None) -> Results:
    """What was measured, with how sure it is; `n_rows` of `n_units` went in, and as many must have been measured.

    Question by question, so that the terms of no more than one need to be in memory.
    """
    if n_rows is not None and measured.n_rows != n_rows:
        raise TruerankError(f"{n_rows:,} rows went in, and {measured.n_rows:,} were measured.")  # never in silence
    if n_units is not None and int(measured.size.sum()) != n_units:
        raise TruerankError(f"{n_units:,} {plan.unit}s went in, and {int(measured.size.sum()):,} were measured.")
    question = plan.question
    estimates: dict[Cell, Estimate] = {}
    values: dict[Cell, Spread] = {}
    differences: dict[tuple[Pair, int], Spread] = {}
    correlations: dict[int, Correlation] = {}
    for number, (estimator, asked) in enumerate(question.asked):
        models = [model for model in question.models if (model, number) in measured.terms]
        terms = {model: measured.terms[model, number] for model in models}
        pairs = question.pairs(models)
        bounds = plan.bounds(estimator, asked)
        alone, paired = question.interval.spreads(terms, pairs, level=question.level)
        for model, spread in alone.items():
            cell = (model, number)
            known = plan.known(number, spread, [terms[model]])
            n = plan.equal_clusters(cell, terms[model], measured) if _at_bound(plan, known, bounds) else 0.0
            values[cell] = inside = _bounded(known, bounds, n, level=question.level)
            dropped = _interval_outside(known, inside)
            estimates[cell] = _estimate(plan, measured, cell, terms[model], inside, said=dropped)
        between = ComparedTerms.of(plan, measured, number, terms if pairs else {})
        for pair, spread in paired.items():
            differences[pair, number] = plan.known(number, spread, between.both(pair))
        correlations |= correlation_of_question(plan, number, terms, differences)
    remarks = plan.remarks(measured, Points(values, differences))
    ordered = [estimates[cell] for cell in in_order(plan, estimates)]
    remembers = plan.keeps_units and measured.kept
    families = adjusted_families(plan, measured, differences, correlations, untested=remarks.untested)
    comparisons = compared(plan, families, _judged(plan, measured, families), untested=remarks.untested)
    numbers = [number for _, number in in_order(plan, differences)]
    return Results(
        estimates=tuple(ordered),
        comparisons=comparisons,
        messages=(
            *plan.messages(measured, ordered),
            *remarks.messages,
            *check_detectable(plan, measured, comparisons, numbers),
        ),
        provenance=plan.provenance(measured, remarks),
        unit_table=UnitsOf(plan, measured) if remembers else None,
        segments=Segments(plan, measured) if remembers else None,
    )


def _judged(plan: Plan, measured: Measured, families: Mapping[int, AdjustedFamily]) -> dict[tuple[Pair, int], Judged]:
    """What each difference rests on, given its adjusted interval; question by question."""
    by_number: dict[int, list[tuple[Pair, AdjustedFamily]]] = {}
    for family in families.values():
        for pair, number in family.differences:
            by_number.setdefault(number, []).append((pair, family))
    judged: dict[tuple[Pair, int], Judged] = {}
    for number, pairs in by_number.items():
        models = dict.fromkeys(model for pair, _ in pairs for model in pair)
        terms = {model: measured.terms[model, number] for model in plan.question.models if model in models}
        between = ComparedTerms.of(plan, measured, number, terms)
        for pair, family in pairs:
            judged[pair, number] = between.judged(
                pair, between.both(pair), family.differences[pair, number], level=family.level_alone
            )
    return judged


def _at_bound(plan: Plan, spread: Spread, bounds: Bounds | None) -> bool:
    """Whether a value has no spread because all clusters lie at a bound of the metric."""
    population = not plan.question.interval.needs_rows
    return population and bounds is not None and math.isnan(spread.stderr) and spread.value in bounds


def _bounded(spread: Spread, bounds: Bounds | None, n: float, *, level: float) -> Spread:
    """The spread of a value inside the bounds of its metric; one-sided where n equal clusters lie at a bound."""
    if bounds is None or not n:
        return within_bounds(spread, bounds)
    at_bound = at_a_bound(spread.value, bounds, n, level=level)
    return spread if at_bound is None else dataclasses.replace(at_bound, informative=spread.informative)


def _interval_outside(spread: Spread, inside: Spread) -> tuple[Message, ...]:
    """That an interval was left out, because it lies wholly outside the bounds of its metric."""
    if math.isnan(spread.stderr) or not math.isnan(inside.stderr):
        return ()
    return (message("interval-outside", low=spread.low, high=spread.high),)


def _estimate(
    plan: Plan, measured: Measured, cell: Cell, terms: Terms, spread: Spread, *, said: tuple[Message, ...]
) -> Estimate:
    model, number = cell
    estimator, asked = plan.question.asked[number]
    metric, cutoff = plan.named(estimator, asked)
    if math.isinf(spread.value) or math.isinf(spread.stderr):
        raise RefusedError(
            f"{model}, {metric}, {estimator.about.name}: values or weights are so large that their sum is no number. "
            "Use another unit for rewards, or limit the weights (clip)."
        )
    warnings = (*plan.warnings(cell, terms, measured), *said, *plan.doubts(cell, measured))
    return Estimate(
        model=model,
        metric=metric,
        k=cutoff,
        estimator=estimator.about.name,
        settings=_settings(estimator),
        estimand=_estimand(plan, estimator, asked),
        value=spread.value,
        stderr=spread.stderr,
        low=spread.low,
        high=spread.high,
        level=plan.question.level,
        interval=plan.question.interval.name,
        units=int(measured.size[terms.defined].sum()),
        undefined=int(measured.size[~terms.defined].sum()),
        clusters=int(np.count_nonzero(terms.clusters.has(terms.defined))),
        evidence=plan.evidence(cell, spread, measured),
        ess=plan.effective(cell, terms, measured),
        reward=asked.reward,
        clip=clip_of(estimator, asked),
        segment=asked.segment,
        directed=plan.directed(estimator, asked),
        assumptions=plan.assumptions(estimator),
        warnings=(*warnings, *_no_interval(spread, warnings)),
    )


def _no_interval(spread: Spread, said: tuple[Message, ...]) -> tuple[Message, ...]:
    """That a value has no interval, where nothing that is said already is the reason."""
    if math.isnan(spread.value) or not math.isnan(spread.low) or any(each.code in WITHOUT_INTERVAL for each in said):
        return ()
    return (message("no-interval"),)


def _estimand(plan: Plan, estimator: Estimator, asked: Asked) -> str:
    words = estimator.estimand(asked, plan.unit)
    return words if asked.segment is None else f"{words}; only items of {asked.segment} earn"


def _settings(estimator: Estimator) -> dict[str, Any]:
    """The options of an estimator that are not the default."""
    fields: tuple[dataclasses.Field[Any], ...] = (
        dataclasses.fields(estimator) if dataclasses.is_dataclass(estimator) else ()
    )
    return {
        field.name: str(getattr(estimator, field.name))
        for field in fields
        if field.compare and field.name != "clip" and getattr(estimator, field.name) != field.default
    }
