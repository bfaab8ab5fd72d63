"""What all charts share: altair, files of pictures, panels with the sentence they show, colours and marks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from textwrap import wrap
from typing import Any

from truerank.core.errors import InputError, extra
from truerank.core.escaping import chart_spec, printable
from truerank.core.record import record
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, SHOWN_ABOVE, SHOWN_BELOW
from truerank.models import load

INSTALL = extra("report")
PIXELS = 2  # of a PNG for each of a chart: sharp on paper
TYPEFACE = "Liberation Sans, Arial, Helvetica, sans-serif"  # the first comes with vl-convert: the same on every machine
FONT = 12  # a page's width is two thirds of the widest figure: 8 pixels, or 6 points, on paper
# Okabe and Ito's colours, told apart with every common kind of colour blindness; without their yellow, which is too
# faint on white. Shapes say the same where there is no colour.
COLOURS = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#56B4E9", "#CC79A7")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
MOST_COLOURS = len(COLOURS)
BLUE, VERMILION, GREY = COLOURS[0], COLOURS[1], "#7f7f7f"
INK = "currentColor"  # of text and lines: black on white, and on a page whatever its text has
# verdicts differ in colour and shape, and those that say who is better (or higher) are filled
VERDICTS = {
    **dict.fromkeys(SHOWN_ABOVE, (BLUE, "circle")),
    **dict.fromkeys(SHOWN_BELOW, (VERMILION, "square")),
    NOT_SHOWN: (GREY, "triangle-up"),
    INSUFFICIENT: (GREY, "diamond"),
}
CONFIG: dict[str, Any] = {
    "font": TYPEFACE,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": INK, "tickColor": INK, "domainColor": INK, "gridColor": INK,
        "gridOpacity": 0.14, "domainOpacity": 0.4, "tickOpacity": 0.4, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 200,
    },
    "axisQuantitative": {"tickCount": 6},
    "legend": {
        "labelColor": INK, "titleColor": INK, "orient": "top", "title": None, "labelFontSize": 12, "labelLimit": 160,
        "symbolStrokeWidth": 1.5, "symbolOpacity": 1,
    },
    "title": {"color": INK, "subtitleColor": INK, "anchor": "start", "frame": "group", "fontSize": 13,
              "subtitleFontSize": 12, "offset": 8},
    "header": {"labelColor": INK, "titleColor": INK},
    "text": {"color": INK},
    "rule": {"color": INK},
}  # fmt: skip
Rows = list[dict[str, Any]]


def altair(who: str = "a chart") -> Any:
    """The library that describes charts; where it is missing, what to install."""
    load("vl_convert", install=INSTALL, who=who)
    return load("altair", install=INSTALL, who=who)


class _Altair:
    """Altair, loaded when it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(altair(), name)


alt: Any = _Altair()


# --------------------------------------------------------------------------------------------------------------- files


