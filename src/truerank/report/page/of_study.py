"""The report of a finished reliability study: its four figures with a legend that filters, and their numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from truerank.reliability.studied import NOTE
from truerank.report.charts import INK, PlotPanel
from truerank.report.page.render import Claim, LegendEntry, Page, Section, render
from truerank.report.page.tables import CellKind, PageTable, TableColumn
from truerank.report.reliability_charts import charts
from truerank.report.reliability_frames import Finished, StudyQuestion, Tau, tidy
from truerank.report.reliability_layout import Figure, Style, figure

TEXT, NUMBER, COUNT = CellKind.TEXT, CellKind.NUMBER, CellKind.COUNT
# black and dark grey are not seen on a dark page
ON_ANY_GROUND = {"#000000": INK, "#555555": "#757575"}
ANSWERS = {
    StudyQuestion.RESOLUTION: ("Fewest ties of two models", "most", "a share of {}", False),
    StudyQuestion.FIDELITY: ("Closest to the order with all items of the same log", "furthest", "τ-b {}", True),
    StudyQuestion.ROBUSTNESS: ("Closest to the order with nothing hidden", "furthest", "τ-b {}", True),
    StudyQuestion.PREDICTIVE_POWER: ("Closest to the true order", "furthest", "τ-b {}", True),
}


def study_report(folder: Path, *, metric: str | None = None) -> bytes:
    """The page of the study in a folder."""
    study = Finished.read(folder)
    note: dict[str, Any] = msgspec.json.decode((folder / NOTE).read_bytes())
    return render(study_page(study, note, metric=study.metric(metric)))


def study_page(study: Finished, note: dict[str, Any], *, metric: str) -> Page:
    """The four figures of one metric, and their numbers."""
    figures = {each: figure(study, each, metric=metric) for each in StudyQuestion}
    live = {question: replace(each, styles=_seen(each.styles)) for question, each in figures.items()}
    frames = {each: tidy(study.results, each, metric=metric) for each in StudyQuestion}
    others = [name for name in study.names("metric") if name != metric]
    also = (f"The study also has {', '.join(others)}: each can have a report of its own (`metric`).",) if others else ()
    return Page(
        title=f"truerank report: reliability study, {metric}",
        question=f"How far can {metric} over sampled candidates be trusted?",
        claims=tuple(_claim(each, frame) for each, frame in frames.items()),
        sections=(
            Section(
                name="figures",
                title="Figures",
                texts=also,
                panels=tuple(
                    PlotPanel(
                        " ".join(figures[each].title),
                        " ".join(figures[each].subtitle),
                        chart,
                        parameters={"shown": list(live[each].styles)},
                    )
                    for each, chart in charts(live, live=True).items()
                ),
                choices=_choices(live[StudyQuestion.RESOLUTION]),
                wide=True,
            ),
            Section(name="numbers", title="Numbers", tables=(_numbers(frames),)),
            Section(
                name="provenance",
                title="What was studied",
                facts=tuple((name, _listed(value)) for name, value in note.items() if not isinstance(value, dict)),
            ),
        ),
        facts=(("models", f"{study.n_models:,}"), ("scenarios", f"{len(frames[StudyQuestion.RESOLUTION]):,}")),
    )


def _seen(styles: Any) -> dict[str, Style]:
    return {name: replace(each, colour=ON_ANY_GROUND.get(each.colour, each.colour)) for name, each in styles.items()}


def _choices(drawn: Figure) -> tuple[LegendEntry, ...]:
    return tuple(LegendEntry(name, each.colour, bool(each.dash)) for name, each in drawn.styles.items())


def _claim(question: StudyQuestion, frame: pl.DataFrame) -> Claim:
    """The best and the worst of all scenarios in which something can differ."""
    best, worst, of, high = ANSWERS[question]
    known = frame.filter(pl.col("value").is_not_null() & (pl.col("value") < 1 if high else True))
    badge = question.value.replace("_", " ")
    if not len(known):
        return Claim("insufficient", badge, "Nothing can be said: no scenario has a value below 1.")
    ordered = known.sort("value", descending=high, maintain_order=True)
    first, last = ordered.row(0, named=True), ordered.row(-1, named=True)
    without = " (scenarios that are 1 by definition apart)" if high and len(known) < len(frame) else ""
    return Claim(
        "shown",
        badge,
        f"{best}{without}: {_scenario(first)}, {of.format(_number(first['value']))}; {worst}: {_scenario(last)}, "
        f"{of.format(_number(last['value']))}.",
    )


def _number(value: float) -> str:
    return f"{value:.3g}"


def _scenario(row: dict[str, Any]) -> str:
    size = "" if row["size"] is None else f" of {row['size']:,}"
    return f"{row['sampler']}{size} on a {row['logger']} log with {100 * row['sparsity']:g} % hidden"


def _numbers(frames: dict[StudyQuestion, pl.DataFrame]) -> PageTable:
    every = pl.concat([frame.with_columns(question=pl.lit(each.value)) for each, frame in frames.items()])

    def column(name: str, kind: CellKind, title: str | None = None) -> TableColumn:
        return TableColumn(title or name, kind, every[name].to_list())

    return PageTable(
        "numbers",
        f"All values with their intervals; {Tau.LEFT_OUT.value} users have no tau",
        (
            column("question", TEXT),
            column("logger", TEXT),
            column("sparsity", NUMBER),
            column("sampler", TEXT),
            column("size", COUNT),
            column("value", NUMBER),
            column("low", NUMBER),
            column("high", NUMBER),
            column("undefined", NUMBER, "users left out, share"),
            column("users", COUNT),
        ),
    )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
