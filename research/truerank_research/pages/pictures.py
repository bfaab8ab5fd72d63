"""How pictures of results are drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from truerank.report.charts import COLOURS, CONFIG, SHAPES, PictureFormat, altair, picture
from truerank_research.pages import Picture
from truerank_research.results import Row

WIDTH, PANEL, HEIGHT, ROW = 560, 280, 260, 18
GREY, BAND = "#7f7f7f", "#e3efdf"
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")


def draw(form: Picture, rows: Sequence[Row]) -> bytes:
    """The picture of these rows, as SVG."""
    alt = altair()
    points = _points(form, rows)
    panels = list(dict.fromkeys(point["panel"] for point in points))
    groups = list(dict.fromkeys(point["group"] for point in points))
    width = WIDTH if len(panels) == 1 else PANEL
    charts = [
        _chart(alt, form, [point for point in points if point["panel"] == panel], groups, width).properties(title=panel)
        for panel in panels
    ]
    config = alt.Config(**CONFIG, background="white", padding=12)
    return picture(alt.concat(*charts, columns=2, config=config), PictureFormat.SVG, who="a page of research")


def stacked_bars(rows: Sequence[Row], colours: Mapping[str, str]) -> bytes:
    """A bar for each `row`, divided into the counts `n` of each `kind`, as SVG."""
    alt = altair()
    colour = alt.Color("kind:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())))
    order = {name: at for at, name in enumerate(colours)}
    values = [{**row, "order": order[row["kind"]]} for row in rows]
    base = alt.Chart(alt.Data(values=values)).encode(
        y=alt.Y("row:N", sort=list(dict.fromkeys(row["row"] for row in rows)), title=None),
        x=alt.X("n:Q", stack="zero", title="claims"),
        order="order:Q",
    )
    bars = base.mark_bar().encode(color=colour).properties(width=WIDTH, height=40 * len({row["row"] for row in rows}))
    return picture(bars.configure(**CONFIG, background="white", padding=12), PictureFormat.SVG, who="a page")


def _points(form: Picture, rows: Sequence[Row]) -> list[dict[str, Any]]:
    def text(row: Row, column: str) -> str:
        value = str(row[column]) if column else ""
        for old, new in form.labels.items():
            value = value.replace(old, new)
        return value

    selected = [
        row
        for row in rows
        if all(("" if row[name] is None else row[name]) in values for name, values in form.where.items())
    ]
    points = []
    for row in selected:
        if row[form.y] is not None:
            x = _number(row[form.x]) if form.numeric else text(row, form.x)
            ends = {name: row[column] for name, column in (("low", form.low), ("high", form.high)) if column}
            points.append(
                {"x": x, "y": row[form.y], "group": text(row, form.group), "panel": text(row, form.panel), **ends}
            )
    return points


def _number(value: Any) -> float:
    """A number, or the last one in a text."""
    return float(NUMBER.findall(value)[-1].replace(",", "")) if isinstance(value, str) else float(value)


def _chart(alt: Any, form: Picture, points: list[dict[str, Any]], groups: list[str], width: int) -> Any:
    legend = alt.Legend(title=None, orient="top", labelLimit=300, columns=3) if len(groups) > 1 else None
    colour, shape = (
        make(
            "group:N", legend=legend, scale=alt.Scale(domain=groups, range=[kinds[at % 6] for at in range(len(groups))])
        )
        for make, kinds in ((alt.Color, COLOURS), (alt.Shape, SHAPES))
    )
    ranges = form.kind == "ranges"
    texts = list(dict.fromkeys(point["x"] for point in points))
    if ranges:
        fixed = {"y": alt.Y("x:N", sort=texts, title=None, axis=alt.Axis(grid=False, ticks=False, labelLimit=330))}
    elif form.numeric:
        scale = alt.Scale(type="log" if form.log else "linear", zero=False, nice=not form.log)
        fixed = {"x": alt.X("x:Q", title=form.x_title, scale=scale)}
    else:
        fixed = {"x": alt.X("x:O", title=form.x_title, sort=texts, axis=alt.Axis(grid=False))}
    name, kind = ("x", alt.X) if ranges else ("y", alt.Y)

    def across(column: str) -> dict[str, Any]:
        return {name: kind(f"{column}:Q", title=form.y_title, scale=alt.Scale(zero=False, nice=True))}

    base = alt.Chart(alt.Data(values=points)).encode(**fixed, color=colour)
    layers = []
    if form.band is not None:
        band = alt.Chart(alt.Data(values=[{"y": form.band[0], "end": form.band[1]}]))
        layers.append(band.mark_rect(color=BAND).encode(**across("y"), **{f"{name}2": "end:Q"}))
    if form.level is not None:
        level = alt.Chart(alt.Data(values=[{"y": form.level}]))
        layers.append(level.mark_rule(color=GREY, strokeDash=[4, 3]).encode(**across("y")))
    if form.low:
        rule = base.mark_rule(strokeWidth=3 if ranges else 1, opacity=0.5)
        layers.append(rule.encode(**across("low"), **{f"{name}2": "high:Q"}))
    if form.kind == "lines":
        layers.append(base.mark_line(strokeWidth=1.6).encode(**across("y")))
    layers.append(base.mark_point(filled=True, size=45, opacity=0.85).encode(**across("y"), shape=shape))
    return alt.layer(*layers).properties(width=width, height=max(3, len(texts)) * ROW if ranges else HEIGHT)
