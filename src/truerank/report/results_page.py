"""The report of results: the answer first, then all it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError, some
from truerank.core.messages import Severity
from truerank.core.provenance import Provenance
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, SHOWN_ABOVE, Results
from truerank.core.wording import either, option
from truerank.io.atomic_write import whole_file
from truerank.reliability.studied import NOTE
from truerank.report import evidence_panels, panels
from truerank.report.charts import PlotPanel, altair
from truerank.report.details import adjustment, remarks
from truerank.report.document import RESULTS, document_of
from truerank.report.frames import DIFFERENCES, KEY, VALUES, all_rows, displayed_differences, displayed_values, titled
from truerank.report.page import MOST, Page, Pairs, Section, card_of, render
from truerank.report.questions import (
    WORDS,
    ShownQuestion,
    item_groups,
    questions_of,
    ranked_models,
    verdict,
)
from truerank.report.study import study_report
from truerank.report.summary import estimands, summarize
from truerank.report.view import Answer, DataTable

QUESTIONS = 4  # whose single units and groups are drawn
ACTIVITY = 4  # groups of units by how active they are
DIVIDED = 400  # estimates, beyond which units are not divided into groups unless asked
EVIDENCE = "What tells how far these numbers can be trusted. Dashed lines are where it begins to matter."
FACTS = {"judged": "labelled pairs", "relevant": "relevant pairs"}


def write(results: Results, path: Path, *, groups: Mapping[str, Results] | None = None) -> None:
    """Write the report, whole or not at all."""
    check_name(path)
    content = report(results, groups=groups)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def check_name(path: Path, *, what: str = "") -> None:
    """A report is a page, and says so; what draws its charts is there."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{what}{path}: a report is a page; expected a name that ends in .html.")
    altair()


def report_of(path: Path, *, metric: str | None = None) -> bytes:
    """The report of what a path holds: results in a folder or a JSON file, or a finished reliability study."""
    if (path / NOTE).is_file():
        return study_report(path, metric=metric)
    if metric is not None:
        raise InputError(f"{option('metric')} {metric}: a report of results has all their metrics; leave it out.")
    if path.is_dir() and not (path / RESULTS).is_file():
        raise InputError(
            f"{path}: holds neither results ({RESULTS}) nor a study ({NOTE}); expected a folder of "
            f"{either('--save', 'Results.save')}, its JSON, or the folder of a reliability study."
        )
    return report(Results.read(path))


def report(results: Results, *, groups: Mapping[str, Results] | None = None) -> bytes:
    """The page of results, and of the same within groups of units."""
    return render(results_page(results, groups=groups))


def results_answer(results: Results, *, groups: Mapping[str, Results] | None = None) -> Answer:
    """Results, and the same within groups of units, in every form that a command writes."""
    return Answer(
        _question(results),
        summarize(results, groups=groups, for_cli=True),
        partial(all_rows, results, groups=groups),
        document_of(results, groups=groups),
        partial(panels.intervals, results),
        {name: summarize(part, for_cli=True) for name, part in (groups or {}).items()},
        partial(results_page, results, groups=groups),
    )


def _question(results: Results) -> str:
    models = list(dict.fromkeys(estimate.model for estimate in results.estimates))
    names = some(models, most=6) if models else "nothing"
    return f"How good is {names}?" if len(models) < 2 else f"Which is better: {names}?"


