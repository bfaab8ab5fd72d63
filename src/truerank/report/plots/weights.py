"""Weights and support of an off-policy evaluation: effective rows, weight lost, exposure that the log cannot show."""

from __future__ import annotations

from typing import Any

from truerank.core.results import Results
from truerank.inference.weights import MUCH_CLIPPED, UNSUPPORTED
from truerank.report.numbers import clip_text
from truerank.report.plots.panels import (
    BLUE,
    INK,
    MOST_COLOURS,
    PlotPanel,
    Rows,
    inline,
    layered,
    library,
    model_colour,
    named,
    rows_height,
    tooltips,
)

HEIGHT = 180


def weights(results: Results) -> list[PlotPanel]:
    """Effective rows and lost weight over clips, then support where it is known; nothing where no weights were
    recorded."""
    found = results.provenance.details.get("diagnostics", ())
    models = list(dict.fromkeys(each["model"] for each in found))[:MOST_COLOURS]
    rows: Rows = [
        {**each, "clip": clip_text(each["clip"]), "share": each["ess"] / each["n"]}
        for each in found
        if each["model"] in models and each["of"] == found[0]["of"] and each["n"]
    ]
    if not rows:
        return []
    order = list(dict.fromkeys(row["clip"] for row in rows))
    supported = [row for row in _last(rows) if row["unsupported"] is not None]
    return [
        PlotPanel("effective rows", _of_rows(rows), _curve(rows, models, order, "share", "effective share of rows")),
        *([PlotPanel("weight lost to clips", _of_lost(rows), _curve(rows, models, order, "lost", "weight lost"))]
          if len(order) > 1 else []),
        *([PlotPanel("support", _of_support(supported), _support(supported))] if supported else []),
    ]  # fmt: skip


def _last(rows: Rows) -> Rows:
    """One row for each model."""
    return list({row["model"]: row for row in rows}.values())


def _of_rows(rows: Rows) -> str:
    least = min(_last(rows), key=lambda row: row["ess"])
    return (
        f"{least['model']} has the fewest effective rows: {least['n']:,} rows are worth {least['ess']:,.0f} equally "
        f"weighted ones at clip {least['clip']}; its largest weight is {least['largest']:.3g}."
    )


def _of_lost(rows: Rows) -> str:
    most = max(rows, key=lambda row: row["lost"])
    if not most["lost"] > MUCH_CLIPPED:
        return f"No clip takes more than {MUCH_CLIPPED:.0%} of the weight away."
    return (
        f"A clip of {most['clip']} takes {most['lost']:.0%} of the weight of {most['model']} away; above "
        f"{MUCH_CLIPPED:.0%} the value is biased by up to about as much."
    )


def _of_support(rows: Rows) -> str:
    most = max(rows, key=lambda row: row["unsupported"])
    far = most["unsupported"] > UNSUPPORTED
    end = f"more than {UNSUPPORTED:.0%}: what is earned there is unknown." if far else "which the log can carry."
    return f"At most {most['unsupported']:.1%} of what a target would show ({most['model']}) is not in the log, {end}"


def _curve(rows: Rows, models: list[str], order: list[str], field: str, title: str) -> Any:
    alt = library()
    colour, shape = model_colour(alt, models)
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("clip:O", sort=order, title="clip", axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y(f"{field}:Q", title=title, axis=alt.Axis(format="%"), scale=alt.Scale(zero=True)),
        color=colour,
    )
    tips = tooltips(alt, model="model:N", clip="clip:N", effective_rows="ess:Q", largest_weight="largest:Q",
                    weight_lost="lost:Q")  # fmt: skip
    points = base.mark_point(filled=True, size=60, opacity=1).encode(shape=shape, tooltip=tips)
    return layered(base.mark_line(strokeWidth=2), points).properties(height=HEIGHT)


def _support(rows: Rows) -> Any:
    alt = library()
    shown: Rows = [
        {"model": row["model"], "unsupported": row["unsupported"], "error": row["unsupported_error"],
         "low": max(0.0, row["unsupported"] - row["unsupported_error"]),
         "high": max(0.0, row["unsupported"] + row["unsupported_error"])}
        for row in rows
    ]  # fmt: skip
    base = alt.Chart(inline(shown)).encode(
        y=alt.Y("model:N", sort=named([row["model"] for row in rows]), title=None, axis=alt.Axis(grid=False))
    )
    axis = alt.Axis(format="%")
    title = "share of exposure that the log cannot show (± one standard error)"
    bars = base.mark_bar(color=BLUE, opacity=0.75, height={"band": 0.55}).encode(
        x=alt.X("unsupported:Q", title=title, axis=axis),
        tooltip=tooltips(alt, model="model:N", unsupported="unsupported:Q", standard_error="error:Q"),
    )
    ends = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    limit = alt.Chart(inline([{"limit": UNSUPPORTED}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="limit:Q")
    return layered(bars, ends, limit).properties(height=rows_height(len(shown)))
