"""The same question within groups, of units or of items: values by group, and whether the difference is the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truerank.core.results import TURNED, Comparison, Results
from truerank.report.plots.differences import SHOWN, difference_chart, pair
from truerank.report.plots.panels import (
    MOST_COLOURS,
    PlotPanel,
    Rows,
    inline,
    known,
    layered,
    library,
    model_colour,
    named,
    tooltips,
)
from truerank.report.questions import ShownQuestion, questions_of

STEP = 14


def segments(results: Results, groups: Mapping[str, Results], *, most: int | None = None) -> list[PlotPanel]:
    """Two panels for each question (the first `most`): the main difference by group, and values by group."""
    within = {name: questions_of(each) for name, each in groups.items()}
    return [panel for question in questions_of(results)[:most] for panel in _panels(question, within)]


def _panels(whole: ShownQuestion, within: Mapping[str, list[ShownQuestion]]) -> list[PlotPanel]:
    same = {
        name: question
        for name, questions in within.items()
        for question in questions
        if (question.metric, question.estimator, question.reward) == (whole.metric, whole.estimator, whole.reward)
    }
    if not same:
        return []
    found = []
    models = [each.model for each in whole.estimates[:MOST_COLOURS]]
    main = _main(whole)
    if main is not None:
        by_group = {name: question.difference(main.model, main.baseline) for name, question in same.items()}
        rows: Rows = [
            {"group": name, "difference": each.difference, "low": each.low, "high": each.high, "p": each.p_adjusted,
             "verdict": each.verdict}
            for name, each in by_group.items() if each is not None
        ]  # fmt: skip
        if known(rows, "difference"):
            found.append(
                PlotPanel(whole.title, _sentence(rows, main), difference_chart(rows, whole.metric, by="group"))
            )
    values: Rows = [
        {"group": name, "model": each.model, "value": each.value, "low": each.low, "high": each.high,
         "units": each.units}
        for name, question in same.items() for each in question.estimates if each.model in models
    ]  # fmt: skip
    if known(values, "value"):
        rest = f" The highest {len(models)} models." if len(models) < len(whole.estimates) else ""
        text = f"{whole.metric} of each model within each group.{rest}"
        found.append(PlotPanel(whole.title, text, _values(values, models, list(same), whole.metric)))
    return found


def _main(question: ShownQuestion) -> Comparison | None:
    """The difference that a reader asks about first: the best against the baseline, or against the next."""
    place = {each.model: at for at, each in enumerate(question.estimates)}
    told = question.top_differences()
    if question.baseline is None:
        return min(told, key=lambda each: place[each.model] + place[each.baseline], default=None)
    return min(told, key=lambda each: place[each.model], default=None)


def _sentence(rows: Rows, main: Comparison) -> str:
    shown = [row for row in rows if row["verdict"] in SHOWN]
    signs = {row["verdict"] for row in shown}
    if any(TURNED[sign] in signs for sign in signs):
        return f"{pair(main)} turns round between groups."
    if not shown:
        return f"{pair(main)} is shown in none of the {len(rows)} groups by itself."
    return f"{main.model} is shown to be {signs.pop()} than {main.baseline} in {len(shown)} of {len(rows)} groups."


def _values(rows: Rows, models: list[str], groups: list[str], metric: str) -> Any:
    alt = library()
    colour, shape = model_colour(alt, models)
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y("group:N", sort=named(groups), title=None, axis=alt.Axis(ticks=False)),
        yOffset=alt.YOffset("model:N", sort=named(models)),
        color=colour,
    )
    scale = alt.Scale(zero=False, nice=True, padding=8)
    bars = base.mark_rule(strokeWidth=2.5, opacity=0.45).encode(
        x=alt.X("low:Q", scale=scale, title=metric), x2="high:Q"
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=alt.X("value:Q", scale=scale, title=metric),
        shape=shape,
        tooltip=tooltips(alt, group="group:N", model="model:N", value="value:Q", low="low:Q", high="high:Q",
                         units="units:Q"),
    )  # fmt: skip
    return layered(bars, points).properties(height=max(2, len(groups)) * (len(models) + 1) * STEP)