def results_page(results: Results, *, groups: Mapping[str, Results] | None = None) -> Page:
    """All sections that have something to show; without groups of units, by activity where units can be divided."""
    if not groups:
        divided = results.segments is not None and len(results.estimates) <= DIVIDED
        groups = results.by(ACTIVITY) if divided else {}
    questions, unit = questions_of(results), f"{results.provenance.unit}s"

    def section(name: str, title: str, drawn: list[PlotPanel], *texts: str, tables: tuple[DataTable, ...] = ()) -> Any:
        return Section(name=name, title=title, texts=texts, panels=tuple(drawn), tables=tables)

    levels = " or ".join(dict.fromkeys(f"{100 * estimate.level:.4g} %" for estimate in results.estimates))
    sections = [
        section("values", "Values", panels.intervals(results), estimands(questions), tables=(
            _table(results, displayed_values(results), (*VALUES, "stderr", "warning_codes"),
                   f"All values, with their {levels} intervals"),)),
        section("differences", "Differences", panels.differences(results), adjustment(results), tables=(
            _table(results, displayed_differences(results), ("model", "baseline", *DIFFERENCES, "reasons"),
                   "All differences, winner - loser, with their verdicts"),
        )) if results.comparisons else None,
        section("cutoffs", "Cut-offs", panels.over_k(results)),
        section("clips", "Clips", panels.clips(results)),
        section("units", unit.capitalize(), evidence_panels.units(results, most=QUESTIONS),
                _unit_text(results, len(questions), unit)),
        section("groups", f"Groups of {unit}",
                panels.segments(results, groups, most=QUESTIONS) if len(groups) > 1 else []),
        section("items", "Groups of items", panels.segments(results, item_groups(results), most=QUESTIONS)),
        section("positions", "Position model", panels.positions(results)),
        section("evidence", "Evidence", [*evidence_panels.weights(results), *evidence_panels.evidence(results)],
                EVIDENCE),
        Section(name="assumed", title="Assumptions, exclusions and warnings", points=_points(results, unit)),
        _provenance(results.provenance),
    ]  # fmt: skip
    models = list(dict.fromkeys(estimate.model for estimate in results.estimates))
    counts, exposure = results.provenance.counts.items(), results.provenance.settings.get("exposure")
    return Page(
        title=f"truerank report: {some(models)}",
        question=_question(results),
        card=card_of(summarize(results, for_cli=_for_cli(results))),
        claims=tuple(_claim(question) for question in questions),
        sections=tuple(part for part in sections
                       if part and (part.panels or part.texts or part.tables or part.points or part.facts)),
        facts=(*((FACTS.get(name, name), f"{n:,}") for name, n in counts if n is not None),
               *([("exposure", str(exposure))] if exposure else [])),
    )  # fmt: skip


def _for_cli(results: Results) -> bool:
    return (results.provenance.call or "").startswith("truerank ")


def _claim(question: ShownQuestion) -> tuple[str, str, str]:
    """The verdict of one question, that of its leader first."""
    leader = None if question.leader is None else question.leader.model
    verdicts = {(pair if pair.model == leader else pair.reverse()).verdict
                for pair in question.differences if leader in (pair.model, pair.baseline)}  # fmt: skip
    kind = next((kind for kind in (*SHOWN_ABOVE, NOT_SHOWN, INSUFFICIENT) if kind in verdicts), "no comparison")
    return kind, WORDS.get(kind, kind), verdict([question], ranked_models([question]))


def _unit_text(results: Results, n_questions: int, unit: str) -> str:
    if results.unit_table is None:
        return (
            f"These results do not hold single {unit}: save the results in a folder, which keeps them, and make the "
            "report from that."
        )
    first = f" The first {QUESTIONS} questions." if n_questions > QUESTIONS else ""
    return f"What each {results.provenance.unit} has alone; a single one says little.{first}"


def _table(results: Results, frame: pl.DataFrame, names: tuple[str, ...], caption: str) -> DataTable:
    return DataTable.first(caption, titled(frame, (*KEY, *names), unit=results.provenance.unit), MOST)


def _points(results: Results, unit: str) -> Pairs:
    """What is assumed, what was excluded, warnings, and all messages."""
    most = max(results.estimates, key=lambda estimate: estimate.undefined, default=None)
    excluded = f"No {results.provenance.unit} was excluded from a value."
    if most is not None and most.undefined:
        n = f"{most.undefined:,} of {most.units + most.undefined:,} {unit}"
        excluded = f"Up to {n} were excluded from a value: {most.model} at {most.metric}."
    return (
        ("excluded", excluded),
        *((Severity.WARNING.value if text.startswith("!") else "", text.removeprefix("! "))
          for text in remarks(results, for_cli=_for_cli(results))),
    )  # fmt: skip


def _provenance(provenance: Provenance) -> Section:
    names = ("role", "name", "source", "rows", "users", "items", "bytes", "sha256")
    columns = {name: [getattr(entry, name) for entry in provenance.inputs] for name in names}
    texts = {name: [text or "" for text in columns[name]] for name in ("role", "name", "source", "sha256")}
    frame = pl.DataFrame({name: texts.get(name, column) for name, column in columns.items()
                          if name in texts or any(column)}).rename({"sha256": "SHA-256"})  # fmt: skip
    return Section(
        name="provenance",
        title="Reproduce this report",
        texts=(f"Over {provenance.population}.",) if provenance.population else (),
        tables=(DataTable("Inputs", frame),) if provenance.inputs else (),
        facts=(
            ("truerank", provenance.truerank),
            *provenance.versions.items(),
            *((name, _setting(value)) for name, value in provenance.settings.items() if value is not None),
        ),
        code=provenance.call,
    )


def _setting(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    return some(["none" if entry is None else str(entry) for entry in value], most=30)
