"""Verdicts with a fitted position model that the log rejects: they stand only where the table of views agrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from truerank.core.messages import DETECTABLE, Message, message
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, Comparison, Estimate, Results
from truerank.evaluation.impression_checks import position_remedy
from truerank.evaluation.log_facts import LogFacts
from truerank.exposure.positions.fits import PositionFit


@dataclass(frozen=True, slots=True)
class RejectedFits:
    """Fitted position models that do not describe the log (goodness of fit, p < .01), by place; and what to do."""

    fits: Mapping[str, PositionFit]
    facts: LogFacts
    from_clicks: bool

    def reason(self, fitted: Comparison, table: Comparison | None) -> Message:
        """Why a comparison carries no verdict."""
        about = (fitted.model, fitted.baseline)
        numbers = {"difference": fitted.difference}
        if table is None:
            return message("position-model-rejected", **self._fields(), numbers=numbers, about=about)
        return message(
            "position-model-rejected.table",
            **self._fields(),
            verdict=fitted.verdict,
            difference=fitted.difference,
            verdict_by_table=table.verdict,
            difference_by_table=table.difference,
            about=about,
        )

    def caution(self, estimate: Estimate, value: float) -> Message:
        """That a value is another one with the table."""
        return message("position-model-rejected.value", **self._fields(), value_by_table=value, about=(estimate.model,))

    def _fields(self) -> dict[str, Any]:
        return {
            "fits": ", ".join(f"{fit.model.name} of {place}" for place, fit in self.fits.items()),
            "observed": "clicks" if self.from_clicks else "scroll depths",
            "p": min(fit.goodness.p for fit in self.fits.values()),
            "remedy": position_remedy(self.facts, clicks=self.from_clicks),
        }


def checked_by_tables(results: Results, by_table: Results | None, rejected: RejectedFits) -> Results:
    """The results with every verdict taken away that is not the same with the table of observed views.

    `by_table` are the same results with the table (Kaplan-Meier) at the places whose fit is rejected (statistics 11.6);
    None where the log has no scroll depths. An estimate whose interval does not contain its value with the table
    carries a caution.
    """
    tables = {} if by_table is None else {_key(comparison): comparison for comparison in by_table.comparisons}
    values = {} if by_table is None else {_key(estimate): estimate.value for estimate in by_table.estimates}

    def compared(fitted: Comparison) -> Comparison:
        table = tables.get(_key(fitted))
        if fitted.verdict == INSUFFICIENT or (table is not None and table.verdict == fitted.verdict):
            return fitted
        return replace(fitted, verdict=INSUFFICIENT, reasons=(rejected.reason(fitted, table),))

    def estimated(estimate: Estimate) -> Estimate:
        value = values.get(_key(estimate), estimate.value)
        if not (value < estimate.low or value > estimate.high):
            return estimate
        return replace(estimate, warnings=(*estimate.warnings, rejected.caution(estimate, value)))

    comparisons = tuple(map(compared, results.comparisons))
    messages = results.messages
    if all(comparison.verdict != NOT_SHOWN for comparison in comparisons):
        messages = tuple(message for message in messages if message.code not in DETECTABLE)
    return replace(
        results, estimates=tuple(map(estimated, results.estimates)), comparisons=comparisons, messages=messages
    )


def _key(result: Estimate | Comparison) -> tuple[Any, ...]:
    baseline = result.baseline if isinstance(result, Comparison) else None
    return result.model, baseline, result.metric, result.estimator, result.reward, result.clip, result.segment
