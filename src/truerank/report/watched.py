"""What is watched while data arrive: as text, as plain values, and as a picture of the looks made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from truerank.core.messages import Message
from truerank.evaluation.watch import Watched, WatchedPair, WatchState
from truerank.report.charts import TYPEFACE, altair, picture_or_page
from truerank.report.numbers import number

WHO = "the picture of what is watched"
GRID, LINE, BAND, ZERO = "#eeeeee", "#1f6f8b", "#bcd9e3", "#777777"


def watch_text(watched: Watched) -> str:
    """A few lines for each comparison: how it stands, and what to do."""
    lines = []
    for pair in watched.pairs:
        look = pair.look
        lines += [
            str(pair),
            f"  the difference of {pair.estimand}",
            f"  {look.users:,} users, {look.informative:,} of whom tell the two apart",
            f"  difference {number(look.difference)}{_interval(pair, watched.level)}",
            f"  {sentence(pair, watched)}",
            *(f"  {text[:1].upper()}{text[1:]}." for text in map(str, pair.cautions)),
            "",
        ]
    return "\n".join(lines)


def _interval(pair: WatchedPair, level: float) -> str:
    look = pair.look
    if math.isnan(look.low):
        return ", no interval yet"
    return f", {level:.0%} interval for repeated looks {number(look.low)} to {number(look.high)}"


def sentence(pair: WatchedPair, watched: Watched) -> str:
    """How it stands, in words."""
    model, baseline, users = pair.model, pair.baseline, f"with {pair.look.users:,} users"
    match pair.state:
        case WatchState.SHOWN:
            return f"Stop: {model} is better than {baseline}, significant {users}."
        case WatchState.OPPOSITE:
            return f"Stop: {baseline} is better than {model}, significant {users}."
        case WatchState.CLOSE:
            return f"Stop: known to less than {watched.difference:g} either way {users}, without a winner."
        case WatchState.GOING_ON:
            return "Go on: not significant yet."
        case WatchState.EARLY:
            return "Go on: too few users tell the two apart for an interval."
        case WatchState.REFUSED:
            return f"No promise can be made: {'; '.join(map(str, pair.reasons))}."


def watch_plain(watched: Watched) -> dict[str, Any]:
    """For JSON."""
    return {
        "level": watched.level,
        "planned": watched.planned,
        "difference": watched.difference,
        "watched": [
            {"model": pair.model, "baseline": pair.baseline, "metric": pair.metric, "estimator": pair.estimator,
             "estimand": pair.estimand, "state": str(pair.state), "users": pair.look.users,
             "informative": pair.look.informative, "difference": pair.look.difference, "low": pair.look.low,
             "high": pair.look.high, "reasons": _plain(pair.reasons), "cautions": _plain(pair.cautions)}
            for pair in watched.pairs
        ],
        "messages": _plain(watched.messages),
    }  # fmt: skip


def _plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [
        {"code": message.code, "severity": str(message.severity), "text": str(message), **message.numbers}
        for message in messages
    ]


def watch_chart(*looks: Watched) -> Any:
    """The difference and its interval at the looks that were made, by the number of users; a panel for each pair."""
    alt = altair(WHO)
    panels = []
    tables = [watched.table() for watched in looks]
    for at, pair in enumerate(looks[-1].pairs):
        rows = [row for table in tables if not math.isnan((row := table.row(at, named=True))["low"])]
        base = alt.Chart(alt.Data(values=rows))
        axis = alt.Axis(format=",~g", labelOverlap=True, gridColor=GRID)
        if ticks := users_ticks([row["users"] for row in rows]):
            axis.values = ticks
        scale = alt.Scale(type="log" if len(rows) > 1 else "linear", nice=False)
        x = alt.X("users:Q", title="users so far", scale=scale, axis=axis)
        y = alt.Y("low:Q", title=f"{pair.model} − {pair.baseline}", axis=alt.Axis(gridColor=GRID))
        layers = [
            base.mark_rule(color=BAND, strokeWidth=4).encode(x=x, y=y, y2="high:Q"),
            base.mark_point(color=LINE, filled=True, opacity=1).encode(x=x, y="difference:Q"),
            alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 4], color=ZERO).encode(y="zero:Q"),
        ]
        title = alt.Title(f"{pair.metric}, {pair.estimator}", subtitle=[sentence(pair, looks[-1])], anchor="start")
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
