"""Results as a small piece of HTML for notebooks; everything shown is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from truerank.core.results import NOT_SHOWN, Comparison, Estimate, Results
from truerank.report.text import clip_text, interval, number, p_value

ESTIMATES = ("metric", "estimator", "model", "clip", "value", "interval", "units", "estimand")
COMPARISONS = ("metric", "estimator", "difference", "clip", "value", "interval", "p adjusted", "verdict")


def render(results: Results) -> str:
    """Estimates, their differences, warnings and messages."""
    parts = [_table(ESTIMATES, (_estimate(estimate) for estimate in results.estimates))]
    if results.comparisons:
        parts.append(_table(COMPARISONS, (_comparison(comparison) for comparison in results.comparisons)))
    warnings = dict.fromkeys(text for estimate in results.estimates for text in estimate.warning_texts)
    sentences = [*(f"! {text}" for text in warnings), *results.notes]
    if sentences:
        parts.append(f"<ul>{''.join(f'<li>{html.escape(sentence)}</li>' for sentence in sentences)}</ul>")
    return "".join(parts)


def _estimate(estimate: Estimate) -> tuple[str, ...]:
    return (
        estimate.metric,
        estimate.estimator,
        estimate.model,
        clip_text(estimate.clip),
        number(estimate.value),
        interval(estimate.low, estimate.high),
        f"{estimate.units:,}",
        estimate.estimand,
    )


def _comparison(comparison: Comparison) -> tuple[str, ...]:
    return (
        comparison.metric,
        comparison.estimator,
        f"{comparison.model} - {comparison.baseline}",
        clip_text(comparison.clip),
        number(comparison.difference),
        interval(comparison.low, comparison.high),
        p_value(comparison.p_adjusted),
        comparison.verdict if comparison.verdict == NOT_SHOWN else f"{comparison.model} is {comparison.verdict}",
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{title}</th>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