class PictureFormat(StrEnum):
    """How a picture is written."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


def picture(chart: Any, form: PictureFormat, *, who: str = "a chart") -> bytes:
    """A chart as the content of a file: the same bytes for the same chart, but for PDF, whose parts have no order."""
    version = "_".join(altair(who).SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    convert = getattr(load("vl_convert", install=INSTALL, who=who), f"vegalite_to_{form}")
    scale = {"scale": PIXELS} if form is PictureFormat.PNG else {}
    content = convert(chart_spec(chart), vl_version=version, allowed_base_urls=[], **scale)
    return _renumber_clips(content).encode() if form is PictureFormat.SVG else bytes(content)


def _renumber_clips(svg: str) -> str:
    """A picture whose clip paths are numbered from 0, not by how many were drawn before it.

    >>> _renumber_clips('<clipPath id="clip7"/><g clip-path="url(#clip7)"/><clipPath id="clip9"/>')
    '<clipPath id="clip0"/><g clip-path="url(#clip0)"/><clipPath id="clip1"/>'
    """
    numbers: dict[str, str] = {}
    return re.sub(r"(?<=[\"#])clip\d+(?=[\")])", lambda clip: numbers.setdefault(clip[0], f"clip{len(numbers)}"), svg)


# -------------------------------------------------------------------------------------------------------------- panels

WIDTH = 380  # of a panel outside of a page; on a page a panel is as wide as there is room
ZOOM = {
    "bind": "scales", "encodings": ["x"], "zoom": "wheel![event.shiftKey]",
    "translate": "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!",
}  # fmt: skip


@record
class PlotPanel:
    """One small chart: its subject, what it shows in a sentence, and its specification without either.

    One that `zooms` can be moved along its horizontal axis.
    """

    title: str
    sentence: str
    chart: Any
    zooms: bool = False

    def zooming(self, name: str = "zoom") -> Any:
        """The chart, with zoom and moves while the shift key is held, so that scrolling a page stays what it is."""
        return self.chart.add_params(alt.selection_interval(name=name, **ZOOM)) if self.zooms else self.chart


def lines_of(text: str, width: int) -> list[str]:
    """A text broken into lines of about so many pixels."""
    return wrap(text, width // 6, break_long_words=False)


def composed(panels: Sequence[PlotPanel], *, nothing: str) -> Any:
    """Panels as one chart, two side by side, each under its sentence; without any, why there is nothing to draw."""
    if not panels:
        raise InputError(f"nothing to draw: {nothing}")
    parts = [
        panel.zooming(f"zoom{place}").properties(
            width=WIDTH,
            title=alt.Title(lines_of(panel.sentence, WIDTH), subtitle=lines_of(panel.title, WIDTH)),
        )
        for place, panel in enumerate(panels)
    ]
    return alt.concat(*parts, columns=2, config=alt.Config(**CONFIG, background="white", padding=12)).resolve_scale(
        x="independent", y="independent", color="independent", shape="independent", opacity="independent"
    )


def layered(*layers: Any, height: int) -> Any:
    """Layers as one chart, without those that have nothing to place: an axis over nothing is none."""
    return alt.layer(*filter(_is_placed, layers)).properties(height=height)


def _is_placed(layer: Any) -> bool:
    """Whether some row of a layer has the numbers that place it."""
    places = [layer.encoding[name] for name in ("x", "x2", "y", "y2")]
    shorthands = [place.shorthand for place in places if place is not alt.Undefined]
    return has_numbers(layer.data.values, *(text[:-2] for text in shorthands if text.endswith(":Q")))


def has_numbers(rows: Rows, *fields: str) -> bool:
    """Whether some row has all these numbers."""
    return any(all(_plain(row[field]) is not None for field in fields) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return printable(value) if isinstance(value, str) else value


def chart_of(rows: Rows) -> Any:
    """A chart of rows, without marks; what is not finite has no place, texts from data are printable."""
    return alt.Chart(alt.Data(values=[{name: _plain(value) for name, value in row.items()} for row in rows]))


def fields_of(entry: Any, names: Iterable[str], **more: Any) -> dict[str, Any]:
    """A row with some fields of an estimate or comparison."""
    return more | {name: getattr(entry, name) for name in names}


def named(names: Iterable[str]) -> list[str]:
    """Names from data as rows show them, each once."""
    return [printable(name) for name in dict.fromkeys(names)]


def rows_of_names(by: str, rows: Rows, *, grid: bool = False) -> Any:
    """The vertical axis with a row for each name, in the order of the data."""
    return alt.Y(f"{by}:N", sort=named(row[by] for row in rows), title=None, axis={"grid": grid, "ticks": False})


def rows_of_models(by: str, rows: Rows, models: Sequence[str]) -> Any:
    """A chart with a row for each name, in which each model has its line and its style."""
    offset = alt.YOffset("model:N", sort=named(models))
    return chart_of(rows).encode(y=rows_of_names(by, rows, grid=True), yOffset=offset, **model_styles(models))


def rows_height(n: int) -> int:
    """The height of n rows; a chart of very few is not squeezed."""
    return max(n, 2) * 22


def dashed_at(value: float, field: str, *, along: str = "x", **mark: Any) -> Any:
    """A dashed line across an axis."""
    line = chart_of([{field: value}]).mark_rule(color=INK, strokeDash=[4, 3], **mark)
    return line.encode(**{along: f"{field}:Q"})


def colours_and_shapes(field: str, styles: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """The encodings of a field whose values have a colour and a shape."""
    colours, shapes = zip(*styles.values(), strict=True)
    scales = [{"domain": list(styles), "range": list(values)} for values in (colours, shapes)]
    return {"color": alt.Color(f"{field}:N", scale=scales[0]), "shape": alt.Shape(f"{field}:N", scale=scales[1])}


def model_styles(names: Iterable[str]) -> dict[str, Any]:
    """A colour and a shape for each of a few models."""
    styles = {name: (COLOURS[place % 6], SHAPES[place % 6]) for place, name in enumerate(named(names))}
    return colours_and_shapes("model", styles)


def tooltips(*fields: str) -> list[Any]:
    """What a mark shows: `field:Q` or `title=field:Q`, numbers with four digits; a title has spaces for underscores."""
    parts = [text.rpartition("=") for text in fields]
    return [
        alt.Tooltip(
            field,
            title=(title or field[:-2]).replace("_", " "),
            **({"format": ".4~g"} if field.endswith(":Q") else {}),
        )
        for title, _, field in parts
    ]
