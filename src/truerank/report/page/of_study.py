"""The report of a finished reliability study: its four figures, and their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from truerank.reliability.studied import NOTE
from truerank.report.page.render import Page, PageTable, Section, render
from truerank.report.study_figures import Finished, StudyQuestion, figures, tidy

ANSWERS = {
    StudyQuestion.RESOLUTION: ("Fewest ties of two models", "most", "a share of"),
    StudyQuestion.FIDELITY: ("Closest to the order with all items of the same log", "furthest", "τ-b"),
    StudyQuestion.ROBUSTNESS: ("Closest to the order with nothing hidden", "furthest", "τ-b"),
    StudyQuestion.PREDICTIVE_POWER: ("Closest to the true order", "furthest", "τ-b"),
}


def study_report(folder: Path, *, metric: str | None = None) -> bytes:
    """The page of the study in a folder."""
    study = Finished.read(folder)
    note: dict[str, Any] = msgspec.json.decode((folder / NOTE).read_bytes())
    return render(study_page(study, note, metric=study.metric(metric)))


def study_page(study: Finished, note: dict[str, Any], *, metric: str) -> Page:
    """The four figures of one metric, and their numbers."""
    frames = {question: tidy(study.results, question, metric=metric) for question in StudyQuestion}
    others = ", ".join(name for name in study.names("metric") if name != metric)
    numbers = pl.concat([frame.with_columns(question=pl.lit(question.value)) for question, frame in frames.items()])
    columns = ("question", "logger", "sparsity", "sampler", "size", "value", "low", "high")
    undefined = pl.col("undefined").alias("users left out, share")
    table = PageTable("All values with their intervals", numbers.select(*columns, undefined, "users"))
    facts = [(name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
             for name, value in note.items() if not isinstance(value, dict)]  # fmt: skip
    return Page(
        title=f"truerank report: reliability study, {metric}",
        question=f"How far can {metric} over sampled candidates be trusted?",
        claims=tuple(_claim(question, frame) for question, frame in frames.items()),
        sections=(
            Section(name="figures", title="Figures", panels=tuple(figures(study, metric=metric).values()), wide=True,
                    texts=("Click a name in a legend to see one sampler alone.",
                           *([f"The study also has {others}: `metric` chooses."] if others else []))),
            Section(name="numbers", title="Numbers", tables=(table,)),
            Section(name="provenance", title="Settings of the study", facts=tuple(facts)),
        ),
        facts=(("models", f"{study.n_models:,}"), ("scenarios", f"{len(frames[StudyQuestion.RESOLUTION]):,}")),
    )  # fmt: skip


def _claim(question: StudyQuestion, frame: pl.DataFrame) -> tuple[str, str, str]:
    """The best and the worst of all scenarios in which something can differ."""
    best, worst, quantity = ANSWERS[question]
    high = question is not StudyQuestion.RESOLUTION
    defined = frame.filter(pl.col("value").is_not_null() & (pl.col("value") < 1 if high else True))
    badge = question.value.replace("_", " ")
    if not len(defined):
        return "insufficient", badge, "No scenario has a value below 1, so nothing can be compared."
    rows = defined.sort("value", descending=high, maintain_order=True).rows(named=True)
    first, last = (
        f"{row['sampler']}{f' of {n:,}' if (n := row['size']) is not None else ''} on a {row['logger']} log with "
        f"{100 * row['sparsity']:g} % hidden, {quantity} {row['value']:.3g}"
        for row in (rows[0], rows[-1])
    )
    without = " (scenarios that are 1 by definition apart)" if high and len(defined) < len(frame) else ""
    return "shown", badge, f"{best}{without}: {first}; {worst}: {last}."
