"""What pages of studies begin with: two kinds of picture, and numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from truerank.report.plots.panels import CONFIG, library
from truerank.report.reliability_charts import TYPEFACE
from truerank.report.reliability_layout import COLOURS, SHAPES

WIDTH, ROW, HEIGHT = 560, 17, 240
BAND_COLOUR, INK = "#e3efdf", "#444444"
HELD = "95 % intervals that held the truth"
BAND = (0.93, 0.97)
GREEN = "the green band, 93 to 97 %, is where intervals that keep their word fall"


def dot(label: str, group: str, value: float, **ends: float) -> dict[str, Any]:
    """A dot of `ranges`; its ends are `low` and `high`."""
    return {"label": label, "group": group, "value": value, **ends}


def with_clip(row: Mapping[str, Any]) -> str:
    """The estimator of a row, and its clip where it has one.

    >>> with_clip({"estimator": "ips", "clip": 10.0}), with_clip({"estimator": "ips", "clip": None})
    ('ips, clip 10', 'ips')
    """
    return str(row["estimator"]) if row["clip"] is None else f"{row['estimator']}, clip {row['clip']:g}"


def plain(alt: Any) -> Any:
    """How a picture without a frame looks."""
    axis = alt.AxisConfig(labelFontSize=12, titleFontSize=12, gridColor="#e8e8e8", labelLimit=300)
    return alt.Config(font=TYPEFACE, padding=10, background="white", axis=axis, view=alt.ViewConfig(stroke=None))


def percent(value: float, digits: int = 1) -> str:
    """A share in words of a sentence.

    >>> percent(0.954)
    '95.4 %'
    """
    return f"{value * 100:.{digits}f} %"


def span(values: Iterable[float], digits: int = 1) -> str:
    """From the least to the largest share.

    >>> span([0.954, 0.94], 0)
    '94 % to 95 %'
    """
    found = list(values)
    return f"{percent(min(found), digits)} to {percent(max(found), digits)}"


def ranges(
    rows: Sequence[dict[str, Any]], title: str, *, band: tuple[float, float] | None = None, at: float | None = None,
    form: str = ".2~f", domain: tuple[float, float] | None = None, offset: bool = False,
) -> Any:  # fmt: skip
    """A line for each `label`: a dot for each `value`, from `low` to `high` where given, coloured by `group`."""
    alt = library()
    labels, groups = (
        list(dict.fromkeys(row["label"] for row in rows)),
        list(dict.fromkeys(row["group"] for row in rows)),
    )
    legends = [alt.Legend(orient="top", title=None, **more) if len(groups) > 1 else None
               for more in ({"symbolOpacity": 1, "labelLimit": 300}, {})]  # fmt: skip
    colours, shapes = (alt.Scale(domain=groups, range=list(every)[: len(groups)]) for every in (COLOURS, SHAPES))
    colour = alt.Color("group:N", scale=colours, sort=groups, legend=legends[0])
    shape = alt.Shape("group:N", scale=shapes, sort=groups, legend=legends[1])
    scale = alt.Scale(domain=list(domain), clamp=True) if domain else alt.Scale(zero=False, nice=True, padding=8)
    apart = {"yOffset": alt.YOffset("group:N", sort=groups)} if offset else {}
    base = alt.Chart(alt.Data(values=list(rows))).encode(
        y=alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(grid=False, ticks=False, labelLimit=330)), **apart
    )
    x = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(format=form))
    layers = []
    if band is not None:
        shown = alt.Chart(alt.Data(values=[{"from": band[0], "to": band[1]}]))
        layers.append(shown.mark_rect(color=BAND_COLOUR).encode(x=alt.X("from:Q", scale=scale, title=title), x2="to:Q"))
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
