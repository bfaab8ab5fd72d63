"""The report of results: the answer first, then all it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, TypeVar

from truerank.core.errors import InputError, some
from truerank.core.messages import DETECTABLE, Severity
from truerank.core.provenance import Input, Provenance
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, SHOWN_ABOVE, SHOWN_BELOW, Comparison, Estimate, Results
from truerank.core.wording import either, option
from truerank.io.atomic_write import whole_file
from truerank.reliability.studied import NOTE
from truerank.report.charts import PlotPanel, altair
from truerank.report.details import adjustment, remarks
from truerank.report.document import RESULTS
from truerank.report.evidence_panels import evidence, units, weights
from truerank.report.numbers import clip_text, decimals, signed_interval
from truerank.report.page.of_study import study_report
from truerank.report.page.render import Claim, Page, Section, render
from truerank.report.page.tables import MOST, CellKind, PageTable, TableColumn
from truerank.report.panels import clips, differences, intervals, over_k, positions, segments
from truerank.report.questions import WORDS, ShownQuestion, item_groups, questions_of, ranked_models, verdict
from truerank.report.summary import ResultSummary, summarize

OPEN = 6  # panels of a section before the others are folded
QUESTIONS = 4  # whose single units and groups are drawn
ACTIVITY = 4  # groups of units by how active they are
DIVIDED = 400  # estimates, beyond which units are not divided into groups unless asked
Entry = TypeVar("Entry", Estimate, Comparison)
TEXT, NUMBER, COUNT, P = CellKind.TEXT, CellKind.NUMBER, CellKind.COUNT, CellKind.P


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
    """The page; the same within `groups` of units, or without them by activity where units can be divided."""
    return render(results_page(results, groups=_divided(results) if groups is None else groups))


def results_page(results: Results, *, groups: Mapping[str, Results]) -> Page:
    """All sections that have something to show."""
    unit = f"{results.provenance.unit}s"
    sections = [
        Section(name="values", title="Values", texts=_estimands(results), **_panels(intervals(results)),
                tables=(_estimates(results),)),
        Section(name="differences", title="Differences", texts=_about_differences(results),
                **_panels(differences(results)), tables=(_comparisons(results),)) if results.comparisons else None,
        _drawn("cutoffs", "Cut-offs", over_k(results)),
        _drawn("clips", "Clips", clips(results)),
        _drawn("units", unit.capitalize(), units(results, most=QUESTIONS), _about_units(results, unit)),
        _drawn("groups", f"Groups of {unit}", segments(results, groups, most=QUESTIONS) if len(groups) > 1 else []),
        _drawn("items", "Groups of items", segments(results, item_groups(results), most=QUESTIONS)),
        _drawn("positions", "Position model", positions(results)),
        Section(name="evidence", title="Evidence", texts=(EVIDENCE,),
                **_panels([*weights(results), *evidence(results)])),
        Section(name="assumed", title="Assumptions, exclusions and warnings", points=_points(results, unit)),
        _provenance(results.provenance),
    ]  # fmt: skip
    models = list(dict.fromkeys(each.model for each in results.estimates))
    return Page(
        title=f"truerank report: {some(models)}",
        question=_question(models),
        card=_card(results),
        claims=tuple(_claim(question) for question in questions_of(results)),
        sections=tuple(section for section in sections if section is not None),
        facts=_facts(results),
    )


def _card(results: Results) -> tuple[tuple[str, str], ...]:
    """Verdict, effect on the primary (first) metric, evidence, caveat, next step: what to know after one minute."""
    questions = questions_of(results)
    if not questions:
        return ()
    for_cli = (results.provenance.call or "").startswith("truerank ")
    summary = summarize(results, for_cli=for_cli)
    first, models = questions[0], ranked_models(questions)
    pair = None if len(models) < 2 else first.difference(models[0], first.baseline or models[1])
    if pair is None and len(models) > 1:
        pair = first.difference(models[0], models[1])
    cells = [("Verdict", summary.verdict)]
    if pair is not None:
        value = next(estimate.value for estimate in first.estimates if estimate.model == pair.baseline)
        relative = f", {pair.difference / value:+.0%} relative" if value > 0 else ""
        places = decimals(max(value, value + pair.difference))
        effect = signed_interval(pair.difference, pair.low, pair.high, places)
        cells.append(("Effect", f"{first.label}: {pair.model} - {pair.baseline} {effect}, "
                                f"{pair.level:.0%} CI in brackets{relative}"))  # fmt: skip
    cells += [("Evidence", summary.evidence)] if summary.evidence else []
    cells.append(("Caveat", summary.warnings[0] if summary.warnings else "none that changes the conclusion"))
    return (*cells, ("Next step", _next_step(results, summary, for_cli=for_cli)))


def _next_step(results: Results, summary: ResultSummary, *, for_cli: bool) -> str:
    if not summary.evidence:
        return "Evaluate a second model, to compare."
    if summary.evidence != "sufficient":
        return "Collect what the caveat asks for before deciding; truerank advise says what the data support."
    detectable = [message.said(for_cli=for_cli) for message in results.messages if message.code in DETECTABLE]
    if detectable and not any(
        pair.verdict in SHOWN_ABOVE or pair.verdict in SHOWN_BELOW for pair in results.comparisons
    ):
        return f"Collect more data: {detectable[0]}"
    return "Decide by the metric that matters to you, and confirm it online."


def _claim(question: ShownQuestion) -> Claim:
    """The verdict of one question, that of its leader first."""
    leader = question.leader
    pairs = [] if leader is None else [comparison if comparison.model == leader.model else comparison.turned()
                                       for comparison in question.differences
                                       if leader.model in (comparison.model, comparison.baseline)]  # fmt: skip
    verdicts = [comparison.verdict for comparison in pairs]
    kind = next((kind for kind in (*SHOWN_ABOVE, NOT_SHOWN, INSUFFICIENT) if kind in verdicts), "no comparison")
    return Claim(kind, WORDS.get(kind, kind), verdict([question], ranked_models([question])))


EVIDENCE = "What tells how far these numbers can be trusted. Dashed lines are where it begins to matter."


def _divided(results: Results) -> Mapping[str, Results]:
    """Units by their activity, where results can still be divided and that tells something."""
    if results.segments is None or len(results.estimates) > DIVIDED:
        return {}
    return results.by(ACTIVITY)


def _question(models: Sequence[str]) -> str:
    if len(models) < 2:
        return f"How good is {some(list(models)) or 'nothing'}?"
    return f"Which is better: {some(list(models), most=6)}?"


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    provenance = results.provenance
    return (
        *((name, f"{n:,}") for name, n in provenance.counts.items() if n is not None),
        *((name, str(provenance.settings[name])) for name in ("exposure",) if provenance.settings.get(name)),
    )


def _panels(panels: Sequence[PlotPanel]) -> dict[str, Any]:
    at = OPEN if len(panels) > OPEN + 2 else len(panels)
    return {"panels": tuple(panels[:at]), "more": tuple(panels[at:])}


def _drawn(name: str, title: str, panels: Sequence[PlotPanel], texts: Sequence[str] = ()) -> Section | None:
    if not panels and not texts:
        return None
    return Section(name=name, title=title, texts=tuple(texts), **_panels(panels))


def _estimands(results: Results) -> tuple[str, ...]:
    """What each question estimates; cut-offs of one metric together."""
    found: dict[tuple[str, str], None] = {}
    for each in questions_of(results):
        k = each.estimates[0].k
        general = [text if k is None else text.replace(f"@{k}", "@K") for text in (each.title, each.estimand)]
        found[general[0], general[1]] = None
    return tuple(f"{label}: {estimand}." for label, estimand in found)


def _about_differences(results: Results) -> tuple[str, ...]:
    return (adjustment(results),)


def _about_units(results: Results, unit: str) -> tuple[str, ...]:
    if results.unit_table is not None:
        shown = f" The first {QUESTIONS} questions." if len(questions_of(results)) > QUESTIONS else ""
        return (f"What each {results.provenance.unit} has alone; a single one says little.{shown}",)
    return (
        f"These results do not hold single {unit}: save the results in a folder, which keeps them, and make the "
        "report from that.",
    )


# -------------------------------------------------------------------------------------------------------------- tables


def _estimates(results: Results) -> PageTable:
    entries, cut = _kept(results.estimates, "values")
    clipped = any(each.clip is not None for each in entries)
    return PageTable(
        "estimates",
        f"All values, with their {_levels(results)} intervals",
        (
            *_asked(entries, results),
            TableColumn("model", TEXT, [each.model for each in entries]),
            *([TableColumn("clip", TEXT, [clip_text(each.clip) for each in entries])] if clipped else []),
            *_numbers(entries, "value", "low", "high", "stderr"),
            TableColumn(f"{results.provenance.unit}s", COUNT, [each.units for each in entries]),
            TableColumn("left out", COUNT, [each.undefined for each in entries]),
            *([TableColumn("effective rows", NUMBER, [each.ess for each in entries])]
              if any(each.ess is not None for each in entries) else []),
            *_told("warnings", ["; ".join(message.code for message in each.warnings) for each in entries]),
        ),
        cut,
    )  # fmt: skip


def _comparisons(results: Results) -> PageTable:
    entries, cut = _kept(results.comparisons, "differences")
    clipped = any(each.clip is not None for each in entries)
    return PageTable(
        "comparisons",
        "All differences, model - baseline, with their verdicts",
        (
            *_asked(entries, results),
            TableColumn("model", TEXT, [each.model for each in entries]),
            TableColumn("baseline", TEXT, [each.baseline for each in entries]),
            *([TableColumn("clip", TEXT, [clip_text(each.clip) for each in entries])] if clipped else []),
            *_numbers(entries, "difference", "low", "high"),
            TableColumn("p", P, [each.p for each in entries]),
            TableColumn("p adjusted", P, [each.p_adjusted for each in entries]),
            TableColumn("verdict", TEXT, [each.verdict for each in entries]),
            *_told("reasons", ["; ".join(each.reason_texts) for each in entries]),
        ),
        cut,
    )  # fmt: skip


def _kept(entries: Sequence[Entry], what: str) -> tuple[Sequence[Entry], str | None]:
    """As many as a page can hold: all, or those of the models that lead."""
    if len(entries) <= MOST:
        return entries, None
    return entries[:MOST], f"The first {MOST:,} of {len(entries):,} {what}; all are in JSON and CSV."


def _asked(entries: Sequence[Estimate | Comparison], results: Results) -> list[TableColumn]:
    found = [TableColumn("metric", TEXT, [each.metric for each in entries]),
             TableColumn("estimator", TEXT, [each.estimator for each in entries])]  # fmt: skip
    if len({each.reward for each in results.estimates}) > 1:
        found.append(TableColumn("reward", TEXT, [each.reward for each in entries]))
    if any(each.segment for each in results.estimates):
        found.append(TableColumn("items", TEXT, [each.segment or "all" for each in entries]))
    return found


def _numbers(entries: Sequence[Estimate | Comparison], *names: str) -> list[TableColumn]:
    words = {"stderr": "standard error"}
    return [TableColumn(words.get(name, name), NUMBER, [getattr(each, name) for each in entries]) for name in names]


def _told(name: str, texts: list[str]) -> list[TableColumn]:
    """A column of texts, where there are any."""
    return [TableColumn(name, TEXT, texts)] if any(texts) else []


def _levels(results: Results) -> str:
    levels = dict.fromkeys(f"{100 * each.level:.4g} %" for each in results.estimates)
    return " or ".join(levels)


# --------------------------------------------------------------------------------------------------------------- words


def _points(results: Results, unit: str) -> tuple[tuple[str, str], ...]:
    """What is assumed, what was left out, warnings, and all messages."""
    for_cli = (results.provenance.call or "").startswith("truerank ")
    most = max(results.estimates, key=lambda each: each.undefined, default=None)
    left = f"No one of the {unit} was left out of a value."
    if most is not None and most.undefined:
        of = most.units + most.undefined
        left = f"Up to {most.undefined:,} of {of:,} {unit} were left out of a value: {most.model} at {most.metric}."
    return (
        ("left out", left),
        *((Severity.WARNING.value if text.startswith("!") else "", text.removeprefix("! "))
          for text in remarks(results, for_cli=for_cli)),
    )  # fmt: skip


def _provenance(provenance: Provenance) -> Section:
    settings = {name: value for name, value in provenance.settings.items() if value is not None}
    return Section(
        name="provenance",
        title="Reproduce this report",
        texts=(f"Over {provenance.population}.",) if provenance.population else (),
        tables=(_inputs(provenance.inputs),) if provenance.inputs else (),
        facts=(
            ("truerank", provenance.truerank),
            *provenance.versions.items(),
            *starmap(_setting, settings.items()),
        ),
        code=provenance.call,
    )


def _setting(name: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, list):
        return name, str(value)
    return name, some(["none" if each is None else str(each) for each in value], most=30)


def _inputs(inputs: Sequence[Input]) -> PageTable:
    counts = [name for name in ("rows", "users", "items", "bytes") if any(getattr(each, name) for each in inputs)]
    return PageTable(
        "inputs",
        "Inputs",
        (
            TableColumn("role", TEXT, [each.role for each in inputs]),
            TableColumn("name", TEXT, [each.name or "" for each in inputs]),
            TableColumn("source", TEXT, [each.source for each in inputs]),
            *(TableColumn(name, COUNT, [getattr(each, name) for each in inputs]) for name in counts),
            TableColumn("SHA-256", TEXT, [each.sha256 or "" for each in inputs]),
        ),
    )
