"""All that stands behind a summary: every estimate and difference, assumptions, and all messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from truerank.core.errors import InputError, some
from truerank.core.messages import Message, Severity
from truerank.core.results import INSUFFICIENT, Comparison, Estimate, Results
from truerank.report.numbers import clip_text, interval, number, p_value
from truerank.report.questions import FEW, MOST_MODELS, SIGNIFICANT, WORDS, descending, winner
from truerank.report.view import Cell, Detail, ResultTable

Entry = TypeVar("Entry", Estimate, Comparison)
Place = tuple[str, str, str, str | None]


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


def details_of(results: Results) -> Iterator[Detail]:
    """Every estimate and difference, of all clips and groups of items."""
    choices = {
        (choice["of"], choice["estimator"], choice["reward"], choice["clip"])
        for choice in results.provenance.details.get("chosen", ())
    }
    pairs = _by_place(results.comparisons)
    for (metric, estimator, reward, segment), estimates in _by_place(results.estimates).items():
        differences = pairs.get((metric, estimator, reward, segment), [])
        names = set(list(dict.fromkeys(estimate.model for estimate in sorted(estimates, key=descending)))[:MOST_MODELS])
        baselines = {comparison.baseline for comparison in differences}
        names |= baselines if len(baselines) == 1 else set()
        shown = [estimate for estimate in estimates if estimate.model in names]
        top = [comparison for comparison in differences if {comparison.model, comparison.baseline} <= names]
        cut = (
            f"The highest {len(shown):,} of {len(estimates):,} values and {len(top):,} of {len(differences):,} "
            "differences; the others are in JSON and CSV."
        )
        tables = [_estimates_table(shown, results.provenance.unit, choices)]
        yield Detail(
            ", ".join(
                [metric, estimator, *([reward] if reward not in metric else []), *([segment] if segment else [])]
            ),
            estimates[0].estimand,
            [*tables, _differences_table(top, choices)] if top else tables,
            cut if len(shown) < len(estimates) else "",
        )


def _by_place(entries: Iterable[Entry]) -> dict[Place, list[Entry]]:
    by_place: dict[Place, list[Entry]] = {}
    for entry in entries:
        by_place.setdefault(_place(entry), []).append(entry)
    return by_place


def _place(entry: Estimate | Comparison) -> Place:
    return entry.metric, entry.estimator, entry.reward, entry.segment


Choices = set[tuple[str, str, str, float | None]]


def _clip_text(entry: Estimate | Comparison, name: str, choices: Choices) -> str:
    chosen = (name, entry.estimator, entry.reward, entry.clip) in choices
    return f"{'chosen: ' if chosen else ''}{clip_text(entry.clip)}"


def _estimates_table(estimates: Sequence[Estimate], unit: str, choices: Choices) -> ResultTable:
    columns = {
        "model": [estimate.model for estimate in estimates],
        "clip": [_clip_text(estimate, estimate.model, choices) for estimate in estimates],
        "value": [number(estimate.value) for estimate in estimates],
        f"{estimates[0].level:.0%} CI ({estimates[0].interval})":
            [interval(estimate.low, estimate.high) for estimate in estimates],
        f"{unit}s": [f"{estimate.units:,}" for estimate in estimates],
        "undefined": [f"{estimate.undefined:,}" for estimate in estimates],
        "effective rows": ["" if estimate.ess is None else f"{estimate.ess:,.0f}" for estimate in estimates],
    }  # fmt: skip
    if not any(columns["effective rows"]):
        del columns["effective rows"]
    return _table(columns, estimates, [(estimate.low, estimate.value, estimate.high) for estimate in estimates])


def _differences_table(differences: Sequence[Comparison], choices: Choices) -> ResultTable:
    """Winner minus loser."""
    above = [pair if pair.difference >= 0 or math.isnan(pair.difference) else pair.reverse() for pair in differences]
    columns = {
        "difference": [f"{pair.model} - {pair.baseline}" for pair in above],
        "clip": [_clip_text(pair, f"{pair.model} - {pair.baseline}", choices) for pair in differences],
        "value": [number(pair.difference) for pair in above],
        "CI": [interval(pair.low, pair.high) for pair in above],
        "p": [p_value(pair.p) for pair in above],
        "p adjusted": [p_value(pair.p_adjusted) for pair in above],
        "verdict": [WORDS.get(pair.verdict, f"{winner(pair)} is {pair.verdict}") for pair in above],
    }
    if all(pair.family == 1 for pair in differences):
        del columns["p adjusted"]
    return _table(columns, differences, [(pair.low, pair.difference, pair.high) for pair in above])


def _table(
    columns: dict[str, list[str]],
    entries: Sequence[Estimate | Comparison],
    intervals: Sequence[tuple[float, float, float]],
) -> ResultTable:
    if all(entry.clip is None for entry in entries):
        del columns["clip"]
    rows = [[Cell(text) for text in row] for row in zip(*columns.values(), strict=True)]
    return ResultTable(list(columns), rows, 1, intervals)


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
    alike = {
        estimate.model: estimate
        for estimate in results.estimates
        if _place(estimate) == _place(pair) and estimate.clip == pair.clip
    }
    first, second = (
        f"{number(estimate.value)} ({estimate.level:.0%} CI {interval(estimate.low, estimate.high)})"
        for estimate in (alike[model], alike[baseline])
    )
    conclusion = "is not significant"
    if pair.verdict in SIGNIFICANT:
        conclusion = f"is significant: {pair.model} is {pair.verdict}"
    elif pair.verdict == INSUFFICIENT:
        conclusion = f"carries no verdict: {' '.join(pair.reason_texts).rstrip('.')}"
    return (
        f"By {alike[model].estimand} (estimator {pair.estimator}, {pair.units:,} {results.provenance.unit}s), {model} "
        f"has {first} and {baseline} {second}; their difference of {number(pair.difference)} ({pair.level:.0%} CI "
        f"{interval(pair.low, pair.high)}, adjusted p {p_value(pair.p_adjusted)}) {conclusion}."
    )
