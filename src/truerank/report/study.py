"""A finished reliability study as figures and a page: panels of policies and sparsities, a line a sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError
from truerank.io.atomic_write import FolderKind, check_place, whole_file, whole_folder
from truerank.reliability.studied import FinishedStudy
from truerank.report.charts import (
    COLOURS,
    CONFIG,
    SHAPES,
    PictureFormat,
    PlotPanel,
    Rows,
    alt,
    altair,
    chart_of,
    lines_of,
    picture,
    tooltips,
)
from truerank.report.page import Page, Section, render
from truerank.report.view import DataTable

SCENARIO = ("logger", "sparsity", "sampler", "size")
WHO = "drawing figures"
MOST_COLUMNS = 8  # as in the published figures
WIDTH, LEAST_PANEL, WIDEST_PANEL, SPACING = 1000, 118, 380, 8
# samplers without sizes are grey lines; dashes say the same where there is no colour
GREYS, DASHES = ("#555555", "#757575", "#8c8c8c"), ((7, 3), (2, 2), (8, 2, 2, 2))
RESOLUTION = "resolution"
# each question (Q1 to Q4), named as in the results: title, order that is compared with, words of the answer
QUESTIONS = {
    RESOLUTION: (
        "Resolution (Q1): how often do two models tie?", "",
        "Fewest ties of two models", "most", "a share of",
    ),
    "fidelity": (
        "Fidelity (Q2): are models ordered as with all items of the same log?", "that of Full on the same log",
        "Closest to the order with all items of the same log", "furthest", "τ-b",
    ),
    "robustness": (
        "Robustness (Q3): does the same sampler order models alike when nothing is hidden?",
        "that of the same sampler with nothing hidden", "Closest to the order with nothing hidden", "furthest", "τ-b",
    ),
    "predictive_power": (
        "Predictive power (Q4): are models ordered as in truth?", "that of Full with nothing hidden, the truth",
        "Closest to the true order", "furthest", "τ-b",
    ),
}  # fmt: skip
FOLDER = FolderKind("set of figures", tuple(f"{question}.*" for question in QUESTIONS))
# which τ-b: its mean over users, those without one left out or as 0, or that of the models' means
LEFT_OUT, ZERO, OF_MEANS = "left-out", "zero", "of-means"
COLUMNS = {
    LEFT_OUT: ("value", "low", "high"),
    ZERO: ("value_undefined_as_0", "low_undefined_as_0", "high_undefined_as_0"),
    OF_MEANS: ("tau_of_means", "tau_of_means_low", "tau_of_means_high"),
}
Styles = Mapping[str, tuple[str, str, Sequence[int]]]


def part_of(study: FinishedStudy, **chosen: Sequence[Any] | None) -> FinishedStudy:
    """The part with these loggers, sparsities or samplers; one that the study does not have is refused."""
    results = study.results
    for column, values in chosen.items():
        if values is not None:
            present = results[column].unique(maintain_order=True).to_list()
            if not values or not {*values} <= {*present}:
                asked, texts = (", ".join(map(_text, part)) for part in (values, present))
                raise InputError(f"{study.source}: the {column} {asked or 'none'} is not in the study; it has {texts}.")
            results = results.filter(pl.col(column).is_in(values))
    return replace(study, results=results)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def tidy(results: pl.DataFrame, question: str, *, metric: str, tau: str = LEFT_OUT) -> pl.DataFrame:
    """The rows of one question and metric: scenario, value, low, high (null where not defined), undefined, users.

    Ties need no τ: for resolution the columns are always those of the share of ties.
    """
    columns = zip(COLUMNS[LEFT_OUT], COLUMNS[LEFT_OUT if question == RESOLUTION else tau], strict=True)
    nothing = pl.lit(None, dtype=pl.Float64)
    return results.filter(question=question, metric=metric).select(
        *SCENARIO,
        *((pl.col(name).fill_nan(None) if name in results.columns else nothing).alias(title)
          for title, name in columns),
        "undefined", "users", "repetitions",
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- figures


def figures(
    study: FinishedStudy, *, metric: str, tau: str = LEFT_OUT, every: FinishedStudy | None = None
) -> dict[str, PlotPanel]:
    """The figure of each question; styles are those of the whole study (`every`), whatever part is drawn."""
    sized = (every or study).results.group_by("sampler", maintain_order=True).agg(pl.col("size").is_not_null().any())
    styles = _styles(dict(sized.rows()))
    shown = {name: styles[name] for name in study.results["sampler"].unique(maintain_order=True)}
    return {question: _figure(study, question, shown, metric=metric, tau=tau) for question in QUESTIONS}


def _styles(sized: Mapping[str, bool]) -> Styles:
    """Colour, shape and dash of each sampler (has it sizes?).

    >>> styles = _styles({"Full": False, "Random": True})
    >>> styles["Random"], styles["Full"][2]
    (('#0072B2', 'circle', (1, 0)), (7, 3))
    """
    names = [name for name, has_sizes in sized.items() if has_sizes]
    lines = [name for name in sized if name not in names]
    return {name: (COLOURS[n % 6], SHAPES[(n + n // 6) % 6], (1, 0)) for n, name in enumerate(names)} | {
        name: (GREYS[n % 3], "circle", DASHES[(n + n // 3) % 3]) for n, name in enumerate(lines)
    }


def _figure(study: FinishedStudy, question: str, styles: Styles, *, metric: str, tau: str) -> PlotPanel:
    frame = tidy(study.results, question, metric=metric, tau=tau)
    rows: Rows = [{**row, "panel": f"{row['logger']}, {100 * row['sparsity']:g} % hidden"} for row in frame.to_dicts()]
    colour, shape, dash = (
        kind("sampler:N", scale={"domain": list(styles), "range": values})
        for kind, values in zip((alt.Color, alt.Shape, alt.StrokeDash), zip(*styles.values(), strict=True), strict=True)
    )
    chosen = alt.selection_point(name="chosen", fields=["sampler"], bind="legend")
    x, axis = _size_axis(frame["size"].drop_nulls().to_list()), _value_axis(frame, question, tau)
    tips = tooltips("panel:N", "sampler:N", "size:Q", "value:Q", "low:Q", "high:Q")

    def layer(mark: str, field: str, style: dict[str, Any], *, sized: bool = True, **encodings: Any) -> Any:
        """A mark of samplers with sizes, or without; of those that are not chosen nothing is seen."""
        seen = alt.condition(chosen, alt.value(style.pop("opacity", 1)), alt.value(0))
        encodings |= {"x": x} if sized else {}
        base = getattr(alt.Chart(), f"mark_{mark}")(**style)
        filtered = base.transform_filter(f"datum.size {'!=' if sized else '=='} null")
        return filtered.encode(color=colour, opacity=seen, y=axis(field), **encodings)

    points = layer("point", "value", {"size": 20, "filled": True}, shape=shape, tooltip=tips)
    layers = [
        layer("rect", "low", {"opacity": 0.12}, sized=False, y2="high:Q"),
        layer("area", "low", {"opacity": 0.16}, y2="high:Q"),
        layer("rule", "value", {"strokeWidth": 1.4}, sized=False, strokeDash=dash, tooltip=tips),
        layer("line", "value", {"strokeWidth": 1.3}),
        points.add_params(chosen),
    ]
    columns = min(MOST_COLUMNS, study.results["sparsity"].n_unique())
    width = min(WIDEST_PANEL, max(LEAST_PANEL, (WIDTH + SPACING) // columns - SPACING))
    panels = alt.Facet(
        "panel:N",
        sort=list(dict.fromkeys(row["panel"] for row in rows)),
        header={"title": None, "labelExpr": "split(datum.label, ', ')"},
    )
    chart = alt.layer(*layers, width=width, height=min(240, max(130, width * 2 // 3)))
    chart = chart.facet(panels, columns=columns, spacing=SPACING, data=chart_of(rows).data)
    return PlotPanel(QUESTIONS[question][0], _words(study, frame, question, metric=metric, tau=tau), chart)


def _size_axis(sizes: Sequence[int]) -> Any:
    """A log axis of sizes, with powers of ten or, where there are too few, all sizes."""
    tens = [n for n in dict.fromkeys(sizes) if 10 ** round(math.log10(n)) == n]
    axis = {"values": tens if len(tens) > 1 else sorted(set(sizes)), "format": "d", "grid": False}
    return alt.X("size:Q", title="sampled negatives", scale={"type": "log", "nice": False, "padding": 7}, axis=axis)


def _value_axis(frame: pl.DataFrame, question: str, tau: str) -> Any:
    """The axis of shares, logarithmic down to the smallest and with 0 below it; or of tau, up to 1."""
    values = pl.concat([frame["value"], frame["low"]]).drop_nulls()
    if question != RESOLUTION:
        title = ["Kendall's τ-b", "of models' means"] if tau == OF_MEANS else ["Kendall's τ-b,", "mean over users"]
        least = math.floor(min([0.0, *values]) * 5 + 1e-9) / 5
        return lambda field: alt.Y(f"{field}:Q", title=title, scale={"domain": [least, 1.0], "nice": False})
    least = min(values.filter(values > 0), default=0.1)
    ticks = [0.0, *(10.0**power for power in range(math.floor(math.log10(least)), 1))]
    scale = {"type": "symlog", "constant": least, "domain": [0.0, 1.0]}
    axis = {"values": ticks, "format": "~r"}
    return lambda field: alt.Y(f"{field}:Q", title=["share of pairs of", "models that tie"], scale=scale, axis=axis)


def _words(study: FinishedStudy, frame: pl.DataFrame, question: str, *, metric: str, tau: str) -> str:
    """What is drawn, of how many, how certain it is, and what is undefined."""
    counts, n = frame["users"].to_list(), max(frame["repetitions"])
    users = f"{' to '.join(f'{count:,}' for count in dict.fromkeys((min(counts), max(counts))))} users"
    times, models = f"{n:,} repetitions" if n > 1 else "one repetition", f"{len(study.settings['scores'])} models"
    undefined, means = frame["value"].null_count(), tau == OF_MEANS
    value, over = (f"mean {metric} ({users})", times) if means else (f"a user's {metric}", f"{users}, {times}")
    share = 0 if means or question == RESOLUTION else max(frame["undefined"].fill_nan(0.0))
    how = "count as 0" if tau == ZERO else "are excluded"
    texts = {
        f"Share of the pairs of {models} with exactly equal {metric}: mean over {users}, {times} (log axis).":
            question == RESOLUTION,
        f"Agreement of the order of {models} by {value} with {QUESTIONS[question][1]}: mean tau-b over {over}.":
            question != RESOLUTION,
        f"Users whose models all tie have no tau-b; they {how} (at most {100 * share:.2g} % of users).": share > 0,
        f"Bands: {100 * study.settings['level']:g} % intervals, {study.settings['resamples']:,} resamples.":
            frame["low"].null_count() < len(frame),
        "Dashed lines: samplers without size.": frame["size"].null_count(),
        f"{undefined:,} of {len(frame):,} values are not defined and break the line.": undefined,
    }  # fmt: skip
    return " ".join(text for text, applies in texts.items() if applies)


def draw(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    form: PictureFormat = PictureFormat.SVG,
    force: bool = False,
    metric: str | None = None,
    tau: str = LEFT_OUT,
    loggers: Sequence[str] | None = None,
    sparsities: Sequence[float] | None = None,
    samplers: Sequence[str] | None = None,
) -> dict[str, Path]:
    """Write the four figures of a finished study into `out` (`figures` in its folder) and return where they are.

    Nothing is written unless all four could be drawn, into a new folder; `force` replaces that of other figures. The
    same study gives the same bytes (SVG, PNG).
    """
    altair(WHO)
    every = FinishedStudy.read(folder)
    part = part_of(every, logger=loggers, sparsity=sparsities, sampler=samplers)
    panels = figures(part, metric=every.metric(metric), tau=tau, every=every)
    place = Path(folder) / "figures" if out is None else Path(out)
    check_place(place, kind=FOLDER, force=force, inputs=[Path(folder)])
    pictures = {f"{question}.{form}": picture(_titled(panel), form, who=WHO) for question, panel in panels.items()}
    with whole_folder(place, kind=FOLDER, force=force) as new:
        for name, content in pictures.items():
            with whole_file(new / name) as temporary:
                temporary.write_bytes(content)
    return {question: place / name for question, name in zip(panels, pictures, strict=True)}


def _titled(panel: PlotPanel) -> Any:
    """A figure that stands alone: its title and what it shows above it."""
    title = alt.Title(panel.title, subtitle=lines_of(panel.sentence, WIDTH))
    return panel.chart.properties(title=title, config=alt.Config(**CONFIG, background="white", padding=12))


# ---------------------------------------------------------------------------------------------------------------- page


def study_report(folder: Path, *, metric: str | None = None) -> bytes:
    """The page of the study in a folder: the four figures of one metric, and their numbers."""
    study = FinishedStudy.read(folder)
    metric = study.metric(metric)
    frames = {question: tidy(study.results, question, metric=metric) for question in QUESTIONS}
    others = ", ".join(name for name in study.metrics if name != metric)
    numbers = pl.concat([frame.with_columns(question=pl.lit(question)) for question, frame in frames.items()])
    table = numbers.select("question", *SCENARIO, "value", "low", "high",
                           pl.col("undefined").alias("users left out, share"), "users")  # fmt: skip
    settings = tuple((name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
                     for name, value in study.settings.items() if not isinstance(value, dict))  # fmt: skip
    return render(Page(
        title=f"truerank report: reliability study, {metric}",
        question=f"How far can {metric} over sampled candidates be trusted?",
        claims=tuple(_claim(question, frame) for question, frame in frames.items()),
        sections=(
            Section(name="figures", title="Figures", panels=tuple(figures(study, metric=metric).values()), wide=True,
                    texts=("Click a name in a legend to see one sampler alone.",
                           *([f"The study also has {others}: `metric` chooses."] if others else []))),
            Section(name="numbers", title="Numbers", tables=(DataTable("All values with their intervals", table),)),
            Section(name="provenance", title="Settings of the study", facts=settings),
        ),
        facts=(("models", f"{len(study.settings['scores']):,}"), ("scenarios", f"{len(frames[RESOLUTION]):,}")),
    ))  # fmt: skip


def _claim(question: str, frame: pl.DataFrame) -> tuple[str, str, str]:
    """The best and the worst of all scenarios in which something can differ."""
    *_, best, worst, quantity = QUESTIONS[question]
    high = question != RESOLUTION
    defined = frame.filter(pl.col("value").is_not_null() & (pl.col("value") < 1 if high else True))
    badge = question.replace("_", " ")
    if defined.is_empty():
        return "insufficient", badge, "No scenario has a value below 1, so nothing can be compared."
    rows = defined.sort("value", descending=high, maintain_order=True).rows(named=True)
    first, last = (
        f"{row['sampler']}{f' of {n:,}' if (n := row['size']) is not None else ''} on a {row['logger']} log with "
        f"{100 * row['sparsity']:g} % hidden, {quantity} {row['value']:.3g}"
        for row in (rows[0], rows[-1])
    )
    without = " (scenarios that are 1 by definition apart)" if high and len(defined) < len(frame) else ""
    return "shown", badge, f"{best}{without}: {first}; {worst}: {last}."
