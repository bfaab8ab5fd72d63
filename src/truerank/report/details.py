"""All that stands behind a summary: every estimate and difference, assumptions, and all messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from truerank.core.errors import InputError, some
from truerank.core.messages import Message, Severity
from truerank.core.results import INSUFFICIENT, Comparison, Estimate, Results
from truerank.report.numbers import clip_text, interval, number, p_value
from truerank.report.questions import FEW, MOST_MODELS, SIGNIFICANT, WORDS, winner


@dataclass(frozen=True, slots=True)
class Cell:
    """A text of a table; `mark` stands raised behind it: letters of models, or a star."""

    text: str
    mark: str = ""
    bold: bool = False


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Cells under their head; the first `names` columns are names, the others numbers.

    `intervals` are (low, value, high) of each row, to be drawn where there is room.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    names: int = 1
    intervals: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Detail:
    """All estimates of one question, and all differences."""

    title: str
    estimand: str
    tables: tuple[ResultTable, ...]
    notes: tuple[str, ...] = ()


def adjustment(results: Results) -> str:
    """Over how many comparisons p and intervals are adjusted."""
    sizes = sorted({comparison.family for comparison in results.comparisons})
    chosen = " at chosen clips" if results.provenance.details.get("chosen") else ""
    unit = f"Differences are paired, from the same {results.provenance.unit}s"
    if sizes == [1]:
        return f"{unit}; one comparison for each metric and estimator{chosen}, so nothing is adjusted."
    counts = " or ".join(f"{size:,}" for size in sizes)
    return f"{unit}; p and intervals are adjusted together over families of {counts} comparisons{chosen}."


def assumptions(results: Results) -> list[str]:
    """Each assumption once, with the estimators that make it where not all do."""
    by_text: dict[str, list[str]] = {}
    for estimate in results.estimates:
        for text in estimate.assumptions:
            by_text.setdefault(text, []).append(estimate.estimator)
    everyone = {estimate.estimator for estimate in results.estimates}
    return [
        f"Assumption{'' if set(names) == everyone else ' of ' + ', '.join(dict.fromkeys(names))}: {text}."
        for text, names in by_text.items()
    ]


def remarks(results: Results, *, for_cli: bool) -> list[str]:
    """Assumptions, every warning of every estimate with its place, and all messages."""
    places: dict[str, list[str]] = {}
    entries: list[tuple[Estimate | Comparison, Iterable[Message], str]] = [
        *((entry, entry.warnings, entry.model) for entry in results.estimates),
        *((entry, entry.reasons, f"{entry.model} - {entry.baseline}") for entry in results.comparisons),
    ]
    for entry, messages, name in entries:
        for message in messages:
            place = f"{name} {entry.metric} {entry.estimator}"
            places.setdefault(message.said(for_cli=for_cli), []).append(place)
    return [
        *([adjustment(results)] if results.comparisons else []),
        *assumptions(results),
        *(f"! {some(list(dict.fromkeys(where)), most=FEW)}: {text}" for text, where in places.items()),
        *(f"{'' if message.severity is Severity.NOTE else '! '}{message.said(for_cli=for_cli)}"
          for message in results.messages),
    ]  # fmt: skip


def details_of(results: Results) -> Iterable[Detail]:
    """Every estimate and difference, of all clips and groups of items."""
    choices = {
        (choice["of"], choice["estimator"], choice["reward"], choice["clip"])
        for choice in results.provenance.details.get("chosen", ())
    }
    pairs: dict[tuple[str | None, ...], list[Comparison]] = {}
    for comparison in results.comparisons:
        pairs.setdefault(_place(comparison), []).append(comparison)
    by_place: dict[tuple[str | None, ...], list[Estimate]] = {}
    for estimate in results.estimates:
        by_place.setdefault(_place(estimate), []).append(estimate)
    for place, estimates in by_place.items():
        differences = pairs.get(place, [])
        shown, top = _highest(estimates, differences)
        tables = [_estimates_table(shown, results.provenance.unit, choices)]
        tables += [_differences_table(top, choices)] if top else []
        metric, estimator, reward, segment = (part or "" for part in place)
        parts = [metric, estimator, *([reward] if reward not in metric else []), *([segment] if segment else [])]
        cut = (
            [f"The highest {len(shown):,} of {len(estimates):,} values and {len(top):,} of {len(differences):,} "
             "differences; the others are in JSON and CSV."]
            if len(shown) < len(estimates) else []
        )  # fmt: skip
        yield Detail(", ".join(parts), estimates[0].estimand, tuple(tables), tuple(cut))


def _place(entry: Estimate | Comparison) -> tuple[str | None, ...]:
    return entry.metric, entry.estimator, entry.reward, entry.segment


def _highest(
    estimates: Sequence[Estimate], differences: Sequence[Comparison]
) -> tuple[Sequence[Estimate], Sequence[Comparison]]:
    """The estimates and differences of the models with the highest values, and of the one baseline."""
    ranked = sorted(estimates, key=lambda entry: math.inf if math.isnan(entry.value) else -entry.value)
    names = set(list(dict.fromkeys(estimate.model for estimate in ranked))[:MOST_MODELS])
    baselines = {comparison.baseline for comparison in differences}
    names |= baselines if len(baselines) == 1 else set()
    return (
        [estimate for estimate in estimates if estimate.model in names],
        [comparison for comparison in differences if {comparison.model, comparison.baseline} <= names],
    )


Choices = set[tuple[str, str, str, float | None]]


def _clip_cells(entry: Estimate | Comparison, name: str, choices: Choices) -> Cell:
    chosen = (name, entry.estimator, entry.reward, entry.clip) in choices
    return Cell(f"{'chosen: ' if chosen else ''}{clip_text(entry.clip)}")


def _estimates_table(estimates: Sequence[Estimate], unit: str, choices: Choices) -> ResultTable:
    clips = any(estimate.clip is not None for estimate in estimates)
    sizes = any(estimate.ess is not None for estimate in estimates)
    head = ["model", *(["clip"] if clips else []), "value", f"{estimates[0].level:.0%} CI ({estimates[0].interval})",
            f"{unit}s", "undefined", *(["effective rows"] if sizes else [])]  # fmt: skip
    rows = [
        (
            Cell(estimate.model),
            *([_clip_cells(estimate, estimate.model, choices)] if clips else []),
            Cell(number(estimate.value)),
            Cell(interval(estimate.low, estimate.high)),
            Cell(f"{estimate.units:,}"),
            Cell(f"{estimate.undefined:,}"),
            *([Cell("" if estimate.ess is None else f"{estimate.ess:,.0f}")] if sizes else []),
        )
        for estimate in estimates
    ]
    return ResultTable(tuple(head), tuple(rows), 1, tuple((entry.low, entry.value, entry.high) for entry in estimates))


def _differences_table(differences: Sequence[Comparison], choices: Choices) -> ResultTable:
    clips = any(comparison.clip is not None for comparison in differences)
    adjusted = any(comparison.family > 1 for comparison in differences)
    head = ["difference", *(["clip"] if clips else []), "value", "CI", "p", *(["p adjusted"] if adjusted else []),
            "verdict"]  # fmt: skip
    rows, drawn = [], []
    for comparison in differences:
        above = comparison if comparison.difference >= 0 or math.isnan(comparison.difference) else comparison.turned()
        name = f"{comparison.model} - {comparison.baseline}"
        drawn.append((above.low, above.difference, above.high))
        rows.append((
            Cell(f"{above.model} - {above.baseline}"),
            *([_clip_cells(comparison, name, choices)] if clips else []),
            Cell(number(above.difference)),
            Cell(interval(above.low, above.high)),
            Cell(p_value(above.p)),
            *([Cell(p_value(above.p_adjusted))] if adjusted else []),
            Cell(WORDS.get(above.verdict, f"{winner(above)} is {above.verdict}")),
        ))  # fmt: skip
    return ResultTable(tuple(head), tuple(rows), 1, tuple(drawn))


def sentence(results: Results, model: str, baseline: str, *, metric: str | None = None) -> str:
    """Two models by one metric (by default the first) in a sentence that can be pasted: estimand, values, verdict.

    >>> import polars as pl, truerank as tr
    >>> labels = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "label": [1, 0, 1, 0]})
    >>> scores = {name: labels.select("user", "item", score=pl.lit(sign) * pl.col("item"))
    ...           for name, sign in (("up", 1), ("down", -1))}
    >>> results = tr.evaluate(scores, labels, metrics=["Recall@1"], exposure="full")
    >>> print(sentence(results, "down", "up"))  # doctest: +ELLIPSIS
    By mean Recall@1 over users with a relevant item (estimator full, 2 users), down has 1.0000 ... no verdict: ...
    """
    pairs = [comparison for comparison in results.compare(model, baseline) if metric in (None, comparison.metric)]
    if not pairs:
        raise InputError(f"no comparison of {model} and {baseline} by {metric}; expected a metric of the results.")
    pair = pairs[0]
    place = (*_place(pair), pair.clip)
    values = {estimate.model: estimate for estimate in results.estimates if (*_place(estimate), estimate.clip) == place}
    first, second = values[model], values[baseline]
    return (
        f"By {first.estimand} (estimator {first.estimator}, {pair.units:,} {results.provenance.unit}s), {model} has "
        f"{_with_interval(first)} and {baseline} {_with_interval(second)}; their difference of "
        f"{number(pair.difference)} ({pair.level:.0%} CI {interval(pair.low, pair.high)}, adjusted p "
        f"{p_value(pair.p_adjusted)}) {_conclusion(pair)}."
    )


def _with_interval(estimate: Estimate) -> str:
    return f"{number(estimate.value)} ({estimate.level:.0%} CI {interval(estimate.low, estimate.high)})"


def _conclusion(comparison: Comparison) -> str:
    if comparison.verdict in SIGNIFICANT:
        return f"is significant: {comparison.model} is {comparison.verdict}"
    if comparison.verdict == INSUFFICIENT:
        return f"carries no verdict: {' '.join(comparison.reason_texts).rstrip('.')}"
    return "is not significant"
