"""Results as text: the estimand in words above the values it belongs to."""

from __future__ import annotations

import io
import math
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from truerank.core.results import Comparison, Estimate, Results

Chosen = set[tuple[str, float | None]]
WIDE = 10_000  # of text that no terminal cuts


def render(results: Results, *, width: int | None = None, color: bool = False) -> str:
    """Everything in the results, for a terminal of `width` columns, or uncut."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=width or WIDE, force_terminal=color, color_system="auto" if color else None, highlight=False
    )
    print_results(results, console)
    return stream.getvalue()


def print_results(results: Results, console: Console) -> None:
    """Estimates under what they estimate, differences under their estimates, assumptions and warnings at the end."""
    unit = f"{results.provenance.get('unit', 'user')}s"
    by_estimand = groupby(results.estimates, key=lambda each: (each.metric, each.estimator, each.estimand))
    for (metric, estimator, estimand), found in by_estimand:
        group = list(found)
        console.print(Text(f"{metric}, {estimator}", style="bold").append(f": {estimand}", style="not bold"))
        chosen = _chosen(results, estimator, group[0].reward)
        console.print(_estimates(group, unit=unit, chosen=chosen))
        differences = [c for c in results.comparisons if (c.metric, c.estimator) == (metric, estimator)]
        differences = [c for c in differences if c.reward in (None, group[0].reward)]
        if differences:
            console.print(_comparisons(differences, alpha=1 - results.estimates[0].level, chosen=chosen))
        if any(c.units < max(each.units for each in group) for c in differences):
            console.print(f"Over the {unit} that both models have: {', '.join(_over(differences, unit))}.")
        console.print()
    if results.comparisons:
        console.print(
            f"Differences are paired, from the same {unit}; p is adjusted by Holm over all comparisons shown"
            f"{' at chosen clips' if results.provenance.get('chosen') else ''}."
        )
    for each in _assumptions(results):
        console.print(Text("Assumed", style="dim").append(each, style="default"))
    for each in _warnings(results):
        console.print(Text("! ", style="yellow").append(each, style="default"))


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


def _chosen(results: Results, estimator: str, reward: str) -> Chosen:
    """The clips that were chosen by the data, each with the value or difference it is of."""
    made = results.provenance.get("chosen", ())
    return {(each["of"], each["clip"]) for each in made if (each["estimator"], each["reward"]) == (estimator, reward)}


def _estimates(group: list[Estimate], *, unit: str, chosen: Chosen) -> Table:
    level, kind = group[0].level, group[0].interval
    clips, sizes = _clipped(group), any(each.ess is not None for each in group)
    names = ["value", f"{level:.0%} interval ({kind})", unit, "left out"]
    table = _table("model", *(["clip"] if clips else []), *names, *(["effective rows"] if sizes else []))
    for each in group:
        cells = [number(each.value), interval(each.low, each.high), f"{each.units:,}", f"{each.undefined:,}"]
        cells = ([_clip(each.clip, chosen=(each.model, each.clip) in chosen)] if clips else []) + cells
        table.add_row(Text(each.model), *cells, *([_size(each.ess)] if sizes else []))
    return table


def _clipped(group: list[Estimate] | list[Comparison]) -> bool:
    return any(each.clip is not None for each in group)


def _clip(clip: float | None, *, chosen: bool) -> str:
    return f"{'chosen: ' if chosen else ''}{'none' if clip is None else format(clip, 'g')}"


def _size(ess: float | None) -> str:
    return "" if ess is None else f"{ess:,.0f}"


def _comparisons(differences: list[Comparison], *, alpha: float, chosen: Chosen) -> Table:
    clips = _clipped(differences)
    table = _table("difference", *(["clip"] if clips else []), "value", "interval", "p", "p adjusted", "")
    for c in differences:
        verdict = f"{c.model if c.difference > 0 else c.baseline} is better" if c.p_adjusted <= alpha else ""
        names, taken = Text(f"{c.model} - {c.baseline}"), (f"{c.model} - {c.baseline}", c.clip) in chosen
        cells = [number(c.difference), interval(c.low, c.high), _p(c.p), _p(c.p_adjusted)]
        table.add_row(names, *([_clip(c.clip, chosen=taken)] if clips else []), *cells, Text(verdict))
    return table


def _table(first: str, *others: str) -> Table:
    """A plain table; on a narrow terminal its cells fold, nothing is cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right" if name else "left", overflow="fold")
    return table


def _over(differences: list[Comparison], unit: str) -> list[str]:
    return [f"{c.model} - {c.baseline} over the {c.units:,} {unit}" for c in differences]


def _p(value: float) -> str:
    if math.isnan(value):
        return "none"
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _assumptions(results: Results) -> list[str]:
    """Each assumption once, with the estimators that make it where not all do."""
    made: dict[str, list[str]] = {}
    for each in results.estimates:
        for text in each.assumptions:
            made.setdefault(text, []).append(each.estimator)
    everyone = {each.estimator for each in results.estimates}
    return [
        f"{'' if set(names) == everyone else ' by ' + ', '.join(dict.fromkeys(names))}: {text}."
        for text, names in made.items()
    ]


def _warnings(results: Results) -> list[str]:
    """Each warning once, with all it applies to."""
    where: dict[str, list[str]] = {}
    for each in results.estimates:
        for warning in each.warnings:
            where.setdefault(warning, []).append(f"{each.model} {each.metric} {each.estimator}")
    return [
        f"{places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''}: {warning}"
        for warning, places in where.items()
    ]
