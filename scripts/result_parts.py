"""What the beginnings of pages of results are made of: tables of a page read again, and two kinds of picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truerank.report.plots.panels import CONFIG, library
from truerank.report.reliability_layout import COLOURS, SHAPES

WIDTH, ROW, HEIGHT = 560, 17, 240
BAND, INK, FONT = "#e3efdf", "#444444", 12
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*")

Row = dict[str, str]
Table = list[Row]


@dataclass(frozen=True, slots=True)
class Head:
    """What a page begins with: a picture, what it shows for those who do not see it, and three sentences."""

    chart: Any
    alternative: str
    sentences: tuple[str, str, str]


# --------------------------------------------------------------------------------------------------------------- tables


def tables(text: str) -> list[Table]:
    """Every table of a page, a dict for each row."""
    found: list[Table] = []
    names: list[str] | None = None
    for line in text.splitlines():
        if not line.startswith("|"):
            names = None
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if names is None:
            names = cells
            found.append([])
        elif not set(line) <= set("|-: "):
            found[-1].append(dict(zip(names, cells, strict=True)))
    return found


def having(found: Sequence[Table], *columns: str) -> list[Table]:
    """Tables with all these columns."""
    return [table for table in found if table and set(columns) <= set(table[0])]


def rows_having(found: Sequence[Table], *columns: str) -> Table:
    """Rows of all tables with these columns."""
    return [row for table in having(found, *columns) for row in table]


def number(text: str) -> float:
    """The first number of a cell; a share where it is a percentage."""
    match = NUMBER.search(text)
    if match is None:
        return float("nan")
    value = float(match[0].replace(",", ""))
    return value / 100 if text[match.end() :].lstrip().startswith("%") else value


def numbers(text: str) -> list[float]:
    """All numbers of a cell, `0.1 (0.05 to 0.15)`."""
    return [float(each.replace(",", "")) for each in NUMBER.findall(text)]


def percent(value: float, digits: int = 1) -> str:
    return f"{value * 100:.{digits}f} %"


# --------------------------------------------------------------------------------------------------------------- charts


def ranges(
    rows: Sequence[dict[str, Any]], title: str, *, band: tuple[float, float] | None = None, at: float | None = None,
    form: str = ".2~f", domain: tuple[float, float] | None = None, offset: bool = False,
) -> Any:  # fmt: skip
    """A line for each `label`: a dot for each `value`, from `low` to `high` where they are given, coloured by `group`."""
    alt = library()
    labels, groups = (
        list(dict.fromkeys(row["label"] for row in rows)),
        list(dict.fromkeys(row["group"] for row in rows)),
    )
    colour = alt.Color("group:N", scale=alt.Scale(domain=groups, range=list(COLOURS)[: len(groups)]), sort=groups,
                       legend=alt.Legend(orient="top", title=None, symbolOpacity=1, labelLimit=300) if len(groups) > 1 else None)  # fmt: skip
    shape = alt.Shape("group:N", scale=alt.Scale(domain=groups, range=list(SHAPES)[: len(groups)]), sort=groups,
                      legend=alt.Legend(orient="top", title=None) if len(groups) > 1 else None)  # fmt: skip
    scale = alt.Scale(domain=list(domain), clamp=True) if domain else alt.Scale(zero=False, nice=True, padding=8)
    apart = {"yOffset": alt.YOffset("group:N", sort=groups)} if offset else {}
    base = alt.Chart(alt.Data(values=list(rows))).encode(
        y=alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(grid=False, ticks=False, labelLimit=330)), **apart
    )
    x = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(format=form))
    layers = []
    if band is not None:
        shown = alt.Chart(alt.Data(values=[{"from": band[0], "to": band[1]}]))
        layers.append(shown.mark_rect(color=BAND).encode(x=alt.X("from:Q", scale=scale, title=title), x2="to:Q"))
    if at is not None:
        layers.append(alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="at:Q"))
    if any("low" in row for row in rows):
        ends = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
            x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", color=colour
        )
        layers.append(ends)
    layers.append(base.mark_point(filled=True, size=45, opacity=0.8).encode(x=x, color=colour, shape=shape))
    step = max(ROW, 9 * len(groups)) if offset else ROW
    return alt.layer(*layers).properties(
        width=WIDTH, height=max(3, len(labels)) * step, config=alt.Config(**CONFIG, background="white", padding=12)
    )


def curves(rows: Sequence[dict[str, Any]], *, across: str, title: str, form: str = ".2~f", zero: bool = False) -> Any:
    """A line for each `group` over `at`, a panel for each `panel`."""
    alt = library()
    panels, groups = (list(dict.fromkeys(row[name] for row in rows)) for name in ("panel", "group"))
    colour = alt.Color("group:N", scale=alt.Scale(domain=groups, range=list(COLOURS)[: len(groups)]), sort=groups,
                       legend=alt.Legend(orient="top", title=None, symbolOpacity=1))  # fmt: skip
    shape = alt.Shape("group:N", scale=alt.Scale(domain=groups, range=list(SHAPES)[: len(groups)]), sort=groups)
    order = list(dict.fromkeys(row["at"] for row in rows))
    base = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X("at:O", sort=order, title=across, axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=zero), axis=alt.Axis(format=form)), color=colour,
    )  # fmt: skip
    layers = alt.layer(
        base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=60, opacity=1).encode(shape=shape)
    )
    width = WIDTH // len(panels) + (0 if len(panels) == 1 else 40)
    chart = layers.properties(width=width, height=HEIGHT)
    if len(panels) > 1:
        chart = chart.facet(
            column=alt.Column(
                "panel:N", sort=panels, title=None, header=alt.Header(labelFontSize=13, labelFontWeight="bold")
            )
        )
    return chart.properties(config=alt.Config(**CONFIG, background="white", padding=12))
