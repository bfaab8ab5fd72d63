"""Graphs of reproduced experiments as charts: few kinds, all from plain points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truerank.report.plots.panels import CONFIG, library
from truerank.report.reliability_charts import PictureFormat, altair, picture
from truerank.report.reliability_layout import COLOURS, SHAPES, wrapped
from truerank.studies.papers.paper import GraphKind, PaperGraph

WIDTH, HEIGHT, ROW, FONT = 560, 260, 18, 13
PANEL, BESIDE = 280, 3  # the width of one of several panels, and how many stand side by side
LETTER = 7  # pixels of a letter, about
GREY = "#7f7f7f"
NEAR = 0.1  # of the largest: near to 0
MARGIN = 0.3  # of a place, above the first and below the last
TILE, STRIDE, ACROSS = 14, 19, 32  # pixels of a square and from one to the next; squares in a line
# from what holds to what has not been run, told apart also without colours
TILES = {"holds": "#1f6f8b", "in part": "#7fc1d6", "does not": "#d1495b", "untested": "#b8b8b8", "not run": "#ebebeb"}
WHO = "a picture of an experiment"


def check_drawing() -> None:
    """Refuse where what draws is missing: before long work, not after it."""
    altair(WHO)


def drawn(graph: PaperGraph) -> bytes:
    """The picture as SVG."""
    return picture(chart(graph), PictureFormat.SVG, who=WHO)


def chart(graph: PaperGraph) -> Any:
    """The chart of a graph, under its sentence."""
    alt = library()
    panels = list(dict.fromkeys(point.panel for point in graph.points))
    make = _ranges if graph.kind is GraphKind.RANGES else _plane
    width = WIDTH if len(panels) == 1 else PANEL
    parts = [
        make(alt, graph, panel, width).properties(title=panel) if panel else make(alt, graph, panel, width)
        for panel in panels
    ]
    title = alt.Title(
        wrapped(graph.sentence, WIDTH, font=FONT), subtitle=wrapped(graph.title, WIDTH), anchor="start", frame="group"
    )
    config = alt.Config(**CONFIG, background="white", padding=12)
    return alt.concat(*parts, columns=BESIDE if width < WIDTH else 1, title=title, config=config)


def drawn_tiles(tiles: Sequence[tuple[str, str]], *, order: Sequence[str]) -> bytes:
    """A square for every (row, kind), those of a row side by side in the order of kinds, as SVG."""
    alt = library()
    placed = []
    for row in dict.fromkeys(row for row, _ in tiles):
        own = sorted((kind for name, kind in tiles if name == row), key=order.index)
        placed += [{"row": row, "kind": kind, "at": at % ACROSS, "line": at // ACROSS} for at, kind in enumerate(own)]
    rows = list(dict.fromkeys((tile["row"], tile["line"]) for tile in placed))
    # a row of many squares goes on below itself, and is named once
    values = [tile | {"place": rows.index((tile["row"], tile["line"]))} for tile in placed]
    names = [row if line == 0 else "" for row, line in rows]
    there = {kind for _, kind in tiles}
    met = {kind: colour for kind, colour in zip(order, TILES.values(), strict=True) if kind in there}
    scale = alt.Scale(domain=list(met), range=list(met.values()))
    legend = alt.Legend(title=None, orient="top", symbolType="square", labelLimit=200)
    chart = (
        alt.Chart(alt.Data(values=values))
        .mark_square(size=TILE**2, opacity=1)
        .encode(
            x=alt.X("at:Q", axis=None, scale=alt.Scale(domain=[-0.5, ACROSS - 0.5])),
            y=alt.Y(
                "place:Q",
                title=None,
                scale=alt.Scale(domain=[len(rows) - 0.5, -0.5], nice=False),
                axis=alt.Axis(
                    values=[at for at, name in enumerate(names) if name], grid=False, ticks=False, domain=False,
                    labelExpr=f"{names!r}[datum.value]", labelLimit=240,
                ),
            ),
            color=alt.Color("kind:N", scale=scale, legend=legend),
        )
        .properties(width=STRIDE * ACROSS, height=STRIDE * len(rows))
    )  # fmt: skip
    return picture(chart.configure(**CONFIG, background="white", padding=12), PictureFormat.SVG, who=WHO)


def _rows(graph: PaperGraph, panel: str) -> list[dict[str, Any]]:
    return [
        {"x": point.x, "y": point.y, "group": point.group, "low": point.low, "high": point.high}
        for point in graph.points
        if point.panel == panel and point.y is not None
    ]


def _styles(alt: Any, graph: PaperGraph) -> tuple[Any, Any]:
    """Colours and shapes of the groups, the same in every panel."""
    groups = list(dict.fromkeys(point.group for point in graph.points))
    legend = alt.Legend(title=None, orient="top", labelLimit=300, columns=3) if len(groups) > 1 else None
    colours = alt.Scale(domain=groups, range=[COLOURS[at % len(COLOURS)] for at in range(len(groups))])
    shapes = alt.Scale(domain=groups, range=[SHAPES[at % len(SHAPES)] for at in range(len(groups))])
    return alt.Color("group:N", scale=colours, legend=legend), alt.Shape("group:N", scale=shapes, legend=legend)


def _plane(alt: Any, graph: PaperGraph, panel: str, width: int) -> Any:
    """Points over two axes; a horizontal axis of texts has a place for each."""
    rows = _rows(graph, panel)
    colour, shape = _styles(alt, graph)
    texts = any(isinstance(row["x"], str) for row in rows)
    if texts:
        order = list(dict.fromkeys(row["x"] for row in rows))
        crowded = sum(len(each) + 2 for each in order) * LETTER > width
        x = alt.X("x:O", title=graph.x, sort=order, axis=alt.Axis(labelAngle=-45 if crowded else 0, grid=False))
    else:
        scale = alt.Scale(type="log" if graph.log else "linear", zero=False, nice=not graph.log)
        x = alt.X("x:Q", title=graph.x, scale=scale)
    up = _places(alt, graph) if graph.kind is GraphKind.PLACES else {"title": graph.y, "scale": alt.Scale(zero=False)}
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, color=colour)
    layers = []
    if graph.level is not None:
        level = alt.Chart(alt.Data(values=[{"y": graph.level}]))
        layers.append(level.mark_rule(color=GREY, strokeDash=[4, 3]).encode(y=alt.Y("y:Q", **up)))
    if any(row["low"] is not None for row in rows):
        layers.append(base.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q", **up), y2="high:Q"))
    if graph.kind in (GraphKind.LINES, GraphKind.PLACES):
        layers.append(base.mark_line(strokeWidth=1.6).encode(y=alt.Y("y:Q", **up)))
    marks = base.mark_point(filled=True, size=34, opacity=0.85).encode(y=alt.Y("y:Q", **up), shape=shape)
    return alt.layer(*layers, marks).properties(width=width, height=HEIGHT)


def _places(alt: Any, graph: PaperGraph) -> dict[str, Any]:
    """An axis of places: whole numbers, the first at the top."""
    last = max(int(point.y) for point in graph.points if point.y is not None)
    scale = alt.Scale(domain=[1 - MARGIN, last + MARGIN], reverse=True, nice=False, zero=False)
    return {"title": graph.y, "scale": scale, "axis": alt.Axis(values=list(range(1, last + 1)), format="d")}


def _across(alt: Any, rows: Sequence[dict[str, Any]]) -> Any:
    """From 0 where something lies near it and nothing below: no axis of shares begins with less than none."""
    ends = [float(row[name]) for row in rows for name in ("y", "low", "high") if row[name] is not None]
    near = 0 <= min(ends, default=1.0) < NEAR * max(ends, default=1.0)
    return alt.Scale(domainMin=0, nice=True) if near else alt.Scale(zero=False, nice=True, padding=8)


def _ranges(alt: Any, graph: PaperGraph, panel: str, width: int) -> Any:
    """A line for each text: its points, and their intervals."""
    rows = _rows(graph, panel)
    colour, shape = _styles(alt, graph)
    labels = list(dict.fromkeys(str(row["x"]) for row in rows))
    y = alt.Y("x:N", sort=labels, title=None, axis=alt.Axis(grid=False, ticks=False, labelLimit=330))
    across = {"title": graph.y, "scale": _across(alt, rows)}
    base = alt.Chart(alt.Data(values=rows)).encode(y=y, color=colour)
    layers = []
    if graph.level is not None:
        level = alt.Chart(alt.Data(values=[{"y": graph.level}]))
        layers.append(level.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x=alt.X("y:Q", **across)))
    if any(row["low"] is not None for row in rows):
        layers.append(base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("low:Q", **across), x2="high:Q"))
    layers.append(base.mark_point(filled=True, size=45, opacity=0.85).encode(x=alt.X("y:Q", **across), shape=shape))
    return alt.layer(*layers).properties(width=width, height=max(3, len(labels)) * ROW)
