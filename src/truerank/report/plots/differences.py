"""Paired differences with their intervals and verdicts, a panel for each question."""

from __future__ import annotations

from typing import Any

from truerank.core.results import Comparison, Results
from truerank.report.headlines import headline
from truerank.report.plots.panels import (
    INK,
    Panel,
    Rows,
    inline,
    library,
    named,
    rows_height,
    tooltips,
    verdict_scales,
    zooming,
)
from truerank.report.questions import ShownQuestion, shown_questions


def differences(results: Results) -> list[Panel]:
    """The differences of each question that has some; where they are many, those with the highest or the baseline."""
    return [_panel(question) for question in shown_questions(results) if question.differences]


def pair(comparison: Comparison) -> str:
    return f"{comparison.model} − {comparison.baseline}"


def _panel(question: ShownQuestion) -> Panel:
    shown = question.told()
    rows: Rows = [
        {"pair": pair(each), "difference": each.difference, "low": each.low, "high": each.high, "p": each.p_adjusted,
         "verdict": each.verdict}
        for each in shown
    ]  # fmt: skip
    of = len(question.differences)
    rest = f" {len(shown):,} of {of:,} differences are drawn." if len(shown) < of else ""
    return Panel(question.label, f"{headline(question).sentence}{rest}", difference_chart(rows, question.metric))


def difference_chart(rows: Rows, metric: str, *, by: str = "pair") -> Any:
    """Intervals about 0, by pair of models or by group; the verdict in colour, shape and filling."""
    alt = library()
    colour, shape, fill = verdict_scales(alt, [row["verdict"] for row in rows])
    scale = alt.Scale(zero=True, nice=True, padding=8)
    title = f"difference in {metric}"
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y(f"{by}:N", sort=named([row[by] for row in rows]), title=None, axis=alt.Axis(grid=False, ticks=False))
    )
    legend = alt.Legend(symbolFillColor="transparent")
    bars = base.mark_rule(strokeWidth=3, opacity=0.45).encode(
        x=alt.X("low:Q", scale=scale, title=title), x2="high:Q", color=alt.Color("verdict:N", scale=colour, legend=None)
    )
    points = base.mark_point(size=70, opacity=1, strokeWidth=2).encode(
        x=alt.X("difference:Q", scale=scale, title=title),
        stroke=alt.Stroke("verdict:N", scale=colour, legend=legend),
        shape=alt.Shape("verdict:N", scale=shape, legend=legend),
        fill=alt.Fill("verdict:N", scale=fill, legend=None),
        tooltip=tooltips(alt, of=f"{by}:N", difference="difference:Q", low="low:Q", high="high:Q", p_adjusted="p:Q",
                         verdict="verdict:N"),
    )  # fmt: skip
    zero = alt.Chart(inline([{"zero": 0}])).mark_rule(color=INK, strokeDash=[4, 3], opacity=0.7).encode(x="zero:Q")
    return alt.layer(zero, bars, points).add_params(zooming()).properties(height=rows_height(len(rows)))


