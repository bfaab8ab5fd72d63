"""Paired differences with their intervals and verdicts, a panel for each question."""

from __future__ import annotations

import math
from typing import Any

from truerank.core.results import SHOWN_ABOVE, SHOWN_BELOW, Comparison, Results
from truerank.report.plots.panels import (
    INK,
    PlotPanel,
    Rows,
    inline,
    layered,
    library,
    named,
    rows_height,
    tooltips,
    verdict_scales,
)
from truerank.report.questions import ShownQuestion, questions_of

SHOWN = (*SHOWN_ABOVE, *SHOWN_BELOW)


def differences(results: Results) -> list[PlotPanel]:
    """The differences of each question that has some; where they are many, those with the highest or the baseline."""
    return [
        _panel(question)
        for question in questions_of(results)
        if any(math.isfinite(each.difference) for each in question.differences)
    ]


def pair(comparison: Comparison) -> str:
    return f"{comparison.model} − {comparison.baseline}"


def _panel(question: ShownQuestion) -> PlotPanel:
    shown = question.top_differences()
    rows: Rows = [
        {"pair": pair(each), "difference": each.difference, "low": each.low, "high": each.high, "p": each.p_adjusted,
         "verdict": each.verdict}
        for each in shown
    ]  # fmt: skip
    return PlotPanel(
        question.title, _sentence(question, len(shown)), difference_chart(rows, question.metric), zooms=True
    )


def _sentence(question: ShownQuestion, drawn: int) -> str:
    of = len(question.differences)
    shown = sum(each.verdict in SHOWN for each in question.differences)
    what = (
        f"{shown:,} of {of:,} differences are shown" if of > 1 else f"The difference is {'' if shown else 'not '}shown"
    )
    return f"{what}.{f' The chart has {drawn:,} of them.' if drawn < of else ''}"


def difference_chart(rows: Rows, metric: str, *, by: str = "pair") -> Any:
    """Intervals about 0, by pair of models or by group; the verdict in colour, shape and filling."""
    alt = library()
    colours, shapes = verdict_scales(alt, [row["verdict"] for row in rows])
    colour, shape = alt.Color("verdict:N", scale=colours), alt.Shape("verdict:N", scale=shapes)
    scale = alt.Scale(zero=True, nice=True, padding=8)
    title = f"difference in {metric}"
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y(f"{by}:N", sort=named([row[by] for row in rows]), title=None, axis=alt.Axis(grid=False, ticks=False))
    )
    bars = base.mark_rule(strokeWidth=3, opacity=0.6).encode(
        x=alt.X("low:Q", scale=scale, title=title), x2="high:Q", color=colour
    )
    at = alt.X("difference:Q", scale=scale, title=title)
    shown = base.transform_filter(alt.FieldOneOfPredicate("verdict", list(SHOWN)))
    filled = shown.mark_point(size=70, opacity=1, filled=True, strokeWidth=2).encode(x=at, color=colour, shape=shape)
    points = base.mark_point(size=70, opacity=1, strokeWidth=2).encode(
        x=at, color=colour, shape=shape,
        tooltip=tooltips(alt, of=f"{by}:N", difference="difference:Q", low="low:Q", high="high:Q", p_adjusted="p:Q",
                         verdict="verdict:N"),
    )  # fmt: skip
    zero = alt.Chart(inline([{"zero": 0}])).mark_rule(color=INK, strokeDash=[4, 3], opacity=0.7).encode(x="zero:Q")
    some_shown = any(row["verdict"] in SHOWN for row in rows)
    return layered(zero, bars, *([filled] if some_shown else []), points).properties(height=rows_height(len(rows)))
