"""Verdicts with a fitted position model that the log rejects: they stand only where the table of views agrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from truerank.core.messages import DETECTABLE, Message, Number, caution, warning
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, Comparison, Estimate, Results
from truerank.evaluation.ranked_facts import RankedFacts
from truerank.evaluation.ranked_notes import about_columns
from truerank.exposure.positions.fits import PositionFit

CODE = "position-model-rejected"


@dataclass(frozen=True, slots=True)
class RejectedFits:
    """Fitted position models that do not describe the log (goodness of fit, p < .01), by place; and what to do."""

    fits: Mapping[str, PositionFit]
    facts: RankedFacts
    from_clicks: bool

    @property
    def p(self) -> float:
        return min(fit.goodness.p for fit in self.fits.values())

    def text(self, consequence: str) -> str:
        names = ", ".join(f"{fit.model.name} of {place}" for place, fit in self.fits.items())
        what = "clicks" if self.from_clicks else "scroll depths"
        return (
            f"the fitted position model ({names}) does not describe the {what} of the log (p = {self.p:.1g}), "
            f"{consequence}. {about_columns(self.facts, clicks=self.from_clicks)}"
        )

    def reason(self, fitted: Comparison, table: Comparison | None) -> Message:
        """Why a comparison carries no verdict."""
        consequence = "and no table of observed views can confirm the verdict"
        numbers: dict[str, Number] = {"p": self.p, "difference": fitted.difference}
        if table is not None:
            numbers["difference_by_table"] = table.difference
            consequence = (
                f"and the verdict depends on it: {fitted.verdict} with the fitted model ({fitted.difference:+.3g}), "
                f"{table.verdict} with the table of observed views ({table.difference:+.3g})"
            )
        about = (fitted.model, fitted.baseline)
        return warning(CODE, self.text(consequence), numbers=numbers, about=about)

    def caution(self, estimate: Estimate, value: float) -> Message:
        """That a value is another one with the table."""
        consequence = f"and the value depends on it: {value:.3g} with the table of observed views"
        numbers = {"p": self.p, "value_by_table": value}
        return caution(CODE, self.text(consequence), numbers=numbers, about=(estimate.model,))


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
