"""All that stands behind a summary: every estimate and difference, assumptions, and all messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from truerank.core.errors import InputError, some
from truerank.core.messages import Message, Severity
from truerank.core.results import INSUFFICIENT, Comparison, Estimate, Results
from truerank.report.frames import DIFFERENCES, KEY, VALUES, displayed_differences, displayed_values, titled
from truerank.report.numbers import interval, number, p_value
from truerank.report.questions import FEW, SIGNIFICANT
from truerank.report.view import DataTable, Detail

MOST_LINES = 200  # of a table


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
    entries: list[tuple[Estimate | Comparison, Iterable[Message]]] = [
        *((entry, entry.warnings) for entry in results.estimates),
        *((entry, entry.reasons) for entry in results.comparisons),
    ]
    for entry, messages in entries:
        for message in messages:
            place = f"{entry.name} {entry.metric} {entry.estimator}"
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
    unit = results.provenance.unit
    differences = displayed_differences(results).partition_by(*KEY, as_dict=True)
    for key, values in displayed_values(results).partition_by(*KEY, as_dict=True, maintain_order=True).items():
        metric, estimator, reward, segment = key
        first = values.row(0, named=True)
        tables = [DataTable.first("values", titled(values, VALUES, unit=unit), MOST_LINES)]
        if (pairs := differences.get(key)) is not None:
            tables.append(DataTable.first("differences", titled(pairs, ("pair", *DIFFERENCES), unit=unit), MOST_LINES))
        yield Detail(
            ", ".join([metric, estimator, *([reward] if reward not in metric else []), *filter(None, [segment])]),
            f"{first['estimand']}; {first['level']:.0%} CI ({first['interval']})",
            tables,
        )


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
        if all(getattr(estimate, name) == getattr(pair, name) for name in (*KEY, "clip"))
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
