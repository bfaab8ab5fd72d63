"""How far numbers can be trusted: balance of lists, clusters that are informative, weights, and single units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.results import Results
from truerank.inference.balance import FAR, MUCH
from truerank.inference.verdicts import FEWEST, HALF, MUCH_LOST
from truerank.inference.weights import MUCH_CLIPPED, UNSUPPORTED
from truerank.report.charts import (
    BLUE,
    MOST_COLOURS,
    VERMILION,
    PlotPanel,
    Rows,
    alt,
    chart_of,
    rows_height,
    rows_of_names,
    tooltips,
)
from truerank.report.numbers import clip_text
from truerank.report.panels import clip_axis, curve, rows_chart
from truerank.report.questions import ShownQuestion, questions_of


def balance(results: Results) -> list[PlotPanel]:
    """How much of each list the rows stand for, 100 % where all of it; nothing where that cannot be known."""
    rows = _evidence_rows(questions_of(results), "balance", "balance_z")
    if not rows:
        return []
    worst = max(rows, key=lambda row: abs(row["balance_z"] or 0.0))
    subject, z = f"{worst['model']} at {worst['question']}: {worst['share']:.0%}", worst["balance_z"]
    sentence = f"How much of a list the rows stand for, {subject}."
    if z is not None:
        chance = "more" if abs(z) > FAR and abs(worst["share"] - 1) > MUCH else "no more"
        sentence = (
            f"Rows stand for the lists of models; furthest off is {subject}, {abs(z):.1f} errors, {chance} than "
            "chance explains."
        )
    chart = _share_chart(rows, "share of the list that the rows stand for", 1.0, zero=False)
    return [PlotPanel("balance of the list", sentence, chart)]


def evidence(results: Results) -> list[PlotPanel]:
    """Balance, clusters that tell models apart, what one cluster holds, weight lost and exposure without support."""
    questions, details = questions_of(results), results.provenance.details
    shares = [("largest", "largest share of one cluster", HALF,
               "one cluster holds {share:.0%} of the variance of {model} at {question}")]  # fmt: skip
    if not details.get("diagnostics"):  # otherwise `weights` shows these in full
        shares += [
            ("lost", "weight lost to clips", MUCH_LOST,
             "a clip takes {share:.1%} of the weight of {model} at {question} away"),
            ("unsupported", "exposure without support", MUCH_LOST,
             "{share:.1%} of what {model} would show at {question} is not in the data"),
        ]  # fmt: skip
    panels = [*balance(results), *_informative(questions, details.get("cluster", results.provenance.unit))]
    for name, title, limit, text in shares:
        if rows := _evidence_rows(questions, name):
            most = max(rows, key=lambda row: row["share"])
            end = f"above {limit:.0%}, where it may change what is said"
            end = end if most["share"] > limit else f"below {limit:.0%}"
            chart = _share_chart(rows, title, limit, zero=True)
            panels.append(PlotPanel(title, f"At most, {text.format(**most)}: {end}.", chart))
    return panels


def _evidence_rows(questions: Sequence[ShownQuestion], name: str, *more: str) -> Rows:
    """A row for each of the highest estimates that have a share of this name."""
    return [
        {"question": question.title, "model": estimate.model, "share": share}
        | {extra: getattr(estimate.evidence, extra) for extra in more}
        for question in questions
        for estimate in question.estimates[:MOST_COLOURS]
        if (share := getattr(estimate.evidence, name)) is not None
    ]


def _informative(questions: Sequence[ShownQuestion], cluster: str) -> list[PlotPanel]:
    rows: Rows = [
        {"question": question.title, "pair": pair.name, "n": pair.evidence.informative, "df": pair.evidence.df,
         "share": max(pair.evidence.informative, 0.5)}
        for question in questions for pair in question.top_differences(MOST_COLOURS)
    ]  # fmt: skip
    if not rows:
        return []
    least = min(rows, key=lambda row: row["n"])
    sentence = (
        f"At least {least['n']:,} {cluster}s tell two models apart ({least['pair']} at {least['question']}): "
        f"{'enough' if least['n'] >= FEWEST else 'too few'} for a verdict, which needs {FEWEST}."
    )
    tips = ("question:N", "of=pair:N", "degrees_of_freedom=df:Q", f"{cluster}s=n:Q")
    title = f"{cluster}s that tell two models apart (log axis)"
    chart = rows_chart(rows, "question", "share", title, tips, limit=FEWEST, scale={"type": "log"})
    return [PlotPanel(f"{cluster}s that tell models apart", sentence, chart)]


def _share_chart(rows: Rows, title: str, limit: float, *, zero: bool) -> Any:
    """Shares of models by question."""
    return rows_chart(
        rows, "question", "share", title, ("question:N", "model:N", "share:Q"), axis={"format": "%"},
        models=list(dict.fromkeys(row["model"] for row in rows))[:MOST_COLOURS], limit=limit,
        scale={"zero": zero, "padding": 10},
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- weights


def weights(results: Results) -> list[PlotPanel]:
    """Effective rows and lost weight over clips, then support where it is known; nothing where no weights were
    recorded."""
    diagnostics = results.provenance.details.get("diagnostics", ())
    models = list(dict.fromkeys(entry["model"] for entry in diagnostics))[:MOST_COLOURS]
    rows: Rows = [
        {**entry, "clip": clip_text(entry["clip"]), "share": entry["ess"] / entry["n"]}
        for entry in diagnostics
        if entry["model"] in models and entry["of"] == diagnostics[0]["of"] and entry["n"]
    ]
    if not rows:
        return []
    x, percent = clip_axis([row["clip"] for row in rows]), {"format": "%"}
    tips = ("model:N", "clip:N", "effective_rows=ess:Q", "largest_weight=largest:Q", "weight_lost=lost:Q")
    last = list({row["model"]: row for row in rows}.values())  # a row for each model
    least, most = min(last, key=lambda row: row["ess"]), max(rows, key=lambda row: row["lost"])
    sentence = (
        f"{least['model']} has the fewest effective rows: {least['n']:,} rows are worth {least['ess']:,.0f} equally "
        f"weighted ones at clip {least['clip']}; its largest weight is {least['largest']:.3g}."
    )
    chart = curve(rows, x, "share", "effective share of rows", tips, axis=percent)
    panels = [PlotPanel("effective rows", sentence, chart)]
    if len({row["clip"] for row in rows}) > 1:
        sentence = f"No clip takes more than {MUCH_CLIPPED:.0%} of the weight away."
        if most["lost"] > MUCH_CLIPPED:
            sentence = (
                f"A clip of {most['clip']} takes {most['lost']:.0%} of the weight of {most['model']} away; above "
                f"{MUCH_CLIPPED:.0%} the value is biased by up to about as much."
            )
        chart = curve(rows, x, "lost", "weight lost", tips, axis=percent)
        panels.append(PlotPanel("weight lost to clips", sentence, chart))
    supported = [row for row in last if row["unsupported"] is not None]
    return [*panels, _support(supported)] if supported else panels


def _support(rows: Rows) -> PlotPanel:
    """The share of exposure that the log does not have, of each model."""
    rows = [
        row | {"low": max(0.0, row["unsupported"] - (error := row["unsupported_error"])),
               "high": max(0.0, row["unsupported"] + error)}
        for row in rows
    ]  # fmt: skip
    tips = ("model:N", "unsupported:Q", "standard_error=unsupported_error:Q")
    title = "share of exposure that the log cannot show (± one standard error)"
    chart = rows_chart(rows, "model", "unsupported", title, tips, limit=UNSUPPORTED, axis={"format": "%"},
                       scale={"zero": True})  # fmt: skip
    most = max(rows, key=lambda row: row["unsupported"])
    end = "which the log can carry."
    if most["unsupported"] > UNSUPPORTED:
        end = f"more than {UNSUPPORTED:.0%}: what is earned there is unknown."
    subject = f"At most {most['unsupported']:.1%} of what a target would show ({most['model']})"
    return PlotPanel("support", f"{subject} is not in the log, {end}", chart)


# --------------------------------------------------------------------------------------------------------------- units

MOST_PAIRS, MOST_ROWS = 10, 12
BINS = 24
SAME = 1e-12
PARTS = {"loses": VERMILION, "same": "#b4b4b4", "gains": BLUE}


def units(results: Results, *, most: int | None = None) -> list[PlotPanel]:
    """For each question (the first `most`): who gains and loses, by how much, and how values are spread."""
    if results.unit_table is None:
        return []
    frame, unit = results.units(), f"{results.provenance.unit}s"
    panels: list[PlotPanel] = []
    for question in questions_of(results)[:most]:
        values = _unit_values(frame, question)
        if values is not None:
            panels += [*_gains(question, values, unit), *_spread(question, values, unit)]
    return panels


def _unit_values(frame: pl.DataFrame, question: ShownQuestion) -> pl.DataFrame | None:
    """A row for each unit, a column for each model that is drawn; nothing where a table holds two ways at once."""
    pairs = question.top_differences(MOST_PAIRS)
    names = {estimate.model for estimate in question.estimates[:MOST_ROWS]}
    names |= {name for pair in pairs for name in (pair.model, pair.baseline)}
    clips = {estimate.model: estimate.clip for estimate in question.estimates}
    estimator = question.estimator.partition("(")[0]
    rows = frame.filter(metric=question.metric, reward=question.reward, estimator=estimator)
    table: pl.DataFrame | None = None
    for name in sorted(names):
        part = rows.filter(pl.col("clip").eq_missing(clips[name]), model=name)
        if part["unit"].n_unique() < len(part):
            return None
        column = part.select("unit", pl.when("defined").then("value").fill_nan(None).alias(name))
        table = column if table is None else table.join(
            column, on="unit", how="full", coalesce=True, maintain_order="left_right")  # fmt: skip
    return table


def _gains(question: ShownQuestion, values: pl.DataFrame, unit: str) -> list[PlotPanel]:
    """How many units gain and lose from one model to another; and by how much, from the first pair."""
    gaps: dict[str, Floats] = {}
    for pair in question.top_differences(MOST_PAIRS):
        both = values.select(pair.model, pair.baseline).drop_nulls()
        if len(both):
            gaps[pair.name] = (both[pair.model] - both[pair.baseline]).to_numpy().astype(np.float64)
    if not gaps:
        return []
    rows: Rows = [
        {"pair": name, "part": part, "n": (n := int(members.sum())), "share": n / len(gap), "place": place}
        for name, gap in gaps.items()
        for place, (part, members) in enumerate(
            zip(PARTS, (gap < -SAME, abs(gap) <= SAME, gap > SAME), strict=True))
    ]  # fmt: skip
    colour = {"domain": list(PARTS), "range": list(PARTS.values())}
    bars = (
        chart_of(rows)
        .mark_bar(height={"band": 0.65}, opacity=0.85)
        .encode(
            y=rows_of_names("pair", rows),
            x=alt.X("share:Q", axis={"format": "%", "grid": False}, scale={"domain": [0, 1]}),
            order="place:Q",
            color=alt.Color("part:N", scale=colour, sort=list(PARTS)),
            tooltip=tooltips("of=pair:N", "who=part:N", "how_many=n:Q", "share:Q"),
        )
        .properties(height=rows_height(len(gaps)))
    )
    first, gap = next(iter(gaps.items()))
    loses, same, gains = (row["n"] for row in rows[:3])
    sentence = f"{first}: {gains:,} of {len(gap):,} {unit} gain, {loses:,} lose, {same:,} have the same"
    without = len(values) - len(gap)
    sentence += f"; {without:,} more have no value of their own and are not in this." if without else "."
    panels = [PlotPanel(question.title, sentence, bars)]
    moved = gap[abs(gap) > SAME]
    return [*panels, _histogram(question.title, first, moved, unit, colour)] if len(moved) else panels


def _histogram(title: str, name: str, moved: Floats, unit: str, colour: Any) -> PlotPanel:
    """By how much single units gain or lose."""
    low, middle, high = np.quantile(moved, [0.1, 0.5, 0.9])
    sentence = (
        f"{name}, the {len(moved):,} {unit} whose own value differs: the middle one by {middle:+.3g}, "
        f"one in ten by {low:+.3g} or less, one in ten by {high:+.3g} or more."
    )
    reach = float(abs(moved).max())
    rows = _binned(moved, -reach, reach)
    for row in rows:
        row["part"] = "loses" if row["right"] <= reach * 1e-9 else "gains"
    bars = chart_of(rows).mark_bar(opacity=0.85, binSpacing=1)
    chart = bars.encode(
        y=alt.Y("n:Q", title=unit),
        color=alt.Color("part:N", scale=colour, legend=None),
        **_bins(f"difference of single {unit}, {name}", ("from=left:Q", "to=right:Q", f"{unit}=n:Q")),
    ).properties(height=180)
    return PlotPanel(title, sentence, chart)


def _binned(values: Floats, low: float, high: float) -> Rows:
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    return [
        {"left": float(edges[place]), "right": float(edges[place + 1]), "n": int(n)}
        for place, n in enumerate(counts)
        if n
    ]


def _bins(title: str, tips: Sequence[str]) -> dict[str, Any]:
    """The encodings of bars from `left` to `right`."""
    left = alt.X("left:Q", bin="binned", title=title, axis={"grid": False})
    return {"x": left, "x2": "right:Q", "tooltip": tooltips(*tips)}


def _spread(question: ShownQuestion, values: pl.DataFrame, unit: str) -> list[PlotPanel]:
    """How many units have which value of their own, a strip for each model."""
    columns = {name: values[name].drop_nulls().to_numpy().astype(np.float64)
               for name in (estimate.model for estimate in question.estimates[:MOST_ROWS])}  # fmt: skip
    columns = {name: column for name, column in columns.items() if len(column)}
    low = min((float(column.min()) for column in columns.values()), default=0.0)
    high = max((float(column.max()) for column in columns.values()), default=0.0)
    if not low < high:
        return []
    rows: Rows = [
        {"model": name, **row, "share": row["n"] / len(column)}
        for name, column in columns.items() for row in _binned(column, low, high)
    ]  # fmt: skip
    tips = ("model:N", "from=left:Q", "to=right:Q", f"{unit}=n:Q", "share:Q")
    legend = {"format": "%", "title": f"share of {unit}", "tickCount": 4}
    chart = (
        chart_of(rows)
        .mark_bar(height={"band": 0.8}, color=BLUE)
        .encode(
            y=rows_of_names("model", rows),
            opacity=alt.Opacity("share:Q", scale={"type": "sqrt", "range": [0.08, 1]}, legend=legend),
            **_bins(f"own value of single {unit}", tips),
        )
        .properties(height=rows_height(len(columns)))
    )
    model, first = next(iter(columns.items()))
    sentence = (
        f"Of the {len(first):,} {unit} of {model}, {int((first == 0).sum()):,} have 0; half have at most "
        f"{np.median(first):.3g}, one in ten at least {np.quantile(first, 0.9):.3g}."
    )
    return [PlotPanel(question.title, sentence, chart)]
