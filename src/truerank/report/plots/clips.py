"""What a clip costs and what it saves: value and interval over clips, and shift, error and both together."""

from __future__ import annotations

from typing import Any

import polars as pl

from truerank.core.results import Results
from truerank.report.frames import clips as clips_frame
from truerank.report.numbers import clip_text
from truerank.report.plots.panels import (
    MOST_COLOURS,
    PlotPanel,
    Rows,
    inline,
    known,
    layered,
    library,
    model_colour,
    tooltips,
)

HEIGHT = 200


def clips(results: Results) -> list[PlotPanel]:
    """Two panels for each estimator and reward with more than one clip."""
    frame = clips_frame(results).filter(pl.col("segment").is_null())
    found: list[PlotPanel] = []
    for (metric, estimator, reward), part in frame.group_by(["metric", "estimator", "reward"], maintain_order=True):
        models = part["model"].unique(maintain_order=True).to_list()[:MOST_COLOURS]
        title = f"{metric}, {estimator}" if metric.startswith(reward) else f"{metric}, {estimator}, {reward}"
        rows = _rows(part.filter(pl.col("model").is_in(models)))
        order = list(dict.fromkeys(row["clip"] for row in sorted(rows, key=lambda row: row["at"])))
        if known(rows, "value"):
            found.append(PlotPanel(title, _of_value(rows), _values(rows, models, order, str(metric))))
        if known(rows, "together"):
            found.append(PlotPanel(title, _of_error(rows, models), _errors(rows, models, order)))
    return found


def _rows(part: pl.DataFrame) -> Rows:
    return [
        {**row, "at": row["clip"], "clip": "none" if row["clip"] == float("inf") else clip_text(row["clip"]),
         "below": row["value"] - row["stderr"], "above": row["value"] + row["stderr"], "shift": abs(row["shift"])}
        for row in part.iter_rows(named=True)
    ]  # fmt: skip


def _of_value(rows: Rows) -> str:
    worst = max(rows, key=lambda row: row["shift"] if row["shift"] == row["shift"] else -1.0)
    return (
        f"A clip of {worst['clip']} moves {worst['model']} by {worst['shift']:.2g} from its value at the largest clip; "
        "bands are one standard error."
    )


def _of_error(rows: Rows, models: list[str]) -> str:
    chosen = [f"{row['model']} {row['clip']}" for row in rows if row["chosen"]]
    if chosen:
        return f"Clips that the data chose: {', '.join(chosen)}."
    least = [min((row for row in rows if row["model"] == name), key=lambda row: row["together"]) for name in models]
    told = ", ".join(f"{row['model']} {row['clip']}" for row in least[:3])
    return f"Shift and error together, with the largest clip taken as the truth, are least at: {told}."


def _axis(alt: Any, order: list[str]) -> Any:
    return alt.X("clip:O", sort=order, title="clip", axis=alt.Axis(labelAngle=0, grid=False))


def _values(rows: Rows, models: list[str], order: list[str], metric: str) -> Any:
    alt = library()
    colour, shape = model_colour(alt, models)
    base = alt.Chart(inline(rows)).encode(x=_axis(alt, order))
    bands = base.mark_area(opacity=0.13).encode(
        y=alt.Y("below:Q", title=metric, scale=alt.Scale(zero=False)), y2="above:Q", color=colour
    )
    value = alt.Y("value:Q", title=metric, scale=alt.Scale(zero=False))
    lines = base.mark_line(strokeWidth=2).encode(y=value, color=colour)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=value, color=colour, shape=shape,
        tooltip=tooltips(alt, model="model:N", clip="clip:N", value="value:Q", standard_error="stderr:Q"),
    )  # fmt: skip
    return layered(bands, lines, points).properties(height=HEIGHT)


def _errors(rows: Rows, models: list[str], order: list[str]) -> Any:
    alt = library()
    colour, shape = model_colour(alt, models)
    base = alt.Chart(inline(rows)).encode(x=_axis(alt, order))
    together = alt.Y("together:Q", title="√(shift² + standard error²)", scale=alt.Scale(zero=True))
    lines = base.mark_line(strokeWidth=2).encode(y=together, color=colour)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=together, color=colour, shape=shape,
        tooltip=tooltips(alt, model="model:N", clip="clip:N", shift="shift:Q", standard_error="stderr:Q",
                         together="together:Q"),
    )  # fmt: skip
    return layered(lines, points).properties(height=HEIGHT)
