"""Pictures of results, each a function of results that gives panels: values, differences, curves, groups.

results --intervals, differences, over_k, ...--> panels --composed--> one chart, or --page--> a report
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from truerank.core.results import OPPOSITE, Results
from truerank.report.charts import (
    BLUE,
    MOST_COLOURS,
    VERDICTS,
    PlotPanel,
    Rows,
    alt,
    chart_of,
    colours_and_shapes,
    dashed_at,
    fields_of,
    has_numbers,
    layered,
    model_styles,
    rows_height,
    rows_of_models,
    rows_of_names,
    tooltips,
)
from truerank.report.frames import clips as clips_frame
from truerank.report.numbers import clip_text, interval, number
from truerank.report.questions import SIGNIFICANT, WORDS, ShownQuestion, questions_of

VALUE = ("model", "value", "low", "high", "units")
PAIR = ("difference", "low", "high", "p_adjusted", "verdict")
POOR_FIT = 0.01  # p below which a position model does not describe the log


def intervals(results: Results) -> list[PlotPanel]:
    """The highest values of each question that has one; of very many models the first twenty and the baseline."""
    unit = f"{results.provenance.unit}s"
    tips = ("model:N", "value:Q", "low:Q", "high:Q", f"{unit}=units:Q")
    panels = []
    for question in questions_of(results):
        if (leader := question.leader) is not None:
            rows, n = [fields_of(estimate, VALUE) for estimate in question.top()], len(question.estimates)
            rest = f" The highest {len(rows):,} of {n:,} models." if len(rows) < n > 1 else ""
            text = f"{number(leader.value)} ({interval(leader.low, leader.high)}).{rest}"
            sentence = f"{leader.model} {'has' if n == 1 else 'is highest:'} {text}"
            chart = rows_chart(rows, "model", "value", question.metric, tips)
            panels.append(PlotPanel(question.title, sentence, chart, zooms=True))
    return panels


def interval_marks(base: Any, field: str, title: str, tips: Sequence[str], **x: Any) -> tuple[Any, Any]:
    """A bar from `low` to `high`, and a point at a field, for each row."""
    x = {"title": title, "scale": {"zero": False, "nice": True, "padding": 8}, **x}
    bars = base.mark_rule(strokeWidth=3, opacity=0.6).encode(x=alt.X("low:Q", **x), x2="high:Q")
    points = base.mark_point(size=65, opacity=1, filled=True)
    return bars, points.encode(x=alt.X(f"{field}:Q", **x), tooltip=tooltips(*tips))


def rows_chart(
    rows: Rows,
    by: str,
    field: str,
    title: str,
    tips: Sequence[str],
    *,
    models: Sequence[str] = (),
    limit: float | None = None,
    **x: Any,
) -> Any:
    """A row for each name, with intervals where there are some: in blue, or each of some models in its own style.

    A dashed line stands where values begin to matter.
    """
    if models:
        base = rows_of_models(by, [row for row in rows if row["model"] in models], models)
    else:
        base = chart_of(rows).encode(y=rows_of_names(by, rows), color=alt.value(BLUE))
    bars, points = interval_marks(base, field, title, tips, **x)
    limits = [] if limit is None else [dashed_at(limit, "limit", opacity=0.7)]
    height = rows_height(len({row[by] for row in rows})) * max(2, len(models) + 1) // 2
    return layered(*limits, *([bars] if "low" in rows[0] else []), points, height=height)


def differences(results: Results) -> list[PlotPanel]:
    """The differences of each question that has some; where they are many, those with the highest or the baseline."""
    panels = []
    for question in questions_of(results):
        if any(math.isfinite(comparison.difference) for comparison in question.differences):
            drawn, total = question.top_differences(), len(question.differences)
            rows = [fields_of(pair, PAIR, pair=pair.name) for pair in drawn]
            n = sum(comparison.verdict in SIGNIFICANT for comparison in question.differences)
            alone = f"The difference is {'' if n else 'not '}significant."
            sentence = alone if total == 1 else f"{n:,} of {total:,} differences are significant."
            sentence += f" The chart has {len(rows):,} of them." if len(rows) < total else ""
            panels.append(PlotPanel(question.title, sentence, _differences(rows, question.metric, "pair"), zooms=True))
    return panels


def _differences(rows: Rows, metric: str, by: str) -> Any:
    """Intervals about 0, by pair of models or by group; the verdict in colour, shape and filling."""
    present = {WORDS.get(kind, kind): style for kind, style in VERDICTS.items()
               if any(row["verdict"] == kind for row in rows)}  # fmt: skip
    rows = [{**row, "verdict": WORDS.get(row["verdict"], row["verdict"])} for row in rows]
    styles = colours_and_shapes("verdict", present)
    base = chart_of(rows).encode(y=rows_of_names(by, rows), color=styles["color"])
    tips = (f"of={by}:N", "difference:Q", "low:Q", "high:Q", "p_adjusted:Q", "verdict:N")
    bars, points = interval_marks(base, "difference", f"difference in {metric}", tips)
    points = points.encode(shape=styles["shape"])
    filled = points.transform_filter(alt.FieldOneOfPredicate("verdict", list(SIGNIFICANT)))
    filled = [filled] if {*present} & {*SIGNIFICANT} else []
    points = points.mark_point(size=65, opacity=1, strokeWidth=2)
    return layered(dashed_at(0, "zero", opacity=0.7), bars, *filled, points, height=rows_height(len(rows)))


# -------------------------------------------------------------------------------------------------------------- curves


def curve(
    rows: Rows,
    x: Any,
    field: str,
    title: str,
    tips: Sequence[str],
    *,
    band: tuple[str, str] | None = None,
    **y: Any,
) -> Any:
    """A line with its points for each model, and a band where there is one; otherwise the axis begins at 0."""
    y = {"title": title, "scale": {"zero": band is None}, **y}
    styles = model_styles(row["model"] for row in rows)
    base = chart_of(rows).encode(x=x, color=styles["color"])
    line = base.encode(y=alt.Y(f"{field}:Q", **y))
    low, high = band or (field, field)
    return layered(
        *[base.mark_area(opacity=0.13).encode(y=alt.Y(f"{low}:Q", **y), y2=f"{high}:Q")] * (band is not None),
        line.mark_line(strokeWidth=2),
        line.mark_point(filled=True, size=60, opacity=1).encode(shape=styles["shape"], tooltip=tooltips(*tips)),
        height=200,
    )


def log_axis(field: str, title: str, **axis: Any) -> Any:
    """A logarithmic axis, if there is more than one value."""
    return alt.X(f"{field}:Q", title=f"{title} (log axis)", scale={"type": "log", "nice": False, "padding": 12}, **axis)


def over_k(results: Results) -> list[PlotPanel]:
    """The curve over cut-offs: a panel for each metric with more than one, by estimator."""
    families: dict[tuple[str, str, str], list[ShownQuestion]] = {}
    for question in questions_of(results):
        if question.family != question.metric:
            families.setdefault((question.family, question.estimator, question.reward), []).append(question)
    return [
        _over_k(f"{metric}, {estimator}", metric, questions)
        for (metric, estimator, _), questions in families.items()
        if len(questions) > 1 and any(question.leader for question in questions)
    ]


def _over_k(title: str, metric: str, questions: Sequence[ShownQuestion]) -> PlotPanel:
    models = [estimate.model for estimate in questions[-1].estimates[:MOST_COLOURS]]
    rows = [
        fields_of(estimate, VALUE, k=estimate.k)
        for question in questions for estimate in question.estimates if estimate.model in models
    ]  # fmt: skip
    x = log_axis("k", "K", axis={"values": sorted({row["k"] for row in rows}), "format": "d", "grid": False})
    tips = ("model:N", "K=k:Q", "value:Q", "low:Q", "high:Q")
    chart = curve(rows, x, "value", metric, tips, band=("low", "high"))
    (k, leader), *others = (
        (question.estimates[0].k, question.leader.model if question.leader else "none") for question in questions
    )
    sentence = f"{leader} is highest at every K."
    if change := next((entry for entry in others if entry[1] != leader), None):
        sentence = f"The highest changes with K: {leader} at {k}, {change[1]} at {change[0]}."
    n = len(questions[-1].estimates)
    rest = f" The highest {len(models)} of {n:,} models." if len(models) < n else ""
    return PlotPanel(title, f"{sentence}{rest}", chart)


def clip_axis(clips: Sequence[str]) -> Any:
    """Clips in this order."""
    return alt.X("clip:O", sort=list(dict.fromkeys(clips)), title="clip", axis={"labelAngle": 0, "grid": False})


def clips(results: Results) -> list[PlotPanel]:
    """What a clip costs and saves: two panels for each estimator and reward with more than one clip."""
    frame = clips_frame(results).filter(pl.col("segment").is_null()).with_columns(
        below=pl.col("value") - pl.col("stderr"), above=pl.col("value") + pl.col("stderr"), shift=pl.col("shift").abs()
    )  # fmt: skip
    panels: list[PlotPanel] = []
    for (metric, estimator, reward), part in frame.group_by(["metric", "estimator", "reward"], maintain_order=True):
        models = part["model"].unique(maintain_order=True).to_list()[:MOST_COLOURS]
        title = ", ".join([metric, estimator, *([] if metric.startswith(reward) else [reward])])
        limits = part["clip"].unique().sort()
        x = clip_axis([_limit(clip) for clip in limits])
        rows = part.filter(pl.col("model").is_in(models)).to_dicts()
        rows = [{**row, "clip": _limit(row["clip"])} for row in rows]
        tips = ["model:N", "clip:N", "value:Q", "standard_error=stderr:Q", "shift:Q", "together:Q"]
        if has_numbers(rows, "value"):
            worst = max(rows, key=lambda row: -1.0 if math.isnan(row["shift"]) else row["shift"])
            sentence = (
                f"A clip of {worst['clip']} moves {worst['model']} by {worst['shift']:.2g} from its value at the "
                "largest clip; bands are one standard error."
            )
            panels.append(PlotPanel(title, sentence, curve(rows, x, "value", metric, tips, band=("below", "above"))))
        if has_numbers(rows, "together"):
            chart = curve(rows, x, "together", "√(shift² + standard error²)", tips)
            panels.append(PlotPanel(title, _best_clips(rows, models), chart))
    return panels


def _limit(clip: float) -> str:
    return "none" if math.isinf(clip) else clip_text(clip)


def _best_clips(rows: Rows, models: Sequence[str]) -> str:
    if chosen := [f"{row['model']} {row['clip']}" for row in rows if row["chosen"]]:
        return f"Clips that the data chose: {', '.join(chosen)}."
    least = [min((row for row in rows if row["model"] == name), key=lambda row: row["together"]) for name in models[:3]]
    listed = ", ".join(f"{row['model']} {row['clip']}" for row in least)
    return f"Shift and error together, with the largest clip taken as the truth, are least at: {listed}."


def positions(results: Results) -> list[PlotPanel]:
    """A panel for each place that a position model was fitted to; nothing where none was fitted."""
    details = results.provenance.details
    fits = {fit["place"]: fit for fit in details.get("fits", ())}
    tips = ("of=model:N", "position:Q", "to=last:Q", "share:Q")
    panels = []
    for place, fit in fits.items():
        rows: Rows = [
            {"position": view["first"], "last": view["last"], "share": view[f"{kind}_view"], "model": name}
            for view in details.get("views", ()) if view["place"] == place
            for name, kind in (("model", "expected"), ("log", "observed"))
        ]  # fmt: skip
        if rows:
            p, model = fit["p_of_fit"], f"The fitted model ({fit['parameter']} = {fit['value']:.4g})"
            sentence = (
                f"{model} beside the log; nothing is left to test it with." if p is None
                else f"{model} differs from the log by more than chance (p = {p:.1g})." if p < POOR_FIT
                else f"{model} describes the log (p = {p:.2g})."
            )  # fmt: skip
            x = log_axis("position", "position")
            chart = curve(rows, x, "share", "share that comes there", tips, axis={"format": "%"})
            title = "position model" if len(fits) == 1 else f"position model of {place}"
            panels.append(PlotPanel(title, sentence, chart))
    return panels


# -------------------------------------------------------------------------------------------------------------- groups


def segments(results: Results, groups: Mapping[str, Results], *, most: int | None = None) -> list[PlotPanel]:
    """Two panels for each question (the first `most`): the main difference by group, and values by group."""
    by_group = {name: {question.key: question for question in questions_of(part)} for name, part in groups.items()}
    panels = []
    for question in questions_of(results)[:most]:
        within = {name: parts[question.key] for name, parts in by_group.items() if question.key in parts}
        panels += [*_group_differences(question, within), *_group_values(question, within)]
    return panels


def _group_differences(whole: ShownQuestion, within: Mapping[str, ShownQuestion]) -> list[PlotPanel]:
    """The difference that a reader asks about first: the best against the baseline, or against the next."""
    place = {estimate.model: n for n, estimate in enumerate(whole.estimates)}
    pairs = sorted(
        whole.top_differences(),
        key=lambda pair: place[pair.model] + (place[pair.baseline] if whole.baseline is None else 0),
    )
    rows: Rows = [
        fields_of(pair, PAIR, group=name)
        for main in pairs[:1]
        for name, question in within.items()
        if (pair := question.difference(main.model, main.baseline)) is not None
    ]
    if not has_numbers(rows, "difference"):
        return []
    main = pairs[0]
    verdicts = [row["verdict"] for row in rows if row["verdict"] in SIGNIFICANT]
    if any(OPPOSITE[verdict] in verdicts for verdict in verdicts):
        sentence = f"{main.name} is reversed between groups."
    elif not verdicts:
        sentence = f"{main.name} is significant in none of the {len(rows)} groups."
    else:
        n = f"{len(verdicts)} of {len(rows)} groups"
        sentence = f"{main.model} is {verdicts[0]} than {main.baseline} in {n}."
    return [PlotPanel(whole.title, sentence, _differences(rows, whole.metric, "group"))]


def _group_values(whole: ShownQuestion, within: Mapping[str, ShownQuestion]) -> list[PlotPanel]:
    models = [estimate.model for estimate in whole.estimates[:MOST_COLOURS]]
    rows: Rows = [
        fields_of(estimate, VALUE, group=name)
        for name, question in within.items() for estimate in question.estimates if estimate.model in models
    ]  # fmt: skip
    if not has_numbers(rows, "value"):
        return []
    tips = ("group:N", "model:N", "value:Q", "low:Q", "high:Q", "units:Q")
    rest = f" The highest {len(models)} models." if len(models) < len(whole.estimates) else ""
    chart = rows_chart(rows, "group", "value", whole.metric, tips, models=models)
    return [PlotPanel(whole.title, f"{whole.metric} of each model within each group.{rest}", chart)]
