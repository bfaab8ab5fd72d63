"""A figure of a reliability study as an altair chart: lines of panels, with the samplers named above them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from truerank.io.atomic_write import FolderKind, check_place, whole_file, whole_folder
from truerank.report.charts import FONT, TYPEFACE, PictureFormat, altair, picture, text_width
from truerank.report.reliability_frames import Finished, StudyQuestion, Tau
from truerank.report.reliability_layout import SPACING, TITLE_FONT, Figure, figure

FOLDER = FolderKind("set of figures", tuple(f"{each.value}.*" for each in StudyQuestion))
CROSS = "M-1,-1L1,1M-1,1L1,-1"
MARGIN = 7  # pixels between the outermost sizes and the frame
KEY_HEIGHT, KEY_LINE, KEY_GAP = 20, 26, 22
Rows = list[dict[str, Any]]
HORIZONTAL = "number of sampled negatives per user (log axis)"


def chart(figure: Figure, *, live: bool = False) -> Any:
    """All panels of a figure; the same scales in each, so that they can be compared by eye.

    Each row of `figure.marks` is one mark: a point, a dashed line across the panel (no size), or a cross (undefined).
    A `live` one is for a page that has title and key of its own, and gives the parameter `shown`: the samplers to draw.
    """
    alt = altair()
    layout, rows = figure.layout, dict[str, Rows]()
    lines = [_line(alt, figure, at, rows, live=live) for at in range(len(layout.lines))]
    below = [_caption(alt, HORIZONTAL, layout.width, rows)] if figure.sizes else []
    if live:
        found = alt.vconcat(*lines, *below, spacing=SPACING)
        found.datasets = rows
        return found
    title = alt.Title(
        list(figure.title), subtitle=list(figure.subtitle), anchor="start", frame="group", fontSize=TITLE_FONT,
        subtitleFontSize=FONT, subtitleColor="#333333", subtitlePadding=5, subtitleLineHeight=FONT + 3, offset=8,
    )  # fmt: skip
    config = alt.Config(
        font=TYPEFACE,
        padding=10,
        view=alt.ViewConfig(stroke="#bbbbbb"),
        axis=alt.AxisConfig(
            labelFontSize=FONT - 1, titleFontSize=FONT, titleFontWeight="normal", gridColor="#e8e8e8",
            tickColor="#bbbbbb", domainColor="#bbbbbb", labelOverlap=False,
        ),
    )  # fmt: skip
    found = alt.vconcat(_key(alt, figure, rows), *lines, *below, spacing=SPACING, title=title, config=config)
    found.datasets = rows  # last: altair copies all that a chart holds at every step
    return found


def _named(alt: Any, rows: dict[str, Rows], values: Rows) -> Any:
    """Data that is kept in `rows` and only named in a chart."""
    name = f"rows{len(rows)}"
    rows[name] = values
    return alt.NamedData(name=name)


def _line(alt: Any, figure: Figure, at: int, rows: dict[str, Rows], *, live: bool) -> Any:
    """The panels of one line, side by side, with the vertical axis at the left."""
    panels, width = figure.layout.lines[at], figure.layout.panel_width
    titles = ["\n".join(figure.layout.heading(panel)) for panel in panels]
    keys = pl.DataFrame(
        {"logger": [each.logger for each in panels], "sparsity": [each.sparsity for each in panels], "panel": titles}
    )
    marks = figure.marks.join(keys, on=["logger", "sparsity"], how="inner", maintain_order="left")
    heading = alt.Header(
        title=None, labelExpr="split(datum.label, '\\n')", labelFontSize=FONT, labelPadding=4, labelLineHeight=FONT + 2
    )
    layers = _layers(alt, figure, marks, numbers=figure.layout.is_open_below(at), live=live)
    return (
        alt.layer(*layers, width=width, height=figure.layout.panel_height)
        .facet(column=alt.Column("panel:N", sort=titles, header=heading), data=_named(alt, rows, _drawn(marks)))
        .properties(spacing=SPACING, bounds="flush")  # numbers of an axis that reach out do not move the next panel
    )


def _drawn(marks: pl.DataFrame) -> Rows:
    """What is drawn of each row, and as what."""
    sized, defined = pl.col("size").is_not_null(), pl.col("state") != "undefined"
    interval = pl.col("bottom").is_not_null()
    kind = pl.when(sized).then(pl.lit("point")).otherwise(pl.lit("rule"))
    reach = pl.when(pl.col("bar")).then(pl.lit("bar")).when(sized).then(pl.lit("area")).otherwise(pl.lit("strip"))
    return marks.select(
        "panel", "sampler", "size", "at", "bottom", "top", "line", "band",
        said=_said(),
        kind=pl.when(defined).then(kind).otherwise(pl.concat_str(pl.lit("undefined "), kind)),
        reach=pl.when(interval).then(reach),
    ).to_dicts()  # fmt: skip


def _said() -> pl.Expr:
    """What a mark says of itself to readers who cannot see it."""

    def number(name: str) -> pl.Expr:
        return pl.col(name).round_sig_figs(6).cast(pl.String)

    size = pl.when(pl.col("size").is_null()).then(pl.lit("")).otherwise(pl.format(", {} negatives", pl.col("size")))
    value = pl.when(pl.col("value").is_null()).then(pl.lit("undefined")).otherwise(number("value"))
    interval = pl.format(" ({} to {})", number("low"), number("high"))
    interval = pl.when(pl.col("bottom").is_null()).then(pl.lit("")).otherwise(interval)
    return pl.format("{}; {}{}: {}{}", pl.col("panel").str.replace_all("\n", " "), "sampler", size, value, interval)


def _layers(alt: Any, figure: Figure, marks: pl.DataFrame, *, numbers: bool, live: bool) -> list[Any]:
    """Intervals at the back, then lines, then points and crosses; what a line of panels lacks is left out."""
    x, y = _across(alt, figure, numbers=numbers), _up(alt, figure)
    at, low, high = y("at"), y("bottom"), alt.Y2("top:Q")
    colour = alt.Color("sampler:N", scale=_scale(alt, figure, "colour"), legend=None)
    shape = alt.Shape("sampler:N", scale=_scale(alt, figure, "shape"), legend=None)
    dash = alt.StrokeDash("sampler:N", scale=_scale(alt, figure, "dash"), legend=None)
    said = alt.Description("said:N")
    edge = alt.value(figure.layout.panel_width - MARGIN)
    present = {(field, row[field]) for row in _drawn(marks) for field in ("kind", "reach")}

    def of(field: str, value: str) -> Any:
        chosen = " && indexof(shown, datum.sampler) >= 0" if live else ""
        made = alt.Chart().transform_filter(f"datum.{field} == '{value}'{chosen}")
        return made.encode(tooltip=alt.Tooltip("said:N", title="")) if live and field == "kind" else made

    def crosses(value: str) -> Any:
        return of("kind", value).mark_point(shape=CROSS, size=30, strokeWidth=1.5, opacity=1)

    layers = {
        ("reach", "strip"): of("reach", "strip").mark_rect(opacity=0.12, aria=False).encode(
            y=low, y2=high, color=colour),
        ("reach", "area"): of("reach", "area").mark_area(opacity=0.16, aria=False).encode(
            x=x, y=low, y2=high, color=colour, detail="band:N"),
        ("reach", "bar"): of("reach", "bar").mark_rule(opacity=0.6, aria=False).encode(
            x=x, y=low, y2=high, color=colour),
        ("kind", "rule"): of("kind", "rule").mark_rule(strokeWidth=1.4).encode(
            y=at, color=colour, strokeDash=dash, description=said),
        ("kind", "point"): alt.layer(
            of("kind", "point").mark_line(strokeWidth=1.3, aria=False).encode(
                x=x, y=at, color=colour, detail="line:N"),
            of("kind", "point").mark_point(size=20, filled=True, opacity=1).encode(
                x=x, y=at, color=colour, shape=shape, description=said),
        ),
        ("kind", "undefined point"): crosses("undefined point").encode(x=x, y=at, color=colour, description=said),
        ("kind", "undefined rule"): crosses("undefined rule").encode(x=edge, y=at, color=colour, description=said),
    }  # fmt: skip
    return [layer for key, layer in layers.items() if key in present]


def _across(alt: Any, figure: Figure, *, numbers: bool) -> Any:
    """The axis of sizes; a study without sizes has none."""
    if not figure.sizes:
        return alt.X("size:Q", axis=None)
    first, last = figure.sizes[0], figure.sizes[-1]
    domain = [first, last] if first < last else [first / 2, last * 2]
    axis = alt.Axis(values=list(figure.size_ticks), format="d", title=None, labels=numbers, ticks=numbers,
                    labelFlush=True)  # fmt: skip
    return alt.X("size:Q", scale=alt.Scale(type="log", domain=domain, nice=False, padding=MARGIN), axis=axis)


def _up(alt: Any, figure: Figure) -> Any:
    """The axis of values, for any of the fields that are drawn along it."""
    axis = figure.axis
    kind = {"type": "log"} if axis.log else {"type": "linear", "zero": False}
    scale = alt.Scale(domain=[axis.low, axis.high], nice=False, **kind)
    zero = axis.low if axis.zero is not None else -10.0
    text = f"abs(datum.value - {zero!r}) < {abs(zero) * 1e-6!r} ? '0' : format(datum.value, '~r')"
    shown = alt.Axis(values=list(axis.ticks), labelExpr=text, title=list(figure.vertical))

    def of(field: str) -> Any:
        return alt.Y(f"{field}:Q", scale=scale, axis=shown)

    return of


def _scale(alt: Any, figure: Figure, what: str) -> Any:
    values = [getattr(style, what) for style in figure.styles.values()]
    return alt.Scale(domain=list(figure.styles), range=[list(v) if isinstance(v, tuple) else v for v in values])


def _key(alt: Any, figure: Figure, rows: dict[str, Rows]) -> Any:
    """Every sampler with its mark and name, in lines across the figure."""
    width, left, line = figure.layout.width, 0.0, 0
    keys: Rows = []
    for name in figure.styles:
        room = KEY_LINE + 6 + text_width(name)
        if left + room > width and left > 0:
            left, line = 0.0, line + 1
        keys.append({"sampler": name, "left": left, "middle": left + KEY_LINE / 2, "right": left + KEY_LINE,
                     "text": left + KEY_LINE + 6, "line": line + 0.5})  # fmt: skip
        left += room + KEY_GAP
    sized = [key for key in keys if not figure.styles[key["sampler"]].dash]
    sizeless = [key for key in keys if figure.styles[key["sampler"]].dash]
    x = {
        name: alt.X(f"{name}:Q", scale=alt.Scale(domain=[0, width], nice=False, zero=False), axis=None)
        for name in ("left", "middle", "text")
    }
    y = alt.Y("line:Q", scale=alt.Scale(domain=[line + 1, 0], nice=False, zero=False), axis=None)
    colour = alt.Color("sampler:N", scale=_scale(alt, figure, "colour"), legend=None)
    shape = alt.Shape("sampler:N", scale=_scale(alt, figure, "shape"), legend=None)
    dash = alt.StrokeDash("sampler:N", scale=_scale(alt, figure, "dash"), legend=None)

    def lines(part: Rows) -> Any:
        return alt.Chart(_named(alt, rows, part)).mark_rule(strokeWidth=1.6, aria=False)

    layers = [
        lines(sizeless).encode(x=x["left"], x2="right:Q", y=y, color=colour, strokeDash=dash),
        lines(sized).encode(x=x["left"], x2="right:Q", y=y, color=colour),
        alt.Chart(_named(alt, rows, sized)).mark_point(size=36, filled=True, opacity=1, aria=False).encode(
            x=x["middle"], y=y, color=colour, shape=shape),
        alt.Chart(_named(alt, rows, keys)).mark_text(align="left", baseline="middle", fontSize=FONT, aria=False).encode(
            x=x["text"], y=y, text="sampler:N"),
    ]  # fmt: skip
    return alt.layer(*layers, width=width, height=(line + 1) * KEY_HEIGHT, view=alt.ViewConfig(stroke=None))


def _caption(alt: Any, text: str, width: int, rows: dict[str, Rows]) -> Any:
    """The title of the horizontal axes, once for all panels."""
    return (
        alt.Chart(_named(alt, rows, [{"text": text}]), width=width, height=FONT + 4, view=alt.ViewConfig(stroke=None))
        .mark_text(fontSize=FONT, aria=False)
        .encode(text="text:N", x=alt.value(width / 2), y=alt.value(FONT / 2))
    )


FIGURE_WHO = "drawing figures"


def described(
    folder: str | Path,
    *,
    metric: str | None = None,
    tau: Tau = Tau.LEFT_OUT,
    loggers: Sequence[str] | None = None,
    sparsities: Sequence[float] | None = None,
    samplers: Sequence[str] | None = None,
) -> dict[StudyQuestion, Figure]:
    """What each figure of a finished study shows, before it is drawn; needs no other library."""
    every = Finished.read(Path(folder))
    asked = every.metric(metric)
    part = every.only("logger", loggers).only("sparsity", sparsities).only("sampler", samplers)
    return {each: figure(part, each, metric=asked, tau=Tau(tau), every=every) for each in StudyQuestion}


def charts(figures: dict[StudyQuestion, Figure], *, live: bool = False) -> dict[StudyQuestion, Any]:
    """The figures as altair charts, to change or to combine; `live` ones are for a page."""
    altair(FIGURE_WHO)
    return {question: chart(each, live=live) for question, each in figures.items()}


def draw(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    form: PictureFormat = PictureFormat.SVG,
    metric: str | None = None,
    tau: Tau = Tau.LEFT_OUT,
    loggers: Sequence[str] | None = None,
    sparsities: Sequence[float] | None = None,
    samplers: Sequence[str] | None = None,
    force: bool = False,
) -> dict[StudyQuestion, Path]:
    """Write the four figures of a finished study into `out` (`figures` in its folder) and tell where they are.

    Panels are loggers x sparsities; in each, resolution (share of pairs of models that tie), fidelity, robustness or
    predictive power (Kendall's τ-b) of one metric against the number of sampled negatives, a line with its interval for
    each sampler. `loggers`, `sparsities` and `samplers` choose a part; a sampler looks the same in every part. Nothing
    is written unless all four could be drawn, into a new folder; `force` replaces that of other figures. The same study
    gives the same bytes (SVG, PNG).
    """
    altair(FIGURE_WHO)
    form = PictureFormat(form)
    figures = described(
        folder, metric=metric, tau=tau, loggers=loggers, sparsities=sparsities, samplers=samplers
    )  # fmt: skip
    place = Path(folder) / "figures" if out is None else Path(out)
    check_place(place, kind=FOLDER, force=force, inputs=[Path(folder)])
    made = {question: picture(each, form, who=FIGURE_WHO) for question, each in charts(figures).items()}
    names = {question: f"{question.value}.{form.value}" for question in made}
    with whole_folder(place, kind=FOLDER, force=force) as part:
        for question, name in names.items():
            with whole_file(part / name) as temporary:
                temporary.write_bytes(made[question])
    return {question: place / name for question, name in names.items()}
