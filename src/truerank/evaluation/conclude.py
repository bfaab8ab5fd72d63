"""conclude(Plan, Measured) -> Results: intervals, comparisons, messages, provenance, written once for every data."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from truerank.core.errors import RefusedError, TruerankError
from truerank.core.garbage import without_collecting
from truerank.core.messages import message
from truerank.core.results import Estimate, Results
from truerank.evaluation.compare import (
    Correlation,
    Difference,
    PairedTerms,
    adjusted_families,
    clip_of,
    compare,
    correlation_of_estimate,
    in_order,
)
from truerank.evaluation.measure import Measured, MeasuredEstimate
from truerank.evaluation.power import check_detectable
from truerank.evaluation.question import Cell, Examined, Plan, PlannedEstimate, Points
from truerank.evaluation.units import Segments, UnitsOf
from truerank.inference.linearization import Spread, at_a_bound, within_bounds

# each of these says why there is no interval
WITHOUT_INTERVAL = frozenset(
    {"single-user", "same-value", "no-spread", "no-hit", "no-hit-pairs", "interval-outside", "no-interval"}
)


@without_collecting()
def conclude(plan: Plan[Any], measured: Measured, *, complete: bool = False) -> Results:
    """What was measured, with how sure it is; where it is `complete`, all rows and units must have been measured.

    Estimate by estimate, so that the terms of no more than one need to be in memory.
    """
    counted = {"rows": (plan.n_rows, measured.n_rows), f"{plan.unit}s": (plan.n_units, int(measured.size.sum()))}
    for what, (expected, n) in counted.items():
        if complete and n != expected:
            raise TruerankError(f"{expected:,} {what} went in, and {n:,} were measured.")  # never in silence
    plan.rows.check(plan, measured)
    question = plan.question
    estimates: dict[Cell, Estimate] = {}
    examined: dict[Cell, Examined] = {}
    values: dict[Cell, Spread] = {}
    differences: dict[Difference, Spread] = {}
    correlations: dict[int, Correlation] = {}
    for number in range(len(plan.estimates)):
        models = [model for model in plan.models if (model, number) in measured.terms]
        terms = {model: measured.terms[model, number] for model in models}
        pairs = question.pairs(models)
        alone, paired = question.interval.spreads(terms, pairs, level=question.level)
        for model, spread in alone.items():
            cell = (model, number)
            visible = plan.rows.visible(plan, spread, [terms[model]])
            estimate = MeasuredEstimate(plan, cell, measured, terms[model])
            values[cell] = inside = _bounded(estimate, visible)
            basis = plan.rows.examine(estimate)
            if math.isnan(inside.stderr) and not math.isnan(visible.stderr):
                outside = message("interval-outside", low=visible.low, high=visible.high)
                basis = dataclasses.replace(basis, warnings=(*basis.warnings, outside))
            examined[cell] = basis
            estimates[cell] = _estimate(estimate, inside, basis)
        between = PairedTerms(terms if pairs else {})
        for pair, spread in paired.items():
            differences[pair, number] = plan.rows.visible(plan, spread, between.both(pair))
        correlations |= correlation_of_estimate(plan, number, terms, differences)
    ordered = [estimates[cell] for cell in in_order(plan, estimates)]
    remarks = plan.rows.remarks(plan, measured, Points(values, differences), ordered)
    families = adjusted_families(plan, measured, differences, correlations, untested=remarks.untested)
    compared = compare(plan, measured, examined, families, untested=remarks.untested)
    cells = in_order(plan, [cell for family in families for cell in family.differences])
    comparisons = tuple(compared[cell] for cell in cells)
    remembers = plan.keeps_units and measured.kept
    detectable = check_detectable(plan, measured, comparisons, [number for _, number in cells])
    return Results(
        estimates=tuple(ordered),
        comparisons=comparisons,
        messages=(*remarks.messages, *detectable),
        provenance=dataclasses.replace(plan.record, counts=remarks.counts, details=remarks.details),
        unit_table=UnitsOf(plan, measured) if remembers else None,
        segments=Segments(plan, measured) if remembers else None,
    )


def _bounded(estimate: MeasuredEstimate, spread: Spread) -> Spread:
    """The spread of a value inside the bounds of its metric; one-sided where all clusters lie at a bound."""
    question, bounds = estimate.plan.question, estimate.planned.bounds
    if bounds is None or question.interval.needs_rows or not math.isnan(spread.stderr) or spread.value not in bounds:
        return within_bounds(spread, bounds)
    n = estimate.plan.rows.equal_clusters(estimate)
    if not n:
        return within_bounds(spread, bounds)
    at_bound = at_a_bound(spread.value, bounds, n, level=question.level)
    return spread if at_bound is None else dataclasses.replace(at_bound, informative=spread.informative)


def _estimate(measured: MeasuredEstimate, spread: Spread, examined: Examined) -> Estimate:
    planned, question, terms = measured.planned, measured.plan.question, measured.terms
    estimator, request, size = planned.estimator, planned.request, measured.measured.size
    if math.isinf(spread.value) or math.isinf(spread.stderr):
        raise RefusedError(
            f"{measured.model}, {planned.name}, {estimator.info.name}: values or weights are so large that their sum "
            "is no number. Use another unit for rewards, or limit the weights (clip)."
        )
    warnings = (*examined.warnings, *examined.reasons)
    unknown = math.isnan(spread.low) and not math.isnan(spread.value)
    if unknown and not any(warning.code in WITHOUT_INTERVAL for warning in warnings):
        warnings = (*warnings, message("no-interval"))
    evidence = dataclasses.replace(
        examined.evidence, informative=spread.informative, df=spread.df, largest=spread.largest
    )
    estimand = estimator.estimand(request, measured.plan.unit)
    return Estimate(
        model=measured.model,
        metric=planned.name,
        k=planned.cutoff,
        estimator=estimator.info.name,
        settings=_settings(planned),
        estimand=estimand if request.segment is None else f"{estimand}; only items of {request.segment} earn",
        value=spread.value,
        stderr=spread.stderr,
        low=spread.low,
        high=spread.high,
        level=question.level,
        interval=question.interval.name,
        units=int(size[terms.defined].sum()),
        undefined=int(size[~terms.defined].sum()),
        clusters=int(np.count_nonzero(terms.clusters.has(terms.defined))),
        evidence=evidence,
        ess=examined.effective,
        reward=request.reward,
        clip=clip_of(planned),
        segment=request.segment,
        directed=planned.directed,
        assumptions=planned.assumptions,
        warnings=warnings,
    )


def _settings(planned: PlannedEstimate) -> dict[str, Any]:
    """The options of an estimator that are not the default."""
    estimator: Any = planned.estimator
    return {
        field.name: str(getattr(estimator, field.name))
        for field in (dataclasses.fields(estimator) if dataclasses.is_dataclass(estimator) else ())
        if field.compare and field.name != "clip" and getattr(estimator, field.name) != field.default
    }
