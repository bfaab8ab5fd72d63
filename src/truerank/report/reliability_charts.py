"""The figures of a reliability study as altair charts: lines of panels, with the samplers named above them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from truerank.io.atomic_write import FolderKind, check_place, whole_file, whole_folder
from truerank.report.charts import (
    FONT,
    TYPEFACE,
    PictureFormat,
    Rows,
    alt,
    altair,
    picture,
    text_width,
    wrapped,
)
from truerank.report.reliability_frames import (
    SPACING,
    Axis,
    Finished,
    PanelLayout,
    StudyQuestion,
    Style,
    Tau,
    placed,
    styles,
    tau_axis,
    tidy,
    tie_axis,
)

TITLE_FONT = 16
MARGIN = 7  # pixels between the outermost sizes and the frame
KEY_HEIGHT, KEY_LINE, KEY_GAP = 20, 26, 22
CROSS = "M-1,-1L1,1M-1,1L1,-1"
HORIZONTAL = "number of sampled negatives per user (log axis)"
TITLES = {
    StudyQuestion.RESOLUTION: "Resolution (Q1): how often do two models tie?",
    StudyQuestion.FIDELITY: "Fidelity (Q2): are models ordered as with all items of the same log?",
    StudyQuestion.ROBUSTNESS: "Robustness (Q3): does the same sampler order models alike when nothing is hidden?",
    StudyQuestion.PREDICTIVE_POWER: "Predictive power (Q4): are models ordered as in truth?",
}
REFERENCES = {
    StudyQuestion.FIDELITY: "that of Full on the same log",
    StudyQuestion.ROBUSTNESS: "that of the same sampler with nothing hidden",
    StudyQuestion.PREDICTIVE_POWER: "that of Full with nothing hidden, the truth",
}
WHO = "drawing figures"
FOLDER = FolderKind("set of figures", tuple(f"{question.value}.*" for question in StudyQuestion))


@dataclass(frozen=True, slots=True)
class Figure:
    """One question in all panels: all that is drawn, and nothing about how."""

    question: StudyQuestion
    marks: pl.DataFrame
    axis: Axis
    layout: PanelLayout
    styles: Mapping[str, Style]  # of the samplers that are drawn
    title: tuple[str, ...]
    subtitle: tuple[str, ...]
    vertical: tuple[str, str]  # title of the axis


def figure(
    study: Finished, question: StudyQuestion, *, metric: str, tau: Tau = Tau.LEFT_OUT, every: Finished | None = None
) -> Figure:
    """The figure of one question; `every` is the whole study, so that styles do not depend on the part drawn."""
    frame = tidy(study.results, question, metric=metric, tau=tau)
    ties = question is StudyQuestion.RESOLUTION
    axis = tie_axis(frame) if ties else tau_axis(frame)
    marks = placed(frame, axis)
    layout = PanelLayout.arranged(study.names("logger"), study.names("sparsity"))
    rows = (every or study).results.group_by("sampler", maintain_order=True)
    style = styles(dict(rows.agg(pl.col("size").is_not_null().any()).rows()))
    vertical = ("Kendall's τ-b", "of models' means") if tau is Tau.OF_MEANS else ("Kendall's τ-b,", "mean over users")
    return Figure(
        question,
        marks,
        axis,
        layout,
        {name: style[name] for name in study.names("sampler")},
        tuple(wrapped(TITLES[question], layout.width, font=TITLE_FONT)),
        tuple(
            line
            for text in _words(study, question, marks, axis, metric=metric, tau=tau)
            for line in wrapped(text, layout.width)
        ),
        ("share of pairs of", "models that tie") if ties else vertical,
    )


def _words(
    study: Finished, question: StudyQuestion, marks: pl.DataFrame, axis: Axis, *, metric: str, tau: Tau
) -> list[str]:
    """What is drawn, of whom, how certain it is, and what the marks at the bottom mean."""
    ties, counts, n = question is StudyQuestion.RESOLUTION, marks["users"].to_list(), max(marks["repetitions"])
    users = f"{' to '.join(f'{count:,}' for count in dict.fromkeys((min(counts), max(counts))))} users"
    times, models = f"{n:,} repetitions" if n > 1 else "one repetition", f"{study.n_models} models"
    if ties:
        texts = [f"Share of the pairs of {models} with exactly equal {metric}: mean over {users}, {times} (log axis)."]
    else:
        means = tau is Tau.OF_MEANS
        value = f"mean {metric} ({users})" if means else f"a user's {metric}"
        texts = [f"Agreement of the order of {models} by {value} with {REFERENCES[question]}: Kendall's τ-b, mean over "
                 f"{times if means else f'{users}, {times}'}."]  # fmt: skip
        share = max(marks["undefined"].fill_nan(0.0))
        if not means and share > 0:
            how = "count as 0" if tau is Tau.ZERO else "are left out"
            texts.append(
                f"Users whose models all tie have no τ-b; they {how} (at most {100 * share:.2g} % of users in a "
                "scenario)."
            )
    resampled = "users and repetitions" if n > 1 else "users"
    bands = f"Bands: {100 * study.level:g} % intervals, {study.resamples:,} resamples of {resampled}."
    dashed = " Dashed lines: samplers without size." if marks["size"].null_count() else ""
    texts.append(("No intervals." if marks["bottom"].is_null().all() else bands) + dashed)
    zeros, undefined = (int((marks["state"] == state).sum()) for state in ("zero", "undefined"))
    bottom = []
    if axis.zero is not None:
        bottom.append(f"The lowest line of the axis is 0: {zeros:,} of {len(marks):,} tie rates are 0.")
    if undefined:
        why = "" if ties else ": all models tie"
        bottom.append(f"× at the bottom: {undefined:,} of {len(marks):,} values are not defined{why}.")
    return [*texts, *([" ".join(bottom)] if bottom else [])]


# ------------------------------------------------------------------------------------------------------------- drawing


def chart(figure: Figure, *, live: bool = False) -> Any:
    """All panels of a figure; the same scales in each, so that they can be compared by eye.

    Each row of `figure.marks` is one mark: a point, a dashed line across the panel (no size), or a cross (undefined).
    A `live` one is for a page that has title and key of its own, and gives the parameter `shown`: the samplers to draw.
    """
    layout, rows, width = figure.layout, dict[str, Rows](), figure.layout.width
    parts = [_line(figure, line, rows, live=live) for line in range(len(layout.lines))]
    if figure.marks["size"].is_not_null().any():  # the title of the horizontal axes, once for all panels
        below = alt.Chart(_named(rows, [{"text": HORIZONTAL}]), width=width, height=FONT + 4, view=_no_frame())
        text = below.mark_text(fontSize=FONT, aria=False)
        parts.append(text.encode(text="text:N", x=alt.value(width / 2), y=alt.value(FONT / 2)))
    if live:
        whole = alt.vconcat(*parts, spacing=SPACING)
    else:
        title = alt.Title(
            list(figure.title), subtitle=list(figure.subtitle), anchor="start", frame="group", fontSize=TITLE_FONT,
            subtitleFontSize=FONT, subtitleColor="#333333", subtitlePadding=5, subtitleLineHeight=FONT + 3, offset=8,
        )  # fmt: skip
        axes = alt.AxisConfig(
            labelFontSize=FONT - 1, titleFontSize=FONT, titleFontWeight="normal", gridColor="#e8e8e8",
            tickColor="#bbbbbb", domainColor="#bbbbbb", labelOverlap=False,
        )  # fmt: skip
        config = alt.Config(font=TYPEFACE, padding=10, view=alt.ViewConfig(stroke="#bbbbbb"), axis=axes)
        whole = alt.vconcat(_key(figure, rows), *parts, spacing=SPACING, title=title, config=config)
    whole.datasets = rows  # last: altair copies all that a chart holds at every step
    return whole


def _no_frame() -> Any:
    return alt.ViewConfig(stroke=None)


def _named(rows: dict[str, Rows], values: Rows) -> Any:
    """Data that is kept in `rows` and only named in a chart."""
    name = f"rows{len(rows)}"
    rows[name] = values
    return alt.NamedData(name=name)


def _line(figure: Figure, line: int, rows: dict[str, Rows], *, live: bool) -> Any:
    """The panels of one line, side by side, with the vertical axis at the left."""
    layout, panels = figure.layout, figure.layout.lines[line]
    titles = ["\n".join(layout.heading(panel)) for panel in panels]
    keys = pl.DataFrame([(*panel, title) for panel, title in zip(panels, titles, strict=True)],
                        schema=["logger", "sparsity", "panel"], orient="row")  # fmt: skip
    drawn = _drawn(figure.marks.join(keys, on=["logger", "sparsity"], how="inner", maintain_order="left"))
    heading = alt.Header(
        title=None, labelExpr="split(datum.label, '\\n')", labelFontSize=FONT, labelPadding=4, labelLineHeight=FONT + 2
    )
    layers = _layers(figure, drawn, numbers=layout.is_open_below(line), live=live)
    return (
        alt.layer(*layers, width=layout.panel_width, height=layout.panel_height)
        .facet(column=alt.Column("panel:N", sort=titles, header=heading), data=_named(rows, drawn))
        .properties(spacing=SPACING, bounds="flush")  # numbers of an axis that reach out do not move the next panel
    )


def _drawn(marks: pl.DataFrame) -> Rows:
    """What is drawn of each row, as what, and what the mark tells readers who cannot see it."""
    sized = pl.col("size").is_not_null()
    value, low, high = (pl.col(name).round_sig_figs(6).cast(pl.String) for name in ("value", "low", "high"))
    interval = pl.when(pl.col("bottom").is_not_null()).then(pl.format(" ({} to {})", low, high)).otherwise(pl.lit(""))
    size = pl.when(sized).then(pl.format(", {} negatives", "size")).otherwise(pl.lit(""))
    panel = pl.col("panel").str.replace_all("\n", " ")
    kind = pl.when(sized).then(pl.lit("point")).otherwise(pl.lit("rule"))
    reach = pl.when("bar").then(pl.lit("bar")).when(sized).then(pl.lit("area")).otherwise(pl.lit("strip"))
    return marks.select(
        "panel", "sampler", "size", "at", "bottom", "top", "line", "band",
        said=pl.format("{}; {}{}: {}{}", panel, "sampler", size, value.fill_null("undefined"), interval),
        kind=pl.when(pl.col("state") == "undefined").then(pl.concat_str(pl.lit("undefined "), kind)).otherwise(kind),
        reach=pl.when(pl.col("bottom").is_not_null()).then(reach),
    ).to_dicts()  # fmt: skip


def _layers(figure: Figure, drawn: Rows, *, numbers: bool, live: bool) -> list[Any]:
    """Intervals at the back, then lines, then points and crosses; what a line of panels lacks is left out."""
    x, style = _sizes(figure, numbers=numbers), _encodings(figure)
    colour, shape, dash = style["color"], style["shape"], style["strokeDash"]
    value, bounds = {"y": _values(figure, "at")}, {"y": _values(figure, "bottom"), "y2": alt.Y2("top:Q")}
    edge = alt.value(figure.layout.panel_width - MARGIN)

    def marks(field: str, mark: str) -> Any:
        chosen = " && indexof(shown, datum.sampler) >= 0" if live else ""
        base = alt.Chart().transform_filter(f"datum.{field} == '{mark}'{chosen}").encode(color=colour)
        return base.encode(tooltip=alt.Tooltip("said:N", title="")) if live and field == "kind" else base

    def crosses(mark: str, place: Any) -> Any:
        base = marks("kind", mark).mark_point(shape=CROSS, size=30, strokeWidth=1.5, opacity=1)
        return base.encode(x=place, description="said:N", **value)

    point = marks("kind", "point")
    layers = {
        ("reach", "strip"): marks("reach", "strip").mark_rect(opacity=0.12, aria=False).encode(**bounds),
        ("reach", "area"): marks("reach", "area").mark_area(opacity=0.16, aria=False).encode(
            x=x, detail="band:N", **bounds),
        ("reach", "bar"): marks("reach", "bar").mark_rule(opacity=0.6, aria=False).encode(x=x, **bounds),
        ("kind", "rule"): marks("kind", "rule").mark_rule(strokeWidth=1.4).encode(
            strokeDash=dash, description="said:N", **value),
        ("kind", "point"): alt.layer(
            point.mark_line(strokeWidth=1.3, aria=False).encode(x=x, detail="line:N", **value),
            point.mark_point(size=20, filled=True, opacity=1).encode(x=x, shape=shape, description="said:N", **value),
        ),
        ("kind", "undefined point"): crosses("undefined point", x),
        ("kind", "undefined rule"): crosses("undefined rule", edge),
    }  # fmt: skip
    present = {(field, row[field]) for row in drawn for field in ("kind", "reach")}
    return [layer for key, layer in layers.items() if key in present]


def _sizes(figure: Figure, *, numbers: bool) -> Any:
    """The axis of sizes, with powers of ten or, where there are too few, all sizes or the first and the last."""
    sizes = sorted(figure.marks["size"].drop_nulls().unique().to_list())
    if not sizes:
        return alt.X("size:Q", axis=None)
    first, last = sizes[0], sizes[-1]
    tens = [n for n in sizes if 10 ** round(math.log10(n)) == n]
    ticks = tens if len(tens) > 1 else sizes if len(sizes) <= 4 else [first, last]
    domain = [first, last] if first < last else [first / 2, last * 2]
    axis = alt.Axis(values=ticks, format="d", title=None, labels=numbers, ticks=numbers, labelFlush=True)
    return alt.X("size:Q", scale=alt.Scale(type="log", domain=domain, nice=False, padding=MARGIN), axis=axis)


def _values(figure: Figure, field: str) -> Any:
    """The axis of values, for any of the fields that are drawn along it."""
    axis = figure.axis
    kind = {"type": "log"} if axis.log else {"type": "linear", "zero": False}
    zero = axis.low if axis.zero is not None else -10.0
    text = f"abs(datum.value - {zero!r}) < {abs(zero) * 1e-6!r} ? '0' : format(datum.value, '~r')"
    shown = alt.Axis(values=list(axis.ticks), labelExpr=text, title=list(figure.vertical))
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[axis.low, axis.high], nice=False, **kind), axis=shown)


def _encodings(figure: Figure) -> dict[str, Any]:
    """Colour, shape and dash of each sampler."""
    kinds = {"color": alt.Color, "shape": alt.Shape, "strokeDash": alt.StrokeDash}
    columns = zip(*figure.styles.values(), strict=True)
    return {
        name: kind("sampler:N", scale=alt.Scale(domain=list(figure.styles), range=list(column)), legend=None)
        for (name, kind), column in zip(kinds.items(), columns, strict=True)
    }


def _key(figure: Figure, rows: dict[str, Rows]) -> Any:
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
    style = _encodings(figure)
    colour = {"color": style["color"]}

    def marks(part: Rows, field: str) -> Any:
        x = alt.X(f"{field}:Q", scale=alt.Scale(domain=[0, width], nice=False, zero=False), axis=None)
        y = alt.Y("line:Q", scale=alt.Scale(domain=[line + 1, 0], nice=False, zero=False), axis=None)
        return alt.Chart(_named(rows, part)).encode(x=x, y=y)

    rule = {"strokeWidth": 1.6, "aria": False}
    layers = [
        marks(sizeless, "left").mark_rule(**rule).encode(x2="right:Q", strokeDash=style["strokeDash"], **colour),
        marks(sized, "left").mark_rule(**rule).encode(x2="right:Q", **colour),
        marks(sized, "middle").mark_point(size=36, filled=True, opacity=1, aria=False).encode(
            shape=style["shape"], **colour),
        marks(keys, "text").mark_text(align="left", baseline="middle", fontSize=FONT, aria=False).encode(
            text="sampler:N"),
    ]  # fmt: skip
    return alt.layer(*layers, width=width, height=(line + 1) * KEY_HEIGHT, view=_no_frame())


# --------------------------------------------------------------------------------------------------------------- files


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
    name = every.metric(metric)
    part = every.only("logger", loggers).only("sparsity", sparsities).only("sampler", samplers)
    return {question: figure(part, question, metric=name, tau=Tau(tau), every=every) for question in StudyQuestion}


def draw(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    form: PictureFormat = PictureFormat.SVG,
    force: bool = False,
    **part: Any,
) -> dict[StudyQuestion, Path]:
    """Write the four figures of a finished study into `out` (`figures` in its folder) and return where they are.

    Panels are loggers x sparsities; in each, resolution (share of pairs of models that tie), fidelity, robustness or
    predictive power (Kendall's τ-b) of one metric against the number of sampled negatives, a line with its interval for
    each sampler. `part` are options of `described`: metric, tau, and which loggers, sparsities and samplers; a sampler
    looks the same in every part. Nothing is written unless all four could be drawn, into a new folder; `force` replaces
    that of other figures. The same study gives the same bytes (SVG, PNG).
    """
    altair(WHO)
    figures = described(folder, **part)
    place = Path(folder) / "figures" if out is None else Path(out)
    check_place(place, kind=FOLDER, force=force, inputs=[Path(folder)])
    names = {question: f"{question.value}.{PictureFormat(form).value}" for question in figures}
    pictures = {names[question]: picture(chart(drawn), form, who=WHO) for question, drawn in figures.items()}
    with whole_folder(place, kind=FOLDER, force=force) as new:
        for name, content in pictures.items():
            with whole_file(new / name) as temporary:
                temporary.write_bytes(content)
    return {question: place / name for question, name in names.items()}
