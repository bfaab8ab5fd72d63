"""conclude(Plan, Measured) -> Results: intervals, comparisons, messages, provenance, written once for every data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from truerank.core.errors import TruerankError
from truerank.core.estimator import Asked, Clipping, Estimator
from truerank.core.multiple import holm
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.terms import Terms
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Cell, Pair, Plan, Points
from truerank.evaluation.units import Segments, UnitsOf
from truerank.uncertainty.intervals import Spread, common


def conclude(plan: Plan, measured: Measured, *, n_rows: int | None = None) -> Results:
    """What was measured, with how sure it is; `n_rows` went in, and as many must have been measured.

    Question by question, so that the terms of no more than one need to be in memory.
    """
    if n_rows is not None and measured.n_rows != n_rows:
        raise TruerankError(f"{n_rows:,} rows went in, and {measured.n_rows:,} were measured.")  # never in silence
    estimates: dict[Cell, Estimate] = {}
    comparisons: dict[tuple[Pair, int], Comparison] = {}
    values: dict[Cell, Spread] = {}
    differences: dict[tuple[Pair, int], Spread] = {}
    for number in range(len(plan.question.asked)):
        models = [model for model in plan.question.models if (model, number) in measured.terms]
        terms = {model: measured.terms[model, number] for model in models}
        pairs = plan.question.pairs(models)
        alone, paired = plan.question.interval.spreads(terms, pairs, level=plan.question.level)
        for model, spread in alone.items():
            values[model, number] = known = plan.known(spread, [terms[model]])
            estimates[model, number] = _estimate(plan, measured, (model, number), terms[model], known)
        for pair, spread in paired.items():
            both = common(terms[pair[0]], terms[pair[1]])
            differences[pair, number] = known = plan.known(spread, both)
            comparisons[pair, number] = _comparison(plan, measured, (pair, number), both, known)
    remarks = plan.remarks(measured, Points(values, differences))
    ordered = [estimates[cell] for cell in _ordered(plan, estimates)]
    remembers = plan.keeps_units and measured.kept
    return Results(
        estimates=tuple(ordered),
        comparisons=_adjusted(plan, comparisons, untested=remarks.untested),
        messages=(*plan.messages(measured, ordered), *remarks.messages),
        provenance=plan.provenance(measured, remarks),
        unit_table=UnitsOf(plan, measured) if remembers else None,
        segments=Segments(plan, measured) if remembers else None,
    )


def _ordered(plan: Plan, cells: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Cells in the order of output: by what is asked, then by model (or pair) in the order given, then by clip."""
    place = {who: at for at, who in enumerate(dict.fromkeys(who for who, _ in cells))}

    def key(cell: tuple[Any, int]) -> tuple[int, ...]:
        first, *last = plan.order(cell[1])
        return first, place[cell[0]], *last

    return sorted(cells, key=key)


def _estimate(plan: Plan, measured: Measured, cell: Cell, terms: Terms, spread: Spread) -> Estimate:
    model, number = cell
    estimator, asked = plan.question.asked[number]
    metric, cutoff = plan.named(estimator, asked)
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
        ess=plan.effective(cell, terms, measured),
        reward=asked.reward,
        clip=_limit(estimator, asked),
        segment=asked.segment,
        assumptions=plan.assumptions(estimator),
        warnings=plan.warnings(cell, terms, measured),
    )


def _comparison(
    plan: Plan, measured: Measured, cell: tuple[Pair, int], both: tuple[Terms, Terms], spread: Spread
) -> Comparison:
    (model, baseline), number = cell
    estimator, asked = plan.question.asked[number]
    defined = both[0].defined & both[1].defined
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
        units=int(measured.size[defined].sum()),
        clusters=int(np.count_nonzero(both[0].clusters.has(defined))),
        reward=asked.reward,
        clip=_limit(estimator, asked),
        segment=asked.segment,
    )


def _adjusted(
    plan: Plan,
    comparisons: Mapping[tuple[Pair, int], Comparison],
    *,
    untested: frozenset[tuple[Pair, int]],
) -> tuple[Comparison, ...]:
    """The comparisons in the order of output, with p by Holm over all of them that are a test."""
    cells = _ordered(plan, comparisons)
    # of a curve to choose from only the chosen difference is a test
    tested = [math.nan if cell in untested else comparisons[cell].p for cell in cells]
    adjusted = holm(np.array(tested, dtype=np.float64))
    return tuple(comparisons[cell].adjusted(float(p)) for cell, p in zip(cells, adjusted, strict=True))


def _estimand(plan: Plan, estimator: Estimator, asked: Asked) -> str:
    words = estimator.estimand(asked, plan.unit)
    return words if asked.segment is None else f"{words}; only items of {asked.segment} earn"


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
