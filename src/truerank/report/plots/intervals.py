"""Values of all models with their intervals, a panel for each question."""

from __future__ import annotations

from typing import Any

from truerank.core.results import Estimate, Results
from truerank.report.numbers import interval, number
from truerank.report.plots.panels import BLUE, PlotPanel, Rows, inline, layered, library, named, rows_height, tooltips
from truerank.report.questions import ShownQuestion, questions_of


def intervals(results: Results) -> list[PlotPanel]:
    """The highest values of each question that has one; of very many models the first twenty and the baseline."""
    return [
        _panel(question, question.leader, unit=results.provenance.unit)
        for question in questions_of(results)
        if question.leader is not None
    ]


def _panel(question: ShownQuestion, leader: Estimate, *, unit: str) -> PlotPanel:
    shown = question.top()
    rows: Rows = [
        {"model": each.model, "value": each.value, "low": each.low, "high": each.high, "units": each.units}
        for each in shown
    ]
    return PlotPanel(
        question.title, _sentence(question, leader, len(shown)), _chart(rows, question.metric, unit=unit), zooms=True
    )


def _sentence(question: ShownQuestion, leader: Estimate, shown: int) -> str:
    of = len(question.estimates)
    rest = f" The highest {shown:,} of {of:,} models." if shown < of else ""
    if of == 1:
        return f"{leader.model} has {number(leader.value)} ({interval(leader.low, leader.high)})."
    return f"{leader.model} is highest: {number(leader.value)} ({interval(leader.low, leader.high)}).{rest}"


def _chart(rows: Rows, metric: str, *, unit: str) -> Any:
    alt = library()
    x = alt.X("value:Q", scale=alt.Scale(zero=False, nice=True, padding=8), title=metric)
    y = alt.Y("model:N", sort=named([row["model"] for row in rows]), title=None, axis=alt.Axis(grid=False, ticks=False))
    tips = tooltips(alt, model="model:N", value="value:Q", low="low:Q", high="high:Q", **{f"{unit}s": "units:Q"})
    base = alt.Chart(inline(rows)).encode(y=y)
    bars = base.mark_rule(color=BLUE, strokeWidth=3, opacity=0.6).encode(
        x=alt.X("low:Q", scale=alt.Scale(zero=False, nice=True, padding=8), title=metric), x2="high:Q"
    )
    points = base.mark_point(color=BLUE, filled=True, size=70, opacity=1).encode(x=x, tooltip=tips)
    return layered(bars, points).properties(height=rows_height(len(rows)))
