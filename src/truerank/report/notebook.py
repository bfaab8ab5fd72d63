"""Results in a notebook: each question with its answer, values, differences, and what to know before trusting them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from truerank.core.escaping import html_text
from truerank.core.results import Comparison, Estimate, Results
from truerank.report.answers import Answer, adjusted, answers, assumptions, summed_up, verdict, warnings
from truerank.report.drawn import NARROW, WIDE, line_of, ruler_of
from truerank.report.numbers import clip_text, interval, number, p_value
from truerank.report.plots import notebook_picture

COLUMNS = (NARROW + WIDE) // 2  # of an axis
FIXED = ' style="font-family: monospace; white-space: pre; text-align: left"'


def as_html(results: Results) -> str:
    """All of it without scripts or files of others; names from data are text."""
    unit = f"{results.provenance.unit}s"
    parts = [_answer(answer, unit=unit) for answer in answers(results)]
    parts.append(notebook_picture(results))
    if results.comparisons:
        parts.append(_paragraph(f"Differences are paired, from the same {unit}; {adjusted(results)}."))
    sentences = [
        *assumptions(results),
        *(f"! {text}" for text in warnings(results, for_cli=False)),
        *results.notes,
    ]
    if sentences:
        parts.append(f"<ul>{''.join(f'<li>{html_text(sentence)}</li>' for sentence in sentences)}</ul>")
    return "".join(parts)


def _answer(answer: Answer, *, unit: str) -> str:
    shown = summed_up(answer.differences)
    parts = [f"<p><strong>{html_text(f'{answer.metric}, {answer.estimator}')}</strong>: {html_text(answer.estimand)}"]
    parts.append(f"<br>{html_text(shown)}.</p>" if shown else "</p>")
    clip = ["clip"] if answer.clipped else []
    estimate = answer.estimates[0]
    head = ["model", *clip, "value", f"{estimate.level:.0%} interval ({estimate.interval})", unit, "left out"]
    parts.append(_table(head, [_estimate(each, clips=bool(clip)) for each in answer.estimates], answer.estimates))
    if answer.differences:
        head = ["difference", *clip, "value", "interval", "p", "p adjusted", "verdict"]
        rows = [_difference(each, clips=bool(clip)) for each in answer.differences]
        parts.append(_table(head, rows, answer.differences))
    if answer.left_out is not None:
        parts.append(_paragraph(answer.left_out))
    return "".join(parts)


def _estimate(estimate: Estimate, *, clips: bool) -> list[str]:
    return [
        estimate.model,
        *([clip_text(estimate.clip)] if clips else []),
        number(estimate.value),
        interval(estimate.low, estimate.high),
        f"{estimate.units:,}",
        f"{estimate.undefined:,}",
    ]


def _difference(comparison: Comparison, *, clips: bool) -> list[str]:
    return [
        f"{comparison.model} - {comparison.baseline}",
        *([clip_text(comparison.clip)] if clips else []),
        number(comparison.difference),
        interval(comparison.low, comparison.high),
        p_value(comparison.p),
        p_value(comparison.p_adjusted),
        verdict(comparison),
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], entries: Sequence[Estimate | Comparison]) -> str:
    ruler = ruler_of(entries, COLUMNS)
    titles = "".join(f"<th>{html_text(title)}</th>" for title in head)
    titles += "" if ruler is None else f"<th{FIXED}>{html_text(ruler.head())}</th>"
    drawn: Iterable[str] = (
        ("" for _ in entries) if ruler is None else (f"<td{FIXED}>{line_of(ruler, each)}</td>" for each in entries)
    )
    body = "".join(
        f"<tr>{''.join(f'<td>{html_text(cell)}</td>' for cell in row)}{line}</tr>"
        for row, line in zip(rows, drawn, strict=True)
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _paragraph(sentence: str) -> str:
    return f"<p>{html_text(sentence)}</p>"
