"""The curve over cut-offs: one metric at several K, a line with its band for each model."""

from __future__ import annotations

from typing import Any

from truerank.core.results import Estimate, Results
from truerank.report.plots.panels import (
    MOST_COLOURS,
    PlotPanel,
    Rows,
    inline,
    layered,
    library,
    model_colour,
    tooltips,
)
from truerank.report.questions import ShownQuestion, questions_of

HEIGHT = 220


def over_k(results: Results) -> list[PlotPanel]:
    """A panel for each metric with more than one cut-off, by estimator."""
    families: dict[tuple[str, str, str], list[ShownQuestion]] = {}
    for question in questions_of(results):
        k = question.estimates[0].k
        if k is not None:
            family = question.metric.replace(f"@{k}", "", 1), question.estimator, question.reward
            families.setdefault(family, []).append(question)
    return [
        _panel(f"{name}, {estimator}", name, questions)
        for (name, estimator, _), questions in families.items()
        if len(questions) > 1 and any(question.leader for question in questions)
    ]


def _panel(title: str, metric: str, questions: list[ShownQuestion]) -> PlotPanel:
    models = [each.model for each in questions[-1].estimates[:MOST_COLOURS]]
    found = [each for question in questions for each in question.estimates if each.model in models]
    rows: Rows = [
        {"model": each.model, "k": each.k, "value": each.value, "low": each.low, "high": each.high} for each in found
    ]
    return PlotPanel(title, _sentence(questions, len(models)), _chart(rows, models, metric))


def _sentence(questions: list[ShownQuestion], shown: int) -> str:
    leaders = {question.estimates[0].k: _leading(question.leader) for question in questions}
    of = len(questions[-1].estimates)
    rest = f" The highest {shown} of {of:,} models." if shown < of else ""
    first, *others = leaders.items()
    for k, leader in others:
        if leader != first[1]:
            return f"The highest changes with K: {first[1]} at {first[0]}, {leader} at {k}.{rest}"
    return f"{first[1]} is highest at every K.{rest}"


def _leading(leader: Estimate | None) -> str:
    return "none" if leader is None else leader.model


def _chart(rows: Rows, models: list[str], metric: str) -> Any:
    alt = library()
    colour, shape = model_colour(alt, models)
    cutoffs = sorted({row["k"] for row in rows})
    scale = alt.Scale(type="log", nice=False, padding=12, domain=[cutoffs[0], cutoffs[-1]])
    x = alt.X("k:Q", scale=scale, title="K (log axis)", axis=alt.Axis(values=cutoffs, format="d", grid=False))
    base = alt.Chart(inline(rows)).encode(x=x)
    y_title = alt.Y("low:Q", title=metric, scale=alt.Scale(zero=False))
    bands = base.mark_area(opacity=0.13).encode(y=y_title, y2="high:Q", color=colour)
    value = alt.Y("value:Q", title=metric, scale=alt.Scale(zero=False))
    lines = base.mark_line(strokeWidth=2).encode(y=value, color=colour)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=value, color=colour, shape=shape,
        tooltip=tooltips(alt, model="model:N", K="k:Q", value="value:Q", low="low:Q", high="high:Q"),
    )  # fmt: skip
    return layered(bands, lines, points).properties(height=HEIGHT)
