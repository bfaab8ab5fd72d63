"""Single units: how their values are spread, and who gains and who loses from one model to another."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.results import Comparison, Results
from truerank.report.plots.differences import pair
from truerank.report.plots.panels import (
    BLUE,
    VERMILION,
    PlotPanel,
    Rows,
    inline,
    library,
    named,
    rows_height,
    tooltips,
)
from truerank.report.questions import ShownQuestion, questions_of

MOST_PAIRS = 10
MOST_ROWS = 12
BINS = 24
SAME = 1e-12
PARTS = {"loses": VERMILION, "same": "#b4b4b4", "gains": BLUE}
HEIGHT = 180


def units(results: Results, *, most: int | None = None) -> list[PlotPanel]:
    """For each question (the first `most`): who gains and loses, by how much, and how values are spread."""
    if results.unit_table is None:
        return []
    frame, unit = results.units(), f"{results.provenance.unit}s"
    found: list[PlotPanel] = []
    for question in questions_of(results)[:most]:
        values = _values(frame, question)
        if values is not None:
            found += _panels(question, values, unit=unit)
    return found


def _values(frame: pl.DataFrame, question: ShownQuestion) -> pl.DataFrame | None:
    """A row for each unit, a column for each model that is drawn; nothing where a table holds two ways at once."""
    pairs = question.top_differences(MOST_PAIRS)
    names = {each.model for each in question.estimates[:MOST_ROWS]}
    names |= {name for each in pairs for name in (each.model, each.baseline)}
    clips = {each.model: each.clip for each in question.estimates}
    own = frame.filter(
        (pl.col("metric") == question.metric)
        & (pl.col("reward") == question.reward)
        & (pl.col("estimator") == question.estimator.partition("(")[0])
        & pl.col("model").is_in(sorted(names))
    )
    parts = [own.filter((pl.col("model") == name) & pl.col("clip").eq_missing(clips[name])) for name in sorted(names)]
    if not parts or any(part["unit"].n_unique() < len(part) for part in parts):
        return None
    table = parts[0].select("unit")
    for name, part in zip(sorted(names), parts, strict=True):
        value = pl.when(pl.col("defined")).then(pl.col("value")).fill_nan(None)
        table = table.join(part.select("unit", value.alias(name)), on="unit", how="full", coalesce=True,
                           maintain_order="left_right")  # fmt: skip
    return table


def _panels(question: ShownQuestion, values: pl.DataFrame, *, unit: str) -> list[PlotPanel]:
    pairs = question.top_differences(MOST_PAIRS)
    gaps = {pair(each): _gap(values, each) for each in pairs}
    gaps = {name: gap for name, gap in gaps.items() if len(gap)}
    found = []
    if gaps:
        first = next(iter(gaps))
        found.append(PlotPanel(question.title, _who(first, gaps[first], unit, of=len(values)), _gains(gaps)))
        if (abs(gaps[first]) > SAME).any():
            found.append(
                PlotPanel(question.title, _how_much(first, gaps[first], unit), _histogram(gaps[first], first, unit))
            )
    spread = _spread(question, values, unit=unit)
    return [*found, *([] if spread is None else [spread])]


def _gap(values: pl.DataFrame, comparison: Comparison) -> Floats:
    both = values.select(comparison.model, comparison.baseline).drop_nulls()
    return (both[comparison.model] - both[comparison.baseline]).to_numpy().astype(np.float64)


def _counted(gap: Floats) -> dict[str, int]:
    return {
        "loses": int((gap < -SAME).sum()),
        "same": int((abs(gap) <= SAME).sum()),
        "gains": int((gap > SAME).sum()),
    }


def _who(name: str, gap: Floats, unit: str, *, of: int) -> str:
    """In words; who has no value of both is not among those who are counted, and may be another kind of user."""
    n = _counted(gap)
    said = f"{name}: {n['gains']:,} of {len(gap):,} {unit} gain, {n['loses']:,} lose, {n['same']:,} have the same"
    return (
        f"{said}; {of - len(gap):,} more have no value of their own and are not in this."
        if of > len(gap)
        else f"{said}."
    )


def _gains(gaps: dict[str, Floats]) -> Any:
    alt = library()
    rows: Rows = []
    for name, gap in gaps.items():
        left = 0.0
        for part, n in _counted(gap).items():
            share = n / len(gap)
            rows.append({"pair": name, "part": part, "n": n, "share": share, "left": left, "right": left + share})
            left += share
    scale = alt.Scale(domain=list(PARTS), range=list(PARTS.values()))
    axis = alt.Axis(format="%", grid=False)
    return (
        alt.Chart(inline(rows))
        .mark_bar(height={"band": 0.65}, opacity=0.85)
        .encode(
            y=alt.Y("pair:N", sort=named(list(gaps)), title=None, axis=alt.Axis(grid=False, ticks=False)),
            x=alt.X("left:Q", title="share", axis=axis, scale=alt.Scale(domain=[0, 1])),
            x2="right:Q",
            color=alt.Color("part:N", scale=scale, sort=list(PARTS)),
            tooltip=tooltips(alt, of="pair:N", who="part:N", how_many="n:Q", share="share:Q"),
        )
        .properties(height=rows_height(len(gaps)))
    )


def _how_much(name: str, gap: Floats, unit: str) -> str:
    moved = gap[abs(gap) > SAME]
    low, middle, high = np.quantile(moved, [0.1, 0.5, 0.9])
    return (
        f"{name}, the {len(moved):,} {unit} whose own value differs: the middle one by {middle:+.3g}, "
        f"one in ten by {low:+.3g} or less, one in ten by {high:+.3g} or more."
    )


def _histogram(gap: Floats, name: str, unit: str) -> Any:
    alt = library()
    moved = gap[abs(gap) > SAME]
    reach = float(abs(moved).max())
    count, edges = np.histogram(moved, bins=BINS, range=(-reach, reach))
    rows: Rows = [
        {"left": float(edges[at]), "right": float(edges[at + 1]), "n": int(count[at]),
         "part": "loses" if edges[at + 1] <= reach * 1e-9 else "gains"}
        for at in range(BINS) if count[at]
    ]  # fmt: skip
    scale = alt.Scale(domain=list(PARTS), range=list(PARTS.values()))
    return (
        alt.Chart(inline(rows))
        .mark_bar(opacity=0.85, binSpacing=1)
        .encode(
            x=alt.X("left:Q", bin="binned", title=f"difference of single {unit}, {name}", axis=alt.Axis(grid=False)),
            x2="right:Q",
            y=alt.Y("n:Q", title=unit),
            color=alt.Color("part:N", scale=scale, legend=None),
            tooltip=tooltips(alt, **{"from": "left:Q", "to": "right:Q", unit: "n:Q"}),
        )
        .properties(height=HEIGHT)
    )


def _spread(question: ShownQuestion, values: pl.DataFrame, *, unit: str) -> PlotPanel | None:
    """How many units have which value of their own, a strip for each model."""
    shown = [each.model for each in question.estimates[:MOST_ROWS] if values[each.model].drop_nulls().len()]
    own = {name: values[name].drop_nulls().to_numpy().astype(np.float64) for name in shown}
    if not own:
        return None
    low, high = min(float(each.min()) for each in own.values()), max(float(each.max()) for each in own.values())
    if not low < high:
        return None
    rows: Rows = []
    for name, each in own.items():
        count, edges = np.histogram(each, bins=BINS, range=(low, high))
        rows += [
            {"model": name, "left": float(edges[at]), "right": float(edges[at + 1]), "n": int(count[at]),
             "share": int(count[at]) / len(each)}
            for at in range(BINS) if count[at]
        ]  # fmt: skip
    first = own[shown[0]]
    zero = int((first == 0).sum())
    sentence = (
        f"Of the {len(first):,} {unit} of {shown[0]}, {zero:,} have 0; half have at most {np.median(first):.3g}, "
        f"one in ten at least {np.quantile(first, 0.9):.3g}."
    )
    return PlotPanel(question.title, sentence, _strips(rows, shown, unit=unit))


def _strips(rows: Rows, models: list[str], *, unit: str) -> Any:
    alt = library()
    return (
        alt.Chart(inline(rows))
        .mark_bar(height={"band": 0.8}, color=BLUE)
        .encode(
            y=alt.Y("model:N", sort=named(models), title=None, axis=alt.Axis(grid=False, ticks=False)),
            x=alt.X("left:Q", bin="binned", title=f"own value of single {unit}", axis=alt.Axis(grid=False)),
            x2="right:Q",
            opacity=alt.Opacity(
                "share:Q", scale=alt.Scale(type="sqrt", range=[0.08, 1]),
                legend=alt.Legend(format="%", title=f"share of {unit}", tickCount=4),
            ),
            tooltip=tooltips(alt, model="model:N", **{"from": "left:Q", "to": "right:Q", unit: "n:Q"}, share="share:Q"),
        )
        .properties(height=rows_height(len(models)))
    )  # fmt: skip
