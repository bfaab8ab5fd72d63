"""What results say, the answer first: one value that the terminal, notebooks, Markdown, LaTeX and pages render.

results --questions_of--> questions --summarize--> Summary: verdict, table, warnings, estimands; then all details
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from string import ascii_lowercase
from typing import TYPE_CHECKING

from truerank.core.errors import some
from truerank.core.messages import DETECTABLE, Message, Severity
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, Results
from truerank.core.wording import option, worded
from truerank.report.details import details_of, remarks
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
from truerank.report.search_words import in_words_of_search, is_search
from truerank.report.view import AnswerSummary, Cell, ResultTable

if TYPE_CHECKING:
    from truerank.evaluation.watch import WatchedPair

MOST_WARNINGS = 5
MOST_QUESTIONS = 12  # of one table
MOST_PAIRS = 6  # that a sentence names
MORE = f" More: {option('verbose', 'print(results.details())')}, {option('report FILE.html', 'results.html(path)')}"
GRAVE = [Severity.WARNING, Severity.CAUTION]


def summarize(results: Results, *, groups: Mapping[str, Results] | None = None, for_cli: bool = False) -> AnswerSummary:
    """The summary of results, and of the same within groups of units; options as the reader would give them."""
    questions, unit = questions_of(results), results.provenance.unit
    models, first = ranked_models(questions), questions[:MOST_QUESTIONS]
    notes = [*_marks(first, models), *_fewer_units(questions, unit)]
    if len(questions) > MOST_QUESTIONS:
        notes.append(f"The first {MOST_QUESTIONS} of {len(questions):,} metrics and estimators.")
    # what difference the data could have found, of the first question that is open
    detectable = [message.said(for_cli=for_cli) for message in results.messages if message.code in DETECTABLE]
    notes += detectable[:1]
    warnings = _warnings(results, questions, for_cli=for_cli)
    if len(warnings) > MOST_WARNINGS:
        where = worded(option("verbose", "print(results.details())"), for_cli=for_cli)
        shown = warnings[: MOST_WARNINGS - 1]
        warnings = [*shown, f"{len(warnings) - len(shown):,} more warnings: {where}"]
    divisions = ((f"groups of {unit}s", groups or {}), ("groups of items", item_groups(results)))
    overview = (_metric_rows if len(models) <= 2 else _model_rows)(first, models) if questions else None
    summary = AnswerSummary(
        verdict(questions, models),
        evidence(questions),
        overview,
        tuple(notes),
        tuple(_within(kind, questions, models, parts) for kind, parts in divisions if parts),
        tuple(warnings),
        estimands(questions),
        worded(MORE, for_cli=for_cli),
        partial(details_of, results),
        tuple(remarks(results, for_cli=for_cli)),
        _effect(questions[0], models) if questions else "",
        _next_step(evidence(questions), questions, detectable),
    )
    return in_words_of_search(summary, models) if is_search(results) else summary


def _effect(question: ShownQuestion, models: Sequence[str]) -> str:
    """The difference of the best model with the baseline or the next on the primary metric, absolute and relative."""
    for name in (question.baseline, *models[1:2]):
        if name is not None and (pair := question.difference(models[0], name)) is not None:
            value = next((estimate.value for estimate in question.estimates if estimate.model == name), 0.0)
            relative = f", {pair.difference / value:+.0%} relative" if value > 0 else ""
            places = decimals(max(value, value + pair.difference))
            difference = signed_interval(pair.difference, pair.low, pair.high, places)
            return f"{question.label}: {pair.name} {difference}, {pair.level:.0%} CI in brackets{relative}"
    return ""


def _next_step(evidence: str, questions: Sequence[ShownQuestion], detectable: Sequence[str]) -> str:
    if not evidence:
        return "Evaluate a second model, to compare."
    if evidence != "sufficient":
        return "Collect what the caveat asks for before deciding; truerank advise says what the data support."
    if detectable and not any(pair.verdict in SIGNIFICANT for question in questions for pair in question.differences):
        return f"Collect more data: {detectable[0]}"
    return "Decide by the metric that matters to you, and confirm it online."


# --------------------------------------------------------------------------------------------------------------- tables


def _metric_rows(questions: Sequence[ShownQuestion], models: Sequence[str]) -> ResultTable:
    """One or two models: a row for each question."""
    level = f"{questions[0].estimates[0].level:.0%} CI"
    compared = len(models) == 2 and any(question.differences for question in questions)
    rows = []
    for question in questions:
        by_model = {estimate.model: estimate for estimate in question.estimates}
        values = [by_model[name].value if name in by_model else math.nan for name in models]
        places = _places(values)
        best = max(values) if question.directed and len(set(values)) == 2 else math.nan
        cells = [Cell(question.label), *(Cell(fixed(value, places), bold=value == best) for value in values)]
        if compared:
            pair = question.difference(models[0], models[1])
            cells.append(Cell("") if pair is None else Cell(
                signed_interval(pair.difference, pair.low, pair.high, places),
                "*" if pair.verdict in SIGNIFICANT else "?" if pair.verdict == INSUFFICIENT else "",
            ))  # fmt: skip
        elif len(models) == 1:
            estimate = by_model[models[0]]
            cells.append(Cell(bounds(estimate.low, estimate.high, places)))
        rows.append(cells)
    last = [f"difference ({level})"] if compared else [level] if len(models) == 1 else []
    return ResultTable(["", *models, *last], rows)


def _places(values: Sequence[float]) -> int:
    """Decimals of a column, by its largest value."""
    return decimals(max((abs(value) for value in values if not math.isnan(value)), default=0.0))


def _model_rows(questions: Sequence[ShownQuestion], models: Sequence[str]) -> ResultTable:
    """More models: a row for each, with letters for significance."""
    letters = _letters(questions, models)
    columns = [_column(question, letters) for question in questions]
    rows = [
        [Cell(letter), Cell(name), *(column.get(name, Cell("")) for column in columns)]
        for name, letter in letters.items()
    ]
    return ResultTable(["", "model", *(question.label for question in questions)], rows, names=2)


def _letters(questions: Sequence[ShownQuestion], models: Sequence[str]) -> dict[str, str]:
    """A letter for each model that a table shows: the highest, and a baseline."""
    baselines = {question.baseline for question in questions} - {None}
    names = [*models[:MOST_MODELS], *(name for name in models[MOST_MODELS:] if name in baselines)]
    return dict(zip(names, ascii_lowercase, strict=False))


def _column(question: ShownQuestion, letters: Mapping[str, str]) -> dict[str, Cell]:
    values = [estimate.value for estimate in question.estimates if not math.isnan(estimate.value)]
    best, places = max(values, default=math.nan), _places(values)
    beaten: dict[str, list[str]] = {}
    for pair in question.differences:
        if pair.verdict in SIGNIFICANT:
            loser = pair.baseline if winner(pair) == pair.model else pair.model
            beaten.setdefault(winner(pair), []).append(letters.get(loser, ""))
    return {
        estimate.model: Cell(
            fixed(estimate.value, places),
            "".join(sorted(beaten.get(estimate.model, ()))),
            bold=question.directed and estimate.value == best > min(values),
        )
        for estimate in question.estimates
    }


def _marks(questions: Sequence[ShownQuestion], models: Sequence[str]) -> Iterator[str]:
    """What the marks of the table mean, and which pairs are open."""
    pairs = [pair for question in questions for pair in question.differences]
    if len(models) <= 2:
        if any(pair.verdict == INSUFFICIENT for pair in pairs):
            yield "? The evidence is insufficient for a verdict."
        return
    n = len(_letters(questions, models))
    if n < len(models):
        yield f"The highest {n:,} of {len(models):,} models; the others are in JSON and CSV."
    if pairs:
        family = max(pair.family for pair in pairs)
        adjusted = f", adjusted for {family:,} comparisons" if family > 1 else ""
        level = questions[0].estimates[0].level
        yield f"Letters: significantly better than that model ({level:.0%} level{adjusted})."
    for kind in (NOT_SHOWN, INSUFFICIENT):
        open_on: dict[str, list[ShownQuestion]] = {}
        for question in questions:
            for pair in question.top_differences():
                if pair.verdict == kind:
                    name = " and ".join(sorted((pair.model, pair.baseline), key=models.index))
                    open_on.setdefault(name, []).append(question)
        if open_on:
            texts = [f"{name} ({scope(on, questions)})" for name, on in open_on.items()]
            yield f"{WORDS[kind].capitalize()}: {some(texts, most=MOST_PAIRS)}."


def _fewer_units(questions: Sequence[ShownQuestion], unit: str) -> list[str]:
    """Over how many units differences are, where a model has values for more."""
    fewest = [
        pair.units
        for question in questions
        for pair in question.differences
        if pair.units < max(estimate.units for estimate in question.estimates)
    ]
    return [f"Differences are over the {min(fewest):,} {unit}s for whom both models have values."] if fewest else []


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
            leaders = [
                None if whole is None or whole.leader is None else whole.leader.model for whole in (question, part)
            ]
            if None not in leaders and leaders[0] != leaders[1]:
                turned.append(f"{name}: {leaders[1]} leads {question.label}")
        rows.append(cells)
    order = f"The order changes: {some(turned)}." if turned else "The same model leads in every group."
    shown = f"{models[0]} - {models[1]}" if len(models) == 2 else "the highest model" if len(models) > 2 else models[0]
    head = f"Within {len(groups):,} {kind} ({shown}; * significant): {order}"
    return head, ResultTable(["group", *(question.label for question in questions)], rows)


def _group_cell(question: ShownQuestion, models: Sequence[str]) -> Cell:
    if question.leader is None:
        return Cell("undefined")
    if len(models) > 2:
        return Cell(question.leader.model, "*" if question.beats_all(question.leader.model) else "")
    if len(models) < 2:
        return Cell(number(question.leader.value))
    pair = question.difference(models[0], models[1])
    if pair is None or math.isnan(pair.difference):
        return Cell("undefined")
    places = decimals(question.leader.value)
    return Cell(signed(pair.difference, places), "*" if pair.verdict in SIGNIFICANT else "")


# ------------------------------------------------------------------------------------------------------------- warnings


def _warnings(results: Results, questions: Sequence[ShownQuestion], *, for_cli: bool) -> list[str]:
    """Warnings that change what to conclude, the worst first: each code once, with its subjects."""
    entries = [(message, ", ".join(message.subjects), "") for message in results.messages]
    reasons = set()
    for question in questions:
        for pair in question.differences:
            entries += [(message, pair.name, question.label) for message in pair.reasons]
            reasons |= {message.code for message in pair.reasons}
        for estimate in question.estimates:
            entries += [(message, estimate.model, question.label) for message in estimate.warnings]
    by_code: dict[str, list[tuple[Message, str, str]]] = {}
    for entry in entries:
        by_code.setdefault(entry[0].code, []).append(entry)
    grave = [alike for alike in by_code.values() if alike[0][0].severity in GRAVE]
    grave.sort(key=lambda alike: (alike[0][0].code not in reasons, GRAVE.index(alike[0][0].severity)))
    return [_warning(alike, len(questions), for_cli=for_cli) for alike in grave]


def _warning(entries: Sequence[tuple[Message, str, str]], n_questions: int, *, for_cli: bool) -> str:
    """The first sentence of one code, and whom it concerns."""
    message, subject, label = entries[0]
    text = message.said(for_cli=for_cli)
    subjects = list(dict.fromkeys(name for _, name, _ in entries if name))
    others = [name for name in subjects if name != subject]
    if not label:
        return f"{text} Likewise: {some(others)}." if others else text
    labels = list(dict.fromkeys(name for _, _, name in entries if name))
    if len({entry[0] for entry in entries}) == 1:
        on = "" if len(labels) == n_questions else f" ({some(labels, most=FEW)})"
        return f"{some(subjects)}{on}: {text}"
    return f"{subject}, {label}: {text.rstrip('.')}; likewise {some(others or labels[1:] or ['other settings'])}."


def estimands(questions: Iterable[ShownQuestion | WatchedPair]) -> str:
    """What the values estimate, and by which estimator: metrics with the same answer together."""
    alike: dict[str, tuple[list[str], list[str]]] = {}
    for question in questions:
        family = re.sub(r"@\d+", "", question.metric, count=1)
        bare = question.estimand.replace(question.metric, "")
        families, estimators = alike.setdefault(" ".join(bare.split()).partition(", so ")[0], ([], []))
        families += [family] * (question.metric in question.estimand)
        estimators.append(question.estimator)
    return " ".join(
        f"{', '.join(dict.fromkeys(families))}{': ' * bool(families)}{phrase}, {', '.join(dict.fromkeys(estimators))}."
        for phrase, (families, estimators) in alike.items()
    )
