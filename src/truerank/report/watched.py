"""What is watched while data arrive: as text, as plain values, and as a picture over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from truerank.evaluation.watch import Watched, WatchedPair, WatchState
from truerank.report.numbers import number
from truerank.report.reliability_charts import TYPEFACE, altair, picture_or_page

WHO = "the picture of what is watched"
GRID, LINE, BAND, ZERO, MARK = "#eeeeee", "#1f6f8b", "#bcd9e3", "#777777", "#C44E00"


def watch_text(watched: Watched) -> str:
    """A few lines for each comparison: how it stands, and what to do."""
    lines = []
    for pair in watched.pairs:
        last = pair.last
        lines += [
            str(pair),
            f"  the difference of {pair.estimand}",
            f"  {last.users:,} users, {last.informative:,} of whom tell the two apart",
            f"  difference {number(last.difference)}{_interval(pair, watched.level)}",
            f"  {sentence(pair, watched)}",
            "",
        ]
    return "\n".join(lines)


def _interval(pair: WatchedPair, level: float) -> str:
    last = pair.last
    if math.isnan(last.low):
        return ", no interval yet"
    return f", {level:.0%} interval that holds at every look {number(last.low)} to {number(last.high)}"


def sentence(pair: WatchedPair, watched: Watched) -> str:
    """How it stands, in words."""
    model, baseline, at = pair.model, pair.baseline, f"{pair.stopped or 0:,}"
    match pair.state:
        case WatchState.SHOWN:
            return f"Stop: {model} is better than {baseline}, shown at user {at}."
        case WatchState.OPPOSITE:
            return f"Stop: {baseline} is better than {model}, shown at user {at}."
        case WatchState.CLOSE:
            return f"Stop: known to less than {watched.difference:g} either way, at user {at}, without a winner."
        case WatchState.GOING_ON:
            return "Go on: nothing is shown yet."
        case WatchState.EARLY:
            return "Go on: too few users tell the two apart for an interval."
        case WatchState.REFUSED:
            return f"No promise can be made: {'; '.join(pair.reasons)}."


def watch_plain(watched: Watched) -> dict[str, Any]:
    """For JSON."""
    return {
        "level": watched.level,
        "planned": watched.planned,
        "difference": watched.difference,
        "watched": [
            {"model": pair.model, "baseline": pair.baseline, "metric": pair.metric, "estimator": pair.estimator,
             "estimand": pair.estimand, "state": str(pair.state), "stopped": pair.stopped,
             "reasons": list(pair.reasons)}
            for pair in watched.pairs
        ],
        "looks": watched.table().to_dicts(),
        "messages": [
            {"code": each.code, "severity": str(each.severity), "text": str(each), **each.numbers}
            for each in watched.messages
        ],
    }  # fmt: skip


def watch_chart(watched: Watched) -> Any:
    """The difference and its interval over the number of users, a panel for each comparison."""
    alt = altair(WHO)
    panels = []
    for pair in watched.pairs:
        rows = watched.table().filter(
            pl.col("metric") == pair.metric, pl.col("estimator") == pair.estimator, pl.col("model") == pair.model,
            pl.col("baseline") == pair.baseline, pl.col("low").is_not_nan(),
        ).select("users", "difference", "low", "high").to_dicts()  # fmt: skip
        base = alt.Chart(alt.Data(values=rows))
        axis = alt.Axis(format=",~g", labelOverlap=True, gridColor=GRID)
        if ticks := users_ticks([row["users"] for row in rows]):
            axis.values = ticks
        x = alt.X("users:Q", title="users so far", scale=alt.Scale(type="log", nice=False), axis=axis)
        y = alt.Y("low:Q", title=f"{pair.model} − {pair.baseline}", axis=alt.Axis(gridColor=GRID))
        layers = [
            base.mark_area(color=BAND).encode(x=x, y=y, y2="high:Q"),
            base.mark_line(color=LINE, strokeWidth=2).encode(x=x, y="difference:Q"),
            alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 4], color=ZERO).encode(y="zero:Q"),
        ]
        if pair.stopped is not None:
            mark = alt.Chart(alt.Data(values=[{"at": pair.stopped}]))
            layers.append(mark.mark_rule(color=MARK, strokeWidth=2).encode(x="at:Q"))
        words = sentence(pair, watched) if rows else "Go on: too few users tell the two apart for an interval."
        title = alt.Title(f"{pair.metric}, {pair.estimator}", subtitle=[words], anchor="start")
        panels.append(alt.layer(*layers, width=460, height=240, title=title))
    return alt.vconcat(
        *panels, config=alt.Config(font=TYPEFACE, view=alt.ViewConfig(stroke="#bbbbbb"), background="white", padding=10)
    )


def users_ticks(users: Sequence[int]) -> list[int]:
    """Numbers of users for a logarithmic axis, about evenly apart; none where too few are so round.

    >>> users_ticks([137, 3000])
    [200, 500, 1000, 2000]
    >>> users_ticks([137, 180])
    []
    """
    low, high = min(users, default=0), max(users, default=0)
    found = [
        step * 10**power for power in range(len(str(high))) for step in (1, 2, 5) if low <= step * 10**power <= high
    ]
    return found if len(found) > 1 else []


def watch_picture(watched: Watched, form: str) -> bytes:
    """The chart as the content of a file; HTML holds all it needs, and opens without a network."""
    return picture_or_page(watch_chart(watched), form, who=WHO)
