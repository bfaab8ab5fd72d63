"""Results as text: the estimand in words above the values it belongs to."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from truerank.core.errors import some
from truerank.core.escaping import csv_cell, json_bytes, printable
from truerank.core.messages import BELOW, Severity
from truerank.core.results import Comparison, Estimate, Results
from truerank.report.answers import FEW, Answer, adjusted, answers, assumptions, summed_up, verdict, warnings
from truerank.report.drawn import WIDE, line_of, ruler_of
from truerank.report.numbers import clip_text, interval, number, p_value
from truerank.report.pages import GAP, OnTerminal, TextPage, Uncut, columns_of

COLUMNS, QUESTIONS = 120, 8  # of one screen


def render(
    results: Results,
    *,
    groups: Mapping[str, Results] | None = None,
    width: int | None = None,
    color: bool = False,
    for_cli: bool = False,
) -> str:
    """Everything in the results, for a terminal of `width` columns, or uncut; options as the reader would give them.

    The same within `groups` of units stands after the whole, each under its name.
    """
    page: TextPage = Uncut() if width is None else OnTerminal(width=width, color=color)
    _write(results, page, for_cli=for_cli)
    for name, within in (groups or {}).items():
        page.say((f"\n{name}", "bold underline"))
        _write(within, page, for_cli=for_cli)
    return page.text()


def encoded(text: str) -> bytes:
    """Plain text as it goes out, without what a terminal would obey."""
    return printable(text, lines=True).encode()


def _write(results: Results, page: TextPage, *, for_cli: bool) -> None:
    """Estimates under what they estimate, differences under their estimates, assumptions and warnings at the end."""
    unit = f"{results.provenance.unit}s"
    for answer in answers(results):
        page.say((f"{answer.metric}, {answer.estimator}", "bold"), (f": {answer.estimand}", ""))
        _write_table(_estimates(answer, unit=unit), answer.estimates, page)
        if answer.differences:
            _write_table(_differences(answer), answer.differences, page)
        most = max(estimate.units for estimate in answer.estimates)
        if any(comparison.units < most for comparison in answer.differences):
            page.say((f"Over the {unit} that both models have: {', '.join(_over(answer.differences, unit))}.", ""))
        if answer.left_out is not None:
            page.say((answer.left_out, ""))
        page.say(("", ""))
    if results.comparisons:
        page.say((f"Differences are paired, from the same {unit}; {adjusted(results)}.", ""))
    for assumption in assumptions(results):
        first, rest = assumption[: len("Assumed")], assumption[len("Assumed") :]
        page.say((first, "dim"), (rest, ""))
    # the command line has said what is not of single numbers on standard error
    grave = [str(message) for message in results.messages if message.severity is not Severity.NOTE]
    for sentence in (*(() if for_cli else grave), *warnings(results, for_cli=for_cli)):
        page.say(("! ", "yellow"), (sentence, ""))
    for message in results.messages:
        if message.code in BELOW:
            page.say((message.said(for_cli=for_cli), ""))


def brief(results: Results) -> str:
    """One screen: what was asked, the highest values, what is shown."""
    models = list(dict.fromkeys(repr(estimate.model) for estimate in results.estimates))
    head = (
        f"Results({len(results.estimates):,} estimates of {some(models) or 'no model'}, "
        f"{len(results.comparisons):,} comparisons, {len(results.messages):,} messages)"
    )
    every = answers(results)
    lines = [line for answer in every[:QUESTIONS] for line in _in_brief(answer)]
    more = [f"  and {len(every) - QUESTIONS:,} more questions"] if len(every) > QUESTIONS else []
    said = len(warnings(results, for_cli=False))
    what = f"estimands, assumptions and {said:,} warning{'s' * (said != 1)}" if said else "estimands and assumptions"
    last = [f"print(results) also shows {what}."] if every else []
    return "\n".join(shortened(printable(line), COLUMNS) for line in (head, *lines, *more, *last))


def _in_brief(answer: Answer) -> Iterator[str]:
    known = [each for each in answer.estimates if not math.isnan(each.value)]
    highest = sorted(known, key=lambda each: each.value, reverse=True)
    values = [f"{_named(each)} {_with_interval(each)}" for each in highest]
    yield f"  {answer.metric}, {answer.estimator}: {some(values, most=FEW) or 'undefined'}"
    if answer.differences:
        yield f"    {summed_up(answer.differences)}"


def _named(estimate: Estimate) -> str:
    return estimate.model if estimate.clip is None else f"{estimate.model} clip {clip_text(estimate.clip)}"


def _with_interval(estimate: Estimate) -> str:
    known = not math.isnan(estimate.low) and not math.isnan(estimate.high)
    return number(estimate.value) + (f" ({interval(estimate.low, estimate.high)})" if known else "")


def shortened(line: str, columns: int) -> str:
    """
    >>> shortened("a long line", 8)
    'a lon...'
    """
    return line if len(line) <= columns else f"{line[: columns - 3]}..."


# --------------------------------------------------------------------------------------------------------------- tables


def _estimates(answer: Answer, *, unit: str) -> list[list[str]]:
    level, kind = answer.estimates[0].level, answer.estimates[0].interval
    clips, sizes = answer.clipped, any(estimate.ess is not None for estimate in answer.estimates)
    names = ["value", f"{level:.0%} interval ({kind})", unit, "left out"]
    lines = [["model", *(["clip"] if clips else []), *names, *(["effective rows"] if sizes else [])]]
    for estimate in answer.estimates:
        clip = _clip(estimate.clip, chosen=(estimate.model, estimate.clip) in answer.chosen)
        cells = [
            number(estimate.value),
            interval(estimate.low, estimate.high),
            f"{estimate.units:,}",
            f"{estimate.undefined:,}",
        ]
        size = "" if estimate.ess is None else f"{estimate.ess:,.0f}"
        lines.append([estimate.model, *([clip] if clips else []), *cells, *([size] if sizes else [])])
    return lines


def _differences(answer: Answer) -> list[list[str]]:
    clips = answer.clipped
    lines = [["difference", *(["clip"] if clips else []), "value", "interval", "p", "p adjusted", ""]]
    for comparison in answer.differences:
        names = f"{comparison.model} - {comparison.baseline}"
        clip = _clip(comparison.clip, chosen=(names, comparison.clip) in answer.chosen)
        cells = [
            number(comparison.difference),
            interval(comparison.low, comparison.high),
            p_value(comparison.p),
            p_value(comparison.p_adjusted),
        ]
        lines.append([names, *([clip] if clips else []), *cells, verdict(comparison)])
    return lines


def _clip(clip: float | None, *, chosen: bool) -> str:
    return f"{'chosen: ' if chosen else ''}{clip_text(clip)}"


def _write_table(lines: list[list[str]], entries: Sequence[Estimate | Comparison], page: TextPage) -> None:
    """A table with its intervals drawn beside it, where there is room."""
    taken = sum(max(map(columns_of, column)) + GAP for column in zip(*lines, strict=True))
    ruler = ruler_of(entries, WIDE if page.width is None else page.width - taken)
    left = [at for at, name in enumerate(lines[0]) if not at or not name]
    if ruler is not None:
        drawn = [ruler.head(), *(line_of(ruler, entry) for entry in entries)]
        left, lines = [*left, len(lines[0])], [[*line, last] for line, last in zip(lines, drawn, strict=True)]
    page.table(lines, left=left)


def _over(differences: Sequence[Comparison], unit: str) -> list[str]:
    return [f"{entry.model} - {entry.baseline} over the {entry.units:,} {unit}" for entry in differences]


# ---------------------------------------------------------------------------------------------------------------- forms


def as_json(content: Any) -> bytes:
    return json_bytes(content)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A line for each row, all with the names of the first; nothing that a spreadsheet would run."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in row.items()} for row in rows)
    return stream.getvalue().encode()


def as_lines(values: Mapping[str, Any], *, width: int | None = None) -> str:
    """A line for each name and its value.

    >>> print(as_lines({"users": 3, "first items": "a, b"}), end="")
    users        3
    first items  a, b
    """
    wide = width or max(len(name) for name in values)
    return "".join(f"{printable(name):{wide}}  {printable(str(value))}\n" for name, value in values.items())
