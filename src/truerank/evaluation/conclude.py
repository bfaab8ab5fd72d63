"""conclude(Plan, Measured) -> Results: intervals, comparisons, messages, provenance, written once for every data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from truerank.core.errors import TruerankError
from truerank.core.estimator import Asked, Clipping, Estimator
from truerank.core.multiple import holm
from truerank.core.results import Comparison, Estimate, Results
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Cell, Pair, Plan, Points
from truerank.evaluation.units import Segments, UnitsOf
from truerank.uncertainty.intervals import Spread, common


def conclude(plan: Plan, measured: Measured, *, n_rows: int | None = None) -> Results:
    """What was measured, with how sure it is; `n_rows` went in, and as many must have been measured."""
    if n_rows is not None and measured.n_rows != n_rows:
        raise TruerankError(f"{n_rows:,} rows went in, and {measured.n_rows:,} were measured.")  # never in silence
    points = _points(plan, measured)
    remarks = plan.remarks(measured, points)
    estimates = [_estimate(plan, measured, cell, points.values[cell]) for cell in _ordered(plan, points.values)]
    return Results(
        estimates=tuple(estimates),
        comparisons=_comparisons(plan, measured, points, untested=remarks.untested),
        messages=(*plan.messages(measured, estimates), *remarks.messages),
        provenance=plan.provenance(measured, remarks),
        unit_table=UnitsOf(plan, measured),
        segments=Segments(plan, measured),
    )


def _ordered(plan: Plan, cells: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Cells in the order of output: by what is asked, then by model (or pair) in the order given, then by clip."""
    models = list(dict.fromkeys(who for who, _ in cells))

    def place(cell: tuple[Any, int]) -> tuple[int, ...]:
        first, *last = plan.order(cell[1])
        return first, models.index(cell[0]), *last

    return sorted(cells, key=place)


def _points(plan: Plan, measured: Measured) -> Points:
    """Question by question, so that no more than one question's terms need to be in memory."""
    question = plan.question
    values: dict[Cell, Spread] = {}
    differences: dict[tuple[Pair, int], Spread] = {}
    for number in range(len(question.asked)):
        models = [model for model in question.models if (model, number) in measured.terms]
        terms = {model: measured.terms[model, number] for model in models}
        pairs = question.pairs(models)
        alone, paired = question.interval.spreads(terms, pairs, level=question.level)
        values |= {(model, number): plan.known(spread, [terms[model]]) for model, spread in alone.items()}
        for (first, second), spread in paired.items():
            both = common(terms[first], terms[second])
            differences[(first, second), number] = plan.known(spread, both)
    return Points(values, differences)


def _estimate(plan: Plan, measured: Measured, cell: Cell, spread: Spread) -> Estimate:
    model, number = cell
    estimator, asked = plan.question.asked[number]
    terms = measured.terms[cell]
    metric, cutoff = plan.named(estimator, asked)
    return Estimate(
        model=model,
        metric=metric,
        k=cutoff,
        estimator=estimator.about.name,
        settings=_settings(estimator),
        estimand=estimator.estimand(asked, plan.unit),
        value=spread.value,
        stderr=spread.stderr,
        low=spread.low,
        high=spread.high,
        level=plan.question.level,
        interval=plan.question.interval.name,
        units=int(measured.size[terms.defined].sum()),
        undefined=int(measured.size[~terms.defined].sum()),
        clusters=int(np.count_nonzero(terms.clusters.has(terms.defined))),
        ess=plan.effective(cell, measured),
        reward=asked.reward,
        clip=_limit(estimator, asked),
        assumptions=plan.assumptions(estimator),
        warnings=plan.warnings(cell, measured),
    )


def _comparisons(
    plan: Plan, measured: Measured, points: Points, *, untested: frozenset[tuple[Pair, int]]
) -> tuple[Comparison, ...]:
    """Differences of every pair of models, or of each model and the baseline; Holm over all of them."""
    cells = _ordered(plan, points.differences)
    made = [_comparison(plan, measured, cell, points.differences[cell]) for cell in cells]
    # of a curve to choose from only the chosen difference is a test
    tested = [math.nan if cell in untested else comparison.p for cell, comparison in zip(cells, made, strict=True)]
    adjusted = holm(np.array(tested, dtype=np.float64))
    return tuple(comparison.adjusted(float(p)) for comparison, p in zip(made, adjusted, strict=True))


def _comparison(plan: Plan, measured: Measured, cell: tuple[Pair, int], spread: Spread) -> Comparison:
    (model, baseline), number = cell
    estimator, asked = plan.question.asked[number]
    terms = measured.terms[model, number]
    both = terms.defined & measured.terms[baseline, number].defined
    return Comparison(
        model=model,
        baseline=baseline,
        metric=plan.named(estimator, asked)[0],
        estimator=estimator.about.name,
        difference=spread.value,
        stderr=spread.stderr,
        low=spread.low,
        high=spread.high,
        level=plan.question.level,
        p=spread.p,
        units=int(measured.size[both].sum()),
        clusters=int(np.count_nonzero(terms.clusters.has(both))),
        reward=asked.reward,
        clip=_limit(estimator, asked),
    )


def _limit(estimator: Estimator, asked: Asked) -> float | None:
    """Where weights were cut, None where they were not."""
    return None if estimator.about.clipping is Clipping.NONE or math.isinf(asked.clip) else asked.clip


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
