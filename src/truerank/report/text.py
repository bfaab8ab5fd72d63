"""Results as text: the estimand in words above the values it belongs to."""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import msgspec
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from truerank.core.messages import Severity
from truerank.core.printable import printable
from truerank.core.results import BETTER, NOT_SHOWN, WORSE, Comparison, Estimate, Results
from truerank.data.cells import safe_cell

Chosen = set[tuple[str, float | None]]
MANY_LINES = 500  # of one table, beyond which it shows the highest values alone
MANY_MODELS = 20  # that it then shows
WIDE = 10_000  # of text that no terminal cuts


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
    stream = io.StringIO()
    console = console_on(stream, width=width, color=color)
    print_results(results, console, for_cli=for_cli)
    for name, within in (groups or {}).items():
        console.print(Text(f"\n{name}", style="bold underline"))
        print_results(within, console, for_cli=for_cli)
    return stream.getvalue()


def console_on(stream: io.StringIO, *, width: int | None, color: bool) -> Console:
    """A console for a terminal of `width` columns, or uncut, that shows data without what a terminal would obey."""
    system: Any = "auto" if color else None
    console = Console(file=stream, width=width or WIDE, force_terminal=color, color_system=system, highlight=False)
    console.push_render_hook(_Harmless())
    return console


class _Harmless(RenderHook):
    """Texts and cells are laid out first and then made printable, so that only styles of ours become sequences."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Written(each) for each in renderables]


@dataclass(frozen=True, slots=True)
class _Written:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.inner, options):
            yield Segment(printable(text, lines=True), style, control)


def encoded(text: str) -> bytes:
    """Plain text as it goes out, without what a terminal would obey."""
    return printable(text, lines=True).encode()


def print_results(results: Results, console: Console, *, for_cli: bool) -> None:
    """Estimates under what they estimate, differences under their estimates, assumptions and warnings at the end."""
    unit = f"{results.provenance.unit}s"
    for (metric, estimator, estimand, reward, _), run in groupby(results.estimates, key=_question):
        every = list(run)
        differences = _differences(results, every)
        group, shown = best(every, differences)
        console.print(Text(f"{metric}, {estimator}", style="bold").append(f": {estimand}", style="not bold"))
        chosen = _chosen(results, estimator, reward)
        console.print(_estimates(group, unit=unit, chosen=chosen))
        if shown:
            console.print(_comparisons(shown, chosen=chosen))
        most = max(estimate.units for estimate in group)
        if any(comparison.units < most for comparison in shown):
            console.print(f"Over the {unit} that both models have: {', '.join(_over(shown, unit))}.")
        if len(group) < len(every) or len(shown) < len(differences):
            console.print(_left_out(group, every, shown, differences))
        console.print()
    if results.comparisons:
        console.print(f"Differences are paired, from the same {unit}; {_adjusted(results)}.")
    for assumption in _assumptions(results):
        console.print(Text("Assumed", style="dim").append(assumption, style="default"))
    if not for_cli:  # the command line has said it all on standard error
        for message in results.messages:
            if message.severity is not Severity.NOTE:
                console.print(Text("! ", style="yellow").append(str(message), style="default"))
    for sentence in _warnings(results, for_cli=for_cli):
        console.print(Text("! ", style="yellow").append(sentence, style="default"))


def number(value: float) -> str:
    """Four decimals, more for small values.

    >>> number(0.25), number(0.000123), number(float("nan"))
    ('0.2500', '0.000123', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    return f"{value:.3g}" if 0 < abs(value) < 0.01 else f"{value:.4f}"


def interval(low: float, high: float) -> str:
    return "none" if math.isnan(low) or math.isnan(high) else f"{number(low)} to {number(high)}"


def p_value(value: float) -> str:
    if math.isnan(value):
        return "none"
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def clip_text(clip: float | None) -> str:
    return "none" if clip is None else format(clip, "g")


def _question(estimate: Estimate) -> tuple[str, str, str, str, str]:
    return estimate.metric, estimate.estimator, estimate.estimand, estimate.reward, estimate.segment or ""


def _same(shown: Estimate | Comparison) -> tuple[str, str, str, float | None, str | None]:
    return shown.metric, shown.estimator, shown.reward, shown.clip, shown.segment


def _differences(results: Results, group: Sequence[Estimate]) -> list[Comparison]:
    """The comparisons of the estimates in a group, and of no others of the same estimator."""
    shown = {_same(estimate) for estimate in group}
    return [comparison for comparison in results.comparisons if _same(comparison) in shown]


def best(
    estimates: Sequence[Estimate], differences: Sequence[Comparison]
) -> tuple[Sequence[Estimate], Sequence[Comparison]]:
    """What a table shows: all that a reader can take in, else the highest values and the differences among them.

    A baseline that all were compared with stays, whatever its value.
    """
    names = dict.fromkeys(estimate.model for estimate in estimates)
    if len(names) <= MANY_MODELS or (len(estimates) <= MANY_LINES and len(differences) <= MANY_LINES):
        return estimates, differences
    ranked = sorted(estimates, key=lambda each: -math.inf if math.isnan(each.value) else each.value, reverse=True)
    kept = set(list(dict.fromkeys(estimate.model for estimate in ranked))[:MANY_MODELS])
    baselines = {comparison.baseline for comparison in differences}
    kept |= baselines if len(baselines) == 1 else set()
    return (
        [estimate for estimate in estimates if estimate.model in kept],
        [each for each in differences if each.model in kept and each.baseline in kept],
    )


def _left_out(
    group: Sequence[Estimate], every: Sequence[Estimate], shown: Sequence[Comparison], all_of: Sequence[Comparison]
) -> str:
    return (
        f"The highest {len(group):,} of {len(every):,} values and {len(shown):,} of {len(all_of):,} differences; the "
        "others are in JSON and CSV."
    )


def _chosen(results: Results, estimator: str, reward: str) -> Chosen:
    """The clips that were chosen by the data, each with the value or difference it is of."""
    choices = results.provenance.details.get("chosen", ())
    return {
        (choice["of"], choice["clip"])
        for choice in choices
        if (choice["estimator"], choice["reward"]) == (estimator, reward)
    }


def _estimates(group: Sequence[Estimate], *, unit: str, chosen: Chosen) -> Table:
    level, kind = group[0].level, group[0].interval
    clips, sizes = _clipped(group), any(estimate.ess is not None for estimate in group)
    names = ["value", f"{level:.0%} interval ({kind})", unit, "left out"]
    table = _table("model", *(["clip"] if clips else []), *names, *(["effective rows"] if sizes else []))
    for estimate in group:
        clip = _clip(estimate.clip, chosen=(estimate.model, estimate.clip) in chosen)
        cells = [
            number(estimate.value),
            interval(estimate.low, estimate.high),
            f"{estimate.units:,}",
            f"{estimate.undefined:,}",
        ]
        size = "" if estimate.ess is None else f"{estimate.ess:,.0f}"
        table.add_row(Text(estimate.model), *([clip] if clips else []), *cells, *([size] if sizes else []))
    return table


def _clipped(group: Sequence[Estimate | Comparison]) -> bool:
    return any(entry.clip is not None for entry in group)


def _clip(clip: float | None, *, chosen: bool) -> str:
    return f"{'chosen: ' if chosen else ''}{clip_text(clip)}"


def _comparisons(differences: Sequence[Comparison], *, chosen: Chosen) -> Table:
    clips = _clipped(differences)
    table = _table("difference", *(["clip"] if clips else []), "value", "interval", "p", "p adjusted", "")
    for comparison in differences:
        names = f"{comparison.model} - {comparison.baseline}"
        clip = _clip(comparison.clip, chosen=(names, comparison.clip) in chosen)
        cells = [
            number(comparison.difference),
            interval(comparison.low, comparison.high),
            p_value(comparison.p),
            p_value(comparison.p_adjusted),
        ]
        table.add_row(Text(names), *([clip] if clips else []), *cells, Text(_verdict(comparison)))
    return table


def _adjusted(results: Results) -> str:
    """Over how many comparisons p is adjusted, and whether intervals and adjusted p can say different things."""
    sizes = sorted({comparison.family for comparison in results.comparisons})
    chosen = " at chosen clips" if results.provenance.details.get("chosen") else ""
    if sizes == [1]:
        return f"p is of one comparison for each metric and estimator{chosen}, so nothing is adjusted"
    of = " or ".join(f"{size:,}" for size in sizes)
    alone = [each for each in results.comparisons if each.verdict == NOT_SHOWN and (each.low > 0 or each.high < 0)]
    text = f"p is adjusted by Holm over families of {of} comparisons{chosen}"
    if any(comparison.interval_level > comparison.level for comparison in results.comparisons):
        return f"{text}; the intervals of a family hold together"
    return f"{text}; intervals are not, so that some without 0 are not shown" if alone else text


def _verdict(comparison: Comparison) -> str:
    """Who is better, where that is shown; a verdict of another kind in its own words."""
    better = {"better": comparison.model, "worse": comparison.baseline}.get(comparison.verdict)
    return comparison.verdict if better is None else f"{better} is better"


def _table(first: str, *others: str) -> Table:
    """A plain table; on a narrow terminal its cells fold, nothing is cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right" if name else "left", overflow="fold")
    return table


def _over(differences: Sequence[Comparison], unit: str) -> list[str]:
    return [f"{entry.model} - {entry.baseline} over the {entry.units:,} {unit}" for entry in differences]


def _assumptions(results: Results) -> list[str]:
    """Each assumption once, with the estimators that make it where not all do."""
    made: dict[str, list[str]] = {}
    for estimate in results.estimates:
        for text in estimate.assumptions:
            made.setdefault(text, []).append(estimate.estimator)
    everyone = {estimate.estimator for estimate in results.estimates}
    return [
        f"{'' if set(names) == everyone else ' by ' + ', '.join(dict.fromkeys(names))}: {text}."
        for text, names in made.items()
    ]


def _warnings(results: Results, *, for_cli: bool) -> list[str]:
    """Each warning once, with all it applies to; then why there are comparisons without a verdict."""
    where: dict[str, list[str]] = {}
    said = {message for estimate in results.estimates for message in estimate.warnings}
    for estimate in results.estimates:
        for message in estimate.warnings:
            place = f"{estimate.model} {estimate.metric} {estimate.estimator}"
            where.setdefault(message.said(for_cli=for_cli), []).append(place)
    for comparison in results.comparisons:
        for message in comparison.reasons:
            if message not in said:
                place = f"{comparison.model} - {comparison.baseline} {comparison.metric} {comparison.estimator}"
                where.setdefault(f"insufficient: {message.said(for_cli=for_cli)}", []).append(place)
    return [
        f"{places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''}: {sentence}"
        for sentence, places in where.items()
    ]


ESTIMATES = ("metric", "estimator", "model", "clip", "value", "interval", "units", "estimand")
COMPARISONS = ("metric", "estimator", "difference", "clip", "value", "interval", "p adjusted", "verdict")


def render_html(results: Results) -> str:
    """Estimates, their differences, warnings and messages."""
    groups = [list(run) for _, run in groupby(results.estimates, key=_question)]
    tables = [best(group, _differences(results, group)) for group in groups]
    estimates = [estimate for group, _ in tables for estimate in group]
    comparisons = [comparison for _, shown in tables for comparison in shown]
    parts = [_html_table(ESTIMATES, (_estimate(estimate) for estimate in estimates))]
    if comparisons:
        parts.append(_html_table(COMPARISONS, (_comparison(comparison) for comparison in comparisons)))
    if len(estimates) < len(results.estimates) or len(comparisons) < len(results.comparisons):
        parts.append(f"<p>{_left_out(estimates, results.estimates, comparisons, results.comparisons)}</p>")
    warnings = dict.fromkeys(text for estimate in results.estimates for text in estimate.warning_texts)
    warnings |= dict.fromkeys(text for comparison in results.comparisons for text in comparison.reason_texts)
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
        f"{comparison.model} is {comparison.verdict}" if comparison.verdict in (BETTER, WORSE) else comparison.verdict,
    )


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{title}</th>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def as_json(content: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A line for each row, all with the names of the first; nothing that a spreadsheet would run."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: safe_cell(value) for name, value in row.items()} for row in rows)
    return stream.getvalue().encode()


def as_lines(values: Mapping[str, Any], *, width: int | None = None) -> str:
    """A line for each name and its value.

    >>> print(as_lines({"users": 3, "first items": "a, b"}), end="")
    users        3
    first items  a, b
    """
    wide = width or max(len(name) for name in values)
    return "".join(f"{printable(name):{wide}}  {printable(str(value))}\n" for name, value in values.items())
