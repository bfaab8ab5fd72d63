"""What all pictures share: a panel with the sentence that it shows, colours, marks, and how panels become one chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truerank.core.errors import InputError
from truerank.core.escaping import printable
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, SHOWN_ABOVE, SHOWN_BELOW
from truerank.report.reliability_charts import TYPEFACE, altair
from truerank.report.reliability_layout import COLOURS, SHAPES, wrapped

WHO = "a chart"
WIDTH = 380  # of a panel on its own; on a page a panel is as wide as there is room
STEP = 22  # pixels of a row
INK = "currentColor"  # of text and lines: black on white, and on a page whatever its text has
FAINT = 0.14
BLUE, VERMILION, GREY = COLOURS[0], COLOURS[1], "#7f7f7f"
# verdicts differ in colour and shape, and those that say who is better (or higher) are filled
VERDICTS = {
    **dict.fromkeys(SHOWN_ABOVE, (BLUE, "circle")),
    **dict.fromkeys(SHOWN_BELOW, (VERMILION, "square")),
    NOT_SHOWN: (GREY, "triangle-up"),
    INSUFFICIENT: (GREY, "diamond"),
}
MOST_COLOURS = len(COLOURS)

CONFIG: dict[str, Any] = {
    "font": TYPEFACE,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": INK, "tickColor": INK, "domainColor": INK, "gridColor": INK,
        "gridOpacity": FAINT, "domainOpacity": 0.4, "tickOpacity": 0.4, "labelFontSize": 12, "titleFontSize": 12,
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


@dataclass(frozen=True, slots=True)
class PlotPanel:
    """One small chart: what it is about, what it shows in a sentence, and its specification without either.

    One that `zooms` can be moved along its horizontal axis; `parameters` are what a page gives the chart, and can
    change.
    """

    title: str
    sentence: str
    chart: Any
    zooms: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def zooming(self, name: str = "zoom") -> Any:
        """The chart, with zoom and moves while the shift key is held, so that scrolling a page stays what it is."""
        if not self.zooms:
            return self.chart
        held = library().selection_interval(
            name=name,
            bind="scales",
            encodings=["x"],
            zoom="wheel![event.shiftKey]",
            translate="[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!",
        )
        return self.chart.add_params(held)


def library() -> Any:
    """The library that describes charts; where it is missing, what to install."""
    return altair(WHO)


def composed(panels: Sequence[PlotPanel], *, nothing: str) -> Any:
    """Panels as one chart, two side by side, each under its sentence; without any, why there is nothing to draw."""
    if not panels:
        raise InputError(f"nothing to draw: {nothing}")
    alt = library()
    parts = [
        panel.zooming(f"zoom{at}").properties(
            width=WIDTH,
            title=alt.Title(wrapped(panel.sentence, WIDTH, font=13), subtitle=wrapped(panel.title, WIDTH)),
        )
        for at, panel in enumerate(panels)
    ]
    return alt.concat(*parts, columns=2, config=alt.Config(**CONFIG, background="white", padding=12)).resolve_scale(
        x="independent", y="independent", color="independent", shape="independent", opacity="independent"
    )


def layered(*layers: Any) -> Any:
    """Layers as one chart, without those that have nothing to place: an axis over nothing is none."""
    return library().layer(*(each for each in layers if _placed(each)))


def known(rows: Rows, *fields: str) -> bool:
    """Whether some row has all these numbers."""
    return any(all(_plain(row[field]) is not None for field in fields) for row in rows)


def _placed(layer: Any) -> bool:
    """Whether some row of a layer has the numbers that place it."""
    places = [layer.encoding[name] for name in ("x", "x2", "y", "y2")]
    shorthands = [place.shorthand for place in places if place is not library().Undefined]
    fields = [text.removesuffix(":Q") for text in shorthands if text.endswith(":Q")]
    return known(layer.data.values, *fields)


def inline(rows: Rows) -> Any:
    """Rows as data of a chart; what is not finite has no place, texts from data are printable."""
    return library().Data(values=[{name: _plain(value) for name, value in row.items()} for row in rows])


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return printable(value) if isinstance(value, str) else value


def named(names: Sequence[str]) -> list[str]:
    """Names from data as rows show them."""
    return [printable(name) for name in dict.fromkeys(names)]


def rows_height(n: int) -> Any:
    """The height of n rows; a chart of very few is not squeezed."""
    return max(n, 2) * STEP


def verdict_scales(alt: Any, present: Sequence[str]) -> tuple[Any, Any]:
    """Colours and shapes of the verdicts that are there."""
    kinds = [kind for kind in VERDICTS if kind in present]

    def scale(at: int) -> Any:
        return alt.Scale(domain=kinds, range=[VERDICTS[kind][at] for kind in kinds])

    return scale(0), scale(1)


def model_colour(alt: Any, names: Sequence[str]) -> tuple[Any, Any]:
    """A colour and a shape for each of a few models."""
    domain = named(names)
    colour = alt.Scale(domain=domain, range=[COLOURS[at % MOST_COLOURS] for at in range(len(domain))])
    shape = alt.Scale(domain=domain, range=[SHAPES[at % len(SHAPES)] for at in range(len(domain))])
    return alt.Color("model:N", scale=colour), alt.Shape("model:N", scale=shape)


def tooltips(alt: Any, **fields: str) -> list[Any]:
    """What a mark tells: `title="field:Q"`, numbers with four digits; an underscore in a title is a space."""
    return [
        alt.Tooltip(field, title=title.replace("_", " "), **({"format": ".4~g"} if field.endswith(":Q") else {}))
        for title, field in fields.items()
    ]
