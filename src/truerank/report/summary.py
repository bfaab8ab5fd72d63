"""What results say, the answer first: one value that the terminal, notebooks, Markdown, LaTeX and pages render.

results --questions_of--> questions --summarize--> ResultSummary: verdict, table, warnings, estimands; then all details
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase

from truerank.core.errors import some
from truerank.core.messages import DETECTABLE, Message, Severity
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, Comparison, Results
from truerank.core.wording import option, worded
from truerank.report.details import Cell, Detail, ResultTable, details_of, remarks
from truerank.report.numbers import bounds, decimals, fixed, number, signed, signed_interval
from truerank.report.questions import (
    FEW,
    MOST_MODELS,
    SIGNIFICANT,
    WORDS,
    ShownQuestion,
    evidence,
    item_groups,
    questions_of,
    ranked_models,
    scope,
    verdict,
    winner,
)

MOST_WARNINGS = 5
MOST_QUESTIONS = 12  # of one table
MOST_PAIRS = 6  # that a sentence names


@dataclass(frozen=True, slots=True)
class ResultSummary:
    """The answer, and behind it the rest."""

    verdict: str
    evidence: str
    table: ResultTable | None
    notes: tuple[str, ...] = ()
    groups: tuple[tuple[str, ResultTable], ...] = ()
    warnings: tuple[str, ...] = ()
    estimands: str = ""
    details: tuple[Detail, ...] = field(default=(), repr=False)
    remarks: tuple[str, ...] = field(default=(), repr=False)  # assumptions, and all messages


def summarize(results: Results, *, groups: Mapping[str, Results] | None = None, for_cli: bool = False) -> ResultSummary:
    """The summary of results, and of the same within groups of units; options as the reader would give them."""
    questions = questions_of(results)
    models = ranked_models(questions)
    table_notes = _table_notes(questions[:MOST_QUESTIONS], models)
    table_notes.extend(_fewer_units(results, questions))
    if len(questions) > MOST_QUESTIONS:
        table_notes.append(f"The first {MOST_QUESTIONS} of {len(questions):,} metrics and estimators.")
    warnings = warning_texts(results, questions, for_cli=for_cli)
    more = len(warnings) - MOST_WARNINGS
    if more > 0:
        where = worded(option("verbose", "print(results.details())"), for_cli=for_cli)
        warnings = [*warnings[:MOST_WARNINGS], f"{more:,} more warning{'s' * (more > 1)}: {where}"]
    return ResultSummary(
        verdict(questions, models),
        evidence(questions),
        overview(questions[:MOST_QUESTIONS], models),
        (*table_notes, *_detectable(results, for_cli=for_cli)),
        tuple(_within(kind, questions, models, parts) for kind, parts in _groups(results, groups) if parts),
        tuple(warnings),
        estimands(questions),
        tuple(details_of(results)),
        tuple(remarks(results, for_cli=for_cli)),
    )


# --------------------------------------------------------------------------------------------------------------- tables


def overview(questions: Sequence[ShownQuestion], models: Sequence[str]) -> ResultTable | None:
    """One or two models: a row for each question; more: a row for each model, with letters for significance."""
    if not questions:
        return None
    return _metric_rows(questions, models) if len(models) <= 2 else _model_rows(questions, models)


def _metric_rows(questions: Sequence[ShownQuestion], models: Sequence[str]) -> ResultTable:
    level = f"{questions[0].estimates[0].level:.0%} CI"
    compared = len(models) == 2 and any(question.differences for question in questions)
    rows = []
    for question in questions:
        by_model = {estimate.model: estimate for estimate in question.estimates}
        values = [by_model[name].value if name in by_model else math.nan for name in models]
        places = decimals(max((abs(value) for value in values if not math.isnan(value)), default=0.0))
        best = max(values) if question.directed and len(set(values)) == 2 else math.nan
        cells = [Cell(question.label), *(Cell(fixed(value, places), bold=value == best) for value in values)]
        if compared:
            cells.append(_difference_cell(question.difference(models[0], models[1]), places))
        elif len(models) == 1:
            estimate = by_model[models[0]]
            cells.append(Cell(bounds(estimate.low, estimate.high, places)))
        rows.append(tuple(cells))
    last = [f"difference ({level})"] if compared else [level] if len(models) == 1 else []
    return ResultTable(("", *models, *last), tuple(rows))


def _difference_cell(comparison: Comparison | None, places: int) -> Cell:
    if comparison is None:
        return Cell("")
    mark = "*" if comparison.verdict in SIGNIFICANT else "?" if comparison.verdict == INSUFFICIENT else ""
    return Cell(signed_interval(comparison.difference, comparison.low, comparison.high, places), mark)


def _model_rows(questions: Sequence[ShownQuestion], models: Sequence[str]) -> ResultTable:
    letters = _letters(questions, models)
    columns = [_column(question, letters) for question in questions]
    rows = [
        (Cell(letter), Cell(name), *(column.get(name, Cell("")) for column in columns))
        for name, letter in letters.items()
    ]
    return ResultTable(("", "model", *(question.label for question in questions)), tuple(rows), names=2)


def _letters(questions: Sequence[ShownQuestion], models: Sequence[str]) -> dict[str, str]:
    """A letter for each model that a table shows: the highest, and a baseline."""
    baselines = {question.baseline for question in questions} - {None}
    names = [*models[:MOST_MODELS], *(name for name in models[MOST_MODELS:] if name in baselines)]
    return dict(zip(names, ascii_lowercase, strict=False))


def _column(question: ShownQuestion, letters: Mapping[str, str]) -> dict[str, Cell]:
    values = [estimate.value for estimate in question.estimates if not math.isnan(estimate.value)]
    best = max(values, default=math.nan)
    places = decimals(max(map(abs, values), default=0.0))
    beaten: dict[str, list[str]] = {}
    for comparison in question.differences:
        if comparison.verdict in SIGNIFICANT:
            loser = comparison.baseline if winner(comparison) == comparison.model else comparison.model
            beaten.setdefault(winner(comparison), []).append(letters.get(loser, ""))
    return {
        estimate.model: Cell(
            fixed(estimate.value, places),
            "".join(sorted(beaten.get(estimate.model, ()))),
            bold=question.directed and estimate.value == best > min(values),
        )
        for estimate in question.estimates
    }


def _table_notes(questions: Sequence[ShownQuestion], models: Sequence[str]) -> list[str]:
    """What the marks mean, and which pairs are open."""
    marked = [comparison.verdict for question in questions for comparison in question.differences]
    if len(models) <= 2:
        return ["? The evidence is insufficient for a verdict."] if INSUFFICIENT in marked else []
    notes = []
    shown = _letters(questions, models)
    if len(shown) < len(models):
        notes.append(f"The highest {len(shown):,} of {len(models):,} models; the others are in JSON and CSV.")
    sizes = sorted({pair.family for question in questions for pair in question.differences})
    if sizes:
        level = questions[0].estimates[0].level
        adjusted = f", adjusted for {sizes[-1]:,} comparisons" if sizes[-1] > 1 else ""
        notes.append(f"Letters: significantly better than that model ({level:.0%} level{adjusted}).")
    for kind in (NOT_SHOWN, INSUFFICIENT):
        pairs: dict[str, list[ShownQuestion]] = {}
        for question in questions:
            for comparison in question.top_differences():
                if comparison.verdict == kind:
                    pairs.setdefault(" - ".join(sorted((comparison.model, comparison.baseline))), []).append(question)
        if pairs:
            texts = [f"{pair} ({scope(open_on, questions)})" for pair, open_on in pairs.items()]
            notes.append(f"{WORDS[kind].capitalize()}: {some(texts, most=MOST_PAIRS)}.")
    return notes


def _fewer_units(results: Results, questions: Sequence[ShownQuestion]) -> list[str]:
    """Over how many units differences are, where a model has values for more."""
    fewest = [
        pair.units
        for question in questions
        for pair in question.differences
        if pair.units < max(estimate.units for estimate in question.estimates)
    ]
    unit = results.provenance.unit
    return [f"Differences are over the {min(fewest):,} {unit}s for whom both models have values."] if fewest else []


def _detectable(results: Results, *, for_cli: bool) -> list[str]:
    """What difference the data could have found, of the first question that is open."""
    return [message.said(for_cli=for_cli) for message in results.messages if message.code in DETECTABLE][:1]


# --------------------------------------------------------------------------------------------------------------- groups


def _groups(results: Results, groups: Mapping[str, Results] | None) -> list[tuple[str, Mapping[str, Results]]]:
    return [(f"groups of {results.provenance.unit}s", groups or {}), ("groups of items", item_groups(results))]


def _within(
    kind: str, questions: Sequence[ShownQuestion], models: Sequence[str], groups: Mapping[str, Results]
) -> tuple[str, ResultTable]:
    """Where the order turns, and the first difference (or the leader) of each question in each group."""
    turned, rows = [], []
    for name, results in groups.items():
        parts = {question.key: question for question in questions_of(results)}
        cells = [Cell(name)]
        for question in questions:
            part = parts.get(question.key)
            cells.append(Cell("") if part is None else _group_cell(part, models))
            leaders = [None if each is None or each.leader is None else each.leader.model for each in (question, part)]
            if None not in leaders and leaders[0] != leaders[1]:
                turned.append(f"{name}: {leaders[1]} leads {question.label}")
        rows.append(tuple(cells))
    order = f"The order changes: {some(turned)}." if turned else "The same model leads in every group."
    shown = f"{models[0]} - {models[1]}" if len(models) == 2 else "the highest model" if len(models) > 2 else models[0]
    head = f"Within {len(groups):,} {kind} ({shown}; * significant): {order}"
    return head, ResultTable(("group", *(question.label for question in questions)), tuple(rows))


def _group_cell(question: ShownQuestion, models: Sequence[str]) -> Cell:
    if question.leader is None:
        return Cell("undefined")
    if len(models) > 2:
        return Cell(question.leader.model, "*" if question.beats_all(question.leader.model) else "")
    if len(models) < 2:
        return Cell(number(question.leader.value))
    comparison = question.difference(models[0], models[1])
    if comparison is None or math.isnan(comparison.difference):
        return Cell("undefined")
    places = decimals(question.leader.value)
    return Cell(signed(comparison.difference, places), "*" if comparison.verdict in SIGNIFICANT else "")


# ------------------------------------------------------------------------------------------------------------- warnings


def warning_texts(results: Results, questions: Sequence[ShownQuestion], *, for_cli: bool) -> list[str]:
    """Warnings that change what to conclude, the worst first: each code once, with what it is about."""
    places: dict[str, list[tuple[Message, str, str]]] = {}
    for message in results.messages:
        places.setdefault(message.code, []).append((message, ", ".join(message.about), ""))
    for question in questions:
        for comparison in question.differences:
            pair = f"{comparison.model} - {comparison.baseline}"
            for message in comparison.reasons:
                places.setdefault(message.code, []).append((message, pair, question.label))
        for estimate in question.estimates:
            for message in estimate.warnings:
                places.setdefault(message.code, []).append((message, estimate.model, question.label))
    reasons = {message.code for question in questions for pair in question.differences for message in pair.reasons}
    order = [Severity.WARNING, Severity.CAUTION]
    grave = [entries for entries in places.values() if entries[0][0].severity in order]
    grave.sort(key=lambda entries: (entries[0][0].code not in reasons, order.index(entries[0][0].severity)))
    return [_warning(entries, len(questions), for_cli=for_cli) for entries in grave]


def _warning(entries: Sequence[tuple[Message, str, str]], n_questions: int, *, for_cli: bool) -> str:
    """The first sentence of one code, and whom it concerns."""
    message, subject, label = entries[0]
    text = message.said(for_cli=for_cli)
    subjects = list(dict.fromkeys(name for _, name, _ in entries if name))
    if not label:
        others = [name for name in subjects if name != subject]
        return f"{text} Likewise: {some(others)}." if others else text
    labels = list(dict.fromkeys(name for _, _, name in entries if name))
    on = "" if len(labels) == n_questions else f" ({some(labels, most=FEW)})"
    if len({entry[0] for entry in entries}) == 1:
        return f"{some(subjects)}{on}: {text}"
    others = [name for name in subjects if name != subject] or labels[1:] or ["other settings"]
    return f"{subject}, {label}: {text.rstrip('.')}; likewise {some(others)}."


def estimands(questions: Sequence[ShownQuestion]) -> str:
    """What the values estimate, and by which estimator: metrics with the same answer together."""
    alike: dict[str, tuple[list[str], list[str]]] = {}
    for question in questions:
        bare = (
            question.estimand if question.family == question.metric else question.estimand.replace(question.metric, "")
        )
        families, estimators = alike.setdefault(" ".join(bare.split()).partition(", so ")[0], ([], []))
        families += [question.family] if question.family != question.metric else []
        estimators.append(question.estimator)
    return " ".join(
        f"{', '.join(dict.fromkeys(families))}{': ' * bool(families)}{phrase}, {', '.join(dict.fromkeys(estimators))}."
        for phrase, (families, estimators) in alike.items()
    )
