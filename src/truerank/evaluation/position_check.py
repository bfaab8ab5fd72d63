"""Verdicts under a fitted position model that the log rejects: they stand only where the table of views agrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from truerank.core.messages import DETECTABLE, caution, warning
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, Comparison, Estimate, Results
from truerank.evaluation.ranked_facts import RankedFacts
from truerank.evaluation.ranked_notes import about_columns
from truerank.exposure.positions.fits import PositionFit

CODE = "position-model-rejected"


def checked_by_tables(
    results: Results, by_table: Results, rejected: Mapping[str, PositionFit], facts: RankedFacts
) -> Results:
    """The results with every verdict taken away that is another one under the tables of observed views.

    `by_table` are the same comparisons with the table (Kaplan-Meier) at the places whose fit is `rejected` (statistics
    11.6). An estimate whose interval does not contain the value under the table carries a caution.
    """
    misfit, remedy = _misfit(rejected), about_columns(facts)
    tables = {_key(comparison): comparison for comparison in by_table.comparisons}
    comparisons = tuple(
        _checked(comparison, tables[_key(comparison)], misfit, remedy, p=_smallest_p(rejected))
        for comparison in results.comparisons
    )
    values = {_key(estimate): estimate.value for estimate in by_table.estimates}
    estimates = tuple(
        _with_caution(estimate, values[_key(estimate)], misfit, remedy, p=_smallest_p(rejected))
        for estimate in results.estimates
    )
    messages = results.messages
    if all(comparison.verdict != NOT_SHOWN for comparison in comparisons):  # how much data a difference needs
        messages = tuple(message for message in messages if message.code not in DETECTABLE)
    return replace(results, estimates=estimates, comparisons=comparisons, messages=messages)


def _key(result: Estimate | Comparison) -> tuple[Any, ...]:
    baseline = result.baseline if isinstance(result, Comparison) else None
    return result.model, baseline, result.metric, result.estimator, result.reward, result.clip, result.segment


def _checked(fitted: Comparison, table: Comparison, misfit: str, remedy: str, *, p: float) -> Comparison:
    if fitted.verdict in (INSUFFICIENT, table.verdict):
        return fitted
    reason = warning(
        CODE,
        f"{misfit}, and the verdict depends on it: {fitted.verdict} with the fitted model "
        f"({fitted.difference:+.3g}), {table.verdict} with the table of observed views ({table.difference:+.3g}). "
        f"{remedy}",
        numbers={"p": p, "difference": fitted.difference, "difference_by_table": table.difference},
        about=(fitted.model, fitted.baseline),
    )
    return replace(fitted, verdict=INSUFFICIENT, reasons=(reason,))


def _with_caution(estimate: Estimate, value: float, misfit: str, remedy: str, *, p: float) -> Estimate:
    if not (value < estimate.low or value > estimate.high):
        return estimate
    message = caution(
        CODE,
        f"{misfit}, and the value depends on it: {value:.3g} with the table of observed views. {remedy}",
        numbers={"p": p, "value_by_table": value},
        about=(estimate.model,),
    )
    return replace(estimate, warnings=(*estimate.warnings, message))


def _smallest_p(rejected: Mapping[str, PositionFit]) -> float:
    return min(fit.goodness.p for fit in rejected.values())


def _misfit(rejected: Mapping[str, PositionFit]) -> str:
    names = ", ".join(f"{fit.model.name} of {place}" for place, fit in rejected.items())
    p = _smallest_p(rejected)
    return f"the fitted position model ({names}) does not describe the scroll depths of the log (p = {p:.1g})"
