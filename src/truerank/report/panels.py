"""Pictures of results, each a function of results that gives panels: values, differences, curves, groups.

results --intervals, differences, over_k, ...--> panels --composed--> one chart, or --page--> a report
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from truerank.core.results import OPPOSITE, Comparison, Results
from truerank.report.charts import (
    BLUE,
    MOST_COLOURS,
    VERDICTS,
    VERMILION,
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
    named,
    rows_height,
    rows_of_names,
    tooltips,
)
from truerank.report.frames import clips as clips_frame
from truerank.report.numbers import clip_text, interval, number
from truerank.report.questions import SIGNIFICANT, ShownQuestion, questions_of

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
            rows = [fields_of(estimate, VALUE) for estimate in question.top()]
            n = len(question.estimates)
            rest = f" The highest {len(rows):,} of {n:,} models." if len(rows) < n > 1 else ""
            text = f"{number(leader.value)} ({interval(leader.low, leader.high)}).{rest}"
            sentence = f"{leader.model} {'has' if n == 1 else 'is highest:'} {text}"
            base = chart_of(rows).encode(y=rows_of_names("model", rows, grid=False))
            bars, points = _interval_marks(
                base, "value", question.metric, tips, bar={"color": BLUE}, point={"color": BLUE, "filled": True}
            )
            chart = layered(bars, points, height=rows_height(len(rows)))
            panels.append(PlotPanel(question.title, sentence, chart, zooms=True))
    return panels


def differences(results: Results) -> list[PlotPanel]:
    """The differences of each question that has some; where they are many, those with the highest or the baseline."""
    panels = []
    for question in questions_of(results):
        if any(math.isfinite(comparison.difference) for comparison in question.differences):
            drawn, total = question.top_differences(), len(question.differences)
            rows = [fields_of(pair, PAIR, pair=pair_name(pair)) for pair in drawn]
            n = sum(comparison.verdict in SIGNIFICANT for comparison in question.differences)
            alone = f"The difference is {'' if n else 'not '}significant."
            sentence = alone if total == 1 else f"{n:,} of {total:,} differences are significant."
            sentence += f" The chart has {len(rows):,} of them." if len(rows) < total else ""
            panels.append(PlotPanel(question.title, sentence, _differences(rows, question.metric, "pair"), zooms=True))
    return panels


def pair_name(comparison: Comparison) -> str:
    return f"{comparison.model} − {comparison.baseline}"


def _differences(rows: Rows, metric: str, by: str) -> Any:
    """Intervals about 0, by pair of models or by group; the verdict in colour, shape and filling."""
    present = [row["verdict"] for row in rows]
    styles = colours_and_shapes("verdict", {kind: style for kind, style in VERDICTS.items() if kind in present})
    base = chart_of(rows).encode(y=rows_of_names(by, rows, grid=False), color=styles["color"])
    tips = (f"of={by}:N", "difference:Q", "low:Q", "high:Q", "p_adjusted:Q", "verdict:N")
    bars, points = _interval_marks(
        base, "difference", f"difference in {metric}", tips, zero=True, point={"strokeWidth": 2}, shape=styles["shape"]
    )
    significant = base.transform_filter(alt.FieldOneOfPredicate("verdict", list(SIGNIFICANT)))
    filled = significant.mark_point(size=70, opacity=1, filled=True, strokeWidth=2).encode(
        x=points.encoding.x, shape=styles["shape"]
    )
    fillings = [filled] if set(present) & set(SIGNIFICANT) else []
    return layered(dashed_at(0, "zero", opacity=0.7), bars, *fillings, points, height=rows_height(len(rows)))


def _interval_marks(
    base: Any,
    field: str,
    title: str,
    tips: Sequence[str],
    *,
    zero: bool = False,
    bar: Mapping[str, Any] | None = None,
    point: Mapping[str, Any] | None = None,
    **encodings: Any,
) -> tuple[Any, Any]:
    """A bar from `low` to `high`, and a point at a field, for each row."""
    scale = alt.Scale(zero=zero, nice=True, padding=8)
    bars = base.mark_rule(**({"strokeWidth": 3, "opacity": 0.6} | dict(bar or {})))
    points = base.mark_point(**({"size": 70, "opacity": 1} | dict(point or {})))
    return (
        bars.encode(x=alt.X("low:Q", scale=scale, title=title), x2="high:Q"),
        points.encode(x=alt.X(f"{field}:Q", scale=scale, title=title), tooltip=tooltips(*tips), **encodings),
    )


# -------------------------------------------------------------------------------------------------------------- curves


def curve(
    rows: Rows,
    x: Any,
    field: str,
    title: str,
    styles: Mapping[str, Any],
    *,
    tips: Sequence[str],
    height: int,
    band: tuple[str, str] | None = None,
    line: float = 2,
    size: int = 60,
    **axis: Any,
) -> Any:
    """A line with its points for each model, and a band where there is one; otherwise the axis begins at 0."""

    def y(name: str) -> Any:
        return alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=band is None), **axis)

    base = chart_of(rows).encode(x=x, color=styles["color"])
    points = base.mark_point(filled=True, size=size, opacity=1)
    return layered(
        *([] if band is None else [base.mark_area(opacity=0.13).encode(y=y(band[0]), y2=f"{band[1]}:Q")]),
        base.mark_line(strokeWidth=line).encode(y=y(field)),
        points.encode(y=y(field), shape=styles["shape"], tooltip=tooltips(*tips)),
        height=height,
    )


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
    models, n = [estimate.model for estimate in questions[-1].estimates[:MOST_COLOURS]], len(questions[-1].estimates)
    rows = [
        fields_of(estimate, VALUE, k=estimate.k)
        for question in questions for estimate in question.estimates if estimate.model in models
    ]  # fmt: skip
    cutoffs = sorted({row["k"] for row in rows})
    x = alt.X("k:Q", title="K (log axis)", axis=alt.Axis(values=cutoffs, format="d", grid=False),
              scale=alt.Scale(type="log", nice=False, padding=12, domain=[cutoffs[0], cutoffs[-1]]))  # fmt: skip
    tips = ("model:N", "K=k:Q", "value:Q", "low:Q", "high:Q")
    chart = curve(rows, x, "value", metric, model_styles(models), tips=tips, height=220, band=("low", "high"))
    leaders = [
        (question.estimates[0].k, "none" if question.leader is None else question.leader.model)
        for question in questions
    ]
    k, leader = leaders[0]
    sentence = f"{leader} is highest at every K."
    if change := next((entry for entry in leaders if entry[1] != leader), None):
        sentence = f"The highest changes with K: {leader} at {k}, {change[1]} at {change[0]}."
    rest = f" The highest {len(models)} of {n:,} models." if len(models) < n else ""
    return PlotPanel(title, f"{sentence}{rest}", chart)


def clip_axis(clips: Sequence[str]) -> Any:
    """Clips in this order."""
    return alt.X("clip:O", sort=list(dict.fromkeys(clips)), title="clip", axis=alt.Axis(labelAngle=0, grid=False))


def clips(results: Results) -> list[PlotPanel]:
    """What a clip costs and saves: two panels for each estimator and reward with more than one clip."""
    frame = clips_frame(results).filter(pl.col("segment").is_null())
    panels: list[PlotPanel] = []
    for (metric, estimator, reward), part in frame.group_by(["metric", "estimator", "reward"], maintain_order=True):
        models = part["model"].unique(maintain_order=True).to_list()[:MOST_COLOURS]
        title = f"{metric}, {estimator}" if metric.startswith(reward) else f"{metric}, {estimator}, {reward}"
        rows: Rows = [
            {**row, "at": row["clip"], "clip": "none" if row["clip"] == math.inf else clip_text(row["clip"]),
             "below": row["value"] - row["stderr"], "above": row["value"] + row["stderr"], "shift": abs(row["shift"])}
            for row in part.filter(pl.col("model").is_in(models)).iter_rows(named=True)
        ]  # fmt: skip
        x = clip_axis([row["clip"] for row in sorted(rows, key=lambda row: row["at"])])
        styles = model_styles(models)
        if has_numbers(rows, "value"):
            worst = max(rows, key=lambda row: -1.0 if math.isnan(row["shift"]) else row["shift"])
            sentence = (
                f"A clip of {worst['clip']} moves {worst['model']} by {worst['shift']:.2g} from its value at the "
                "largest clip; bands are one standard error."
            )
            tips = ["model:N", "clip:N", "value:Q", "standard_error=stderr:Q"]
            chart = curve(rows, x, "value", str(metric), styles, tips=tips, height=200, band=("below", "above"))
            panels.append(PlotPanel(title, sentence, chart))
        if has_numbers(rows, "together"):
            tips = ["model:N", "clip:N", "shift:Q", "standard_error=stderr:Q", "together:Q"]
            chart = curve(rows, x, "together", "√(shift² + standard error²)", styles, tips=tips, height=200)
            panels.append(PlotPanel(title, _best_clips(rows, models), chart))
    return panels


def _best_clips(rows: Rows, models: Sequence[str]) -> str:
    chosen = [f"{row['model']} {row['clip']}" for row in rows if row["chosen"]]
    if chosen:
        return f"Clips that the data chose: {', '.join(chosen)}."
    least = [min((row for row in rows if row["model"] == name), key=lambda row: row["together"]) for name in models[:3]]
    listed = ", ".join(f"{row['model']} {row['clip']}" for row in least)
    return f"Shift and error together, with the largest clip taken as the truth, are least at: {listed}."


def positions(results: Results) -> list[PlotPanel]:
    """A panel for each place that a position model was fitted to; nothing where none was fitted."""
    details = results.provenance.details
    fits = {fit["place"]: fit for fit in details.get("fits", ())}
    x = alt.X("position:Q", title="position (log axis)", scale=alt.Scale(type="log", nice=False, padding=10))
    styles = colours_and_shapes("of", {"log": (VERMILION, "circle"), "model": (BLUE, "square")})
    tips = ("of:N", "position:Q", "to=last:Q", "share:Q")
    panels = []
    for place, fit in fits.items():
        rows: Rows = [
            {"position": view["first"], "last": view["last"], "share": view[f"{kind}_view"], "of": name}
            for view in details.get("views", ()) if view["place"] == place
            for name, kind in (("log", "observed"), ("model", "expected"))
        ]  # fmt: skip
        if rows:
            p, model = fit["p_of_fit"], f"The fitted model ({fit['parameter']} = {fit['value']:.4g})"
            sentence = (
                f"{model} beside the log; nothing is left to test it with." if p is None
                else f"{model} differs from the log by more than chance (p = {p:.1g})." if p < POOR_FIT
                else f"{model} describes the log (p = {p:.2g})."
            )  # fmt: skip
            chart = curve(rows, x, "share", "share that comes there", styles, tips=tips, height=200, line=1.5, size=55,
                          axis=alt.Axis(format="%"))  # fmt: skip
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
    main = min(
        whole.top_differences(),
        key=lambda pair: place[pair.model] + (place[pair.baseline] if whole.baseline is None else 0),
        default=None,
    )
    if main is None:
        return []
    pairs = {name: question.difference(main.model, main.baseline) for name, question in within.items()}
    rows: Rows = [fields_of(pair, PAIR, group=name) for name, pair in pairs.items() if pair is not None]
    if not has_numbers(rows, "difference"):
        return []
    verdicts = [row["verdict"] for row in rows if row["verdict"] in SIGNIFICANT]
    if any(OPPOSITE[verdict] in verdicts for verdict in verdicts):
        sentence = f"{pair_name(main)} is reversed between groups."
    elif not verdicts:
        sentence = f"{pair_name(main)} is significant in none of the {len(rows)} groups."
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
    styles = model_styles(models)
    base = chart_of(rows).encode(
        y=rows_of_names("group", rows),
        yOffset=alt.YOffset("model:N", sort=named(models)),
        color=styles["color"],
    )
    tips = ("group:N", "model:N", "value:Q", "low:Q", "high:Q", "units:Q")
    marks = _interval_marks(
        base, "value", whole.metric, tips, bar={"strokeWidth": 2.5, "opacity": 0.45},
        point={"filled": True, "size": 55}, shape=styles["shape"],
    )  # fmt: skip
    rest = f" The highest {len(models)} models." if len(models) < len(whole.estimates) else ""
    chart = layered(*marks, height=max(2, len(within)) * (len(models) + 1) * 14)
    return [PlotPanel(whole.title, f"{whole.metric} of each model within each group.{rest}", chart)]
