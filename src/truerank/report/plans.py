"""How much data is needed, what to show, and what is watched while data arrive: as text, plain values and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.wording import option, worded
from truerank.evaluation.design import PlannedDesign
from truerank.evaluation.planning import SamplePlan
from truerank.evaluation.power import PlannedPair
from truerank.evaluation.watch import Watched, WatchedPair, WatchState
from truerank.report.charts import COLOURS, TYPEFACE, alt, altair, picture_or_page
from truerank.report.numbers import number
from truerank.report.text import aligned, plain_messages

PLAN, WATCH = "the chart of a plan", "the picture of what is watched"
MANY_PAIRS = 6  # of one question, beyond which the table shows the one that needs most
MANY_SAVINGS = 12  # lines of one metric, beyond which the table shows single models alone
GRID, LINE, BAND, ZERO = "#eeeeee", "#1f6f8b", "#bcd9e3", "#777777"
NEXT = (
    f"Show them, and evaluate what comes back with {option('exposure designed')} and {option('design DIR')}, this "
    "folder."
)


def plan_text(plan: SamplePlan, *, for_cli: bool = True) -> str:
    """The question, the curve of each pair, and what the data at hand could have shown."""
    first = plan.pairs[0]
    adjusted = "" if plan.sure.family == 1 else f", p adjusted over {plan.sure.family:,} comparisons"
    whom = "exactly these users" if first.components.by_rows else f"the population these {first.cluster}s come from"
    power = f"{plan.sure.power:.0%} power at level {plan.sure.level:g}{adjusted}"
    lines = [f"To see a difference of {plan.difference:g} with {power}, for {whom}:", ""]
    table = plan.table()
    by_question: dict[str, list[PlannedPair]] = {}
    for pair in plan.pairs:
        by_question.setdefault(pair.name, []).append(pair)
    for name, pairs in by_question.items():
        hardest = max(pairs, key=lambda pair: pair.components.variance(pair.components.rows))
        if len(pairs) > MANY_PAIRS:
            lines += [f"{name}: of {len(pairs):,} pairs the one that needs most; JSON and CSV have all.", ""]
        for pair in pairs if len(pairs) <= MANY_PAIRS else [hardest]:
            lines += [f"{name}: {pair.model} against {pair.baseline}", _curve(table, pair), ""]
    sentences = [message.said(for_cli=for_cli) for message in (*plan.messages, *plan.at_hand)]
    lines += [sentence[:1].upper() + sentence[1:] for sentence in sentences]
    return "\n".join(lines).rstrip() + "\n"


def _curve(table: pl.DataFrame, pair: PlannedPair) -> str:
    """A line for each number of rows per user."""
    names = ("metric", "estimator", "reward", "model", "baseline")
    rows = [[f"{pair.row}s per {pair.cluster}", f"{pair.cluster}s needed", f"{pair.row}s in all"]]
    for row in table.filter(**{name: getattr(pair, name) for name in names}).iter_rows(named=True):
        users = "no number" if row["users"] is None else f"{row['users']:,}"
        total = "" if row["rows"] is None else f"{row['rows']:,}"
        rows.append([f"{row['per_user']:,.4g}" + (" (at hand)" if row["at_hand"] else ""), users, total])
        if pair.users is not None:
            rows[-1].append("none" if math.isnan(row["detectable"]) else number(row["detectable"]))
    if pair.users is not None:
        rows[0].append(f"seen with these {pair.users:,} {pair.cluster}s from")
    return aligned(rows, indent="  ")


def plan_plain(plan: SamplePlan) -> dict[str, Any]:
    """For JSON."""
    return {
        "difference": plan.difference,
        "power": plan.sure.power,
        "level": plan.sure.level,
        "comparisons": plan.sure.family,
        "plan": plan.table().to_dicts(),
        "messages": plain_messages((*plan.messages, *plan.at_hand)),
    }


def plan_chart(plan: SamplePlan) -> Any:
    """Users needed, and the smallest difference that the users at hand show, over rows per user."""
    altair(PLAN)
    pair = plan.pairs[0]
    table = plan.table().with_columns(
        pair=pl.format("{}, {}: {} against {}", "metric", "estimator", "model", "baseline"),
        size=pl.format("{} x {}", "users", pl.col("per_user").round_sig_figs(4)),
    )
    scale = alt.Scale(type="linear" if table["per_user"].n_unique() == 1 else "log", nice=False)
    legend = alt.Legend(orient="bottom", direction="vertical", labelLimit=600)
    x = alt.X("per_user:Q", title=f"{pair.row}s per {pair.cluster}", scale=scale,
              axis=alt.Axis(format="~g", labelOverlap=True, gridColor=GRID))  # fmt: skip

    def panel(column: str, title: str) -> Any:
        rows = table.filter(pl.col(column).is_not_null() & (pl.col(column) > 0)).to_dicts()
        base = alt.Chart(alt.Data(values=rows)).encode(
            x=x,
            y=alt.Y(f"{column}:Q", title=title, scale=alt.Scale(type="log", nice=False),
                    axis=alt.Axis(format=",~r", gridColor=GRID)),
            color=alt.Color("pair:N", title=None, scale=alt.Scale(range=list(COLOURS)), legend=legend),
            tooltip=["pair:N", "per_user:Q", "users:Q", "rows:Q", "detectable:Q"],
        )  # fmt: skip
        at_hand = base.transform_filter("datum.at_hand").mark_point(size=140, filled=True, shape="diamond", opacity=1)
        layers = base.mark_line(strokeWidth=2) + base.mark_circle(size=40, opacity=1) + at_hand
        return layers.properties(width=330, height=260)

    panels = [panel("users", f"{pair.cluster}s needed to see {plan.difference:g}")]
    if pair.users is not None:
        panels.append(panel("detectable", f"difference seen with the {pair.users:,} {pair.cluster}s at hand"))
    title = alt.Title(f"{plan.sure.power:.0%} power at level {plan.sure.level:g}", anchor="start",
                      subtitle=[] if pair.users is None else ["diamonds: the data at hand"])  # fmt: skip
    return alt.hconcat(*panels, title=title, config=_config())


def _config(**more: Any) -> Any:
    return alt.Config(font=TYPEFACE, view=alt.ViewConfig(stroke="#bbbbbb"), **more)


def plan_picture(plan: SamplePlan, form: str) -> bytes:
    """The chart as the content of a file; HTML holds all it needs, and opens without a network."""
    return picture_or_page(plan_chart(plan), form, who=PLAN)


# -------------------------------------------------------------------------------------------------------------- design


def design_text(planned: PlannedDesign, place: Path) -> str:
    """What is to be shown, what that saves against uniform exposure, and how it is evaluated."""
    design, propensity = planned.design, planned.design.pairs["propensity"].to_numpy()
    per_user = np.bincount(design.pairs["user"], minlength=len(design.users))
    few, none = int(np.count_nonzero(per_user < planned.per_user)), int(np.count_nonzero(per_user == 0))
    savings = list(planned.savings)
    if len(savings) > MANY_SAVINGS * len({saving.metric for saving in savings}):
        savings = [saving for saving in savings if not saving.baseline]
    rows = [
        [
            saving.metric,
            f"{saving.model} - {saving.baseline}" if saving.baseline else saving.model,
            "not known" if math.isnan(saving.variance_ratio) else f"{saving.variance_ratio:.3f}",
            f"{saving.uniform_items:,.0f}",
        ]
        for saving in savings
    ]
    header = ["metric", "of", "share of the variance", "uniform items for as much"]
    lines = [
        f"{len(propensity):,} pairs to show, {planned.per_user} items to each of {len(design.users):,} users, with chances "
        f"of {propensity.min():.2g} to {propensity.max():.2g}, in {place / 'shown.parquet'}.",
        *([f"{few:,} of the users have fewer items left to show, {none:,} of them none."] if few else []),
        "",
        f"What {planned.per_user} uniformly chosen items would vary by, and what these are expected to (by the guess "
        "of what is relevant):",
        "",
        aligned([header, *rows], left=(0, 1), indent="  "),
        "",
        f"A model that none of these is like: at most about {1 / planned.uniform:.2g} times the variance of uniform "
        "exposure.",
        worded(NEXT, for_cli=True),
    ]
    return "\n".join(lines) + "\n"


def design_plain(planned: PlannedDesign) -> dict[str, Any]:
    """For JSON."""
    return {
        "design": dict(planned.design.settings),
        "pairs": len(planned.design.pairs),
        "savings": planned.saved().to_dicts(),
    }


# --------------------------------------------------------------------------------------------------------------- watch


def watch_text(watched: Watched) -> str:
    """A few lines for each comparison: how it stands, and what to do."""
    lines = []
    for pair in watched.pairs:
        look = pair.look
        interval = ", no interval yet"
        if not math.isnan(look.low):
            bounds = f"{number(look.low)} to {number(look.high)}"
            interval = f", {watched.level:.0%} interval for repeated looks {bounds}"
        lines += [
            str(pair),
            f"  the difference of {pair.estimand}",
            f"  {look.users:,} users, {look.informative:,} of whom tell the two apart",
            f"  difference {number(look.difference)}{interval}",
            f"  {sentence(pair, watched)}",
            *(f"  {text[:1].upper()}{text[1:]}." for text in map(str, pair.cautions)),
            "",
        ]
    return "\n".join(lines)


def sentence(pair: WatchedPair, watched: Watched) -> str:
    """How it stands, in words."""
    model, baseline, users = pair.model, pair.baseline, f"with {pair.look.users:,} users"
    sentences = {
        WatchState.SHOWN: f"Stop: {model} is better than {baseline}, significant {users}.",
        WatchState.OPPOSITE: f"Stop: {baseline} is better than {model}, significant {users}.",
        WatchState.GOING_ON: "Go on: not significant yet.",
        WatchState.EARLY: "Go on: too few users tell the two apart for an interval.",
        WatchState.REFUSED: f"No promise can be made: {'; '.join(map(str, pair.reasons))}.",
    }
    close = f"Stop: known to less than {watched.difference or 0:g} either way {users}, without a winner."
    return sentences.get(pair.state, close)


def watch_plain(watched: Watched) -> dict[str, Any]:
    """For JSON."""
    return {
        "level": watched.level,
        "planned": watched.planned,
        "difference": watched.difference,
        "watched": [
            {name: getattr(pair, name) for name in ("model", "baseline", "metric", "estimator", "estimand")}
            | {"state": str(pair.state)}
            | {name: getattr(pair.look, name) for name in ("users", "informative", "difference", "low", "high")}
            | {"reasons": plain_messages(pair.reasons), "cautions": plain_messages(pair.cautions)}
            for pair in watched.pairs
        ],
        "messages": plain_messages(watched.messages),
    }


def watch_chart(*looks: Watched) -> Any:
    """The difference and its interval at each look, by the number of users; a panel for each pair."""
    altair(WATCH)
    panels = []
    tables = [watched.table() for watched in looks]
    for place, pair in enumerate(looks[-1].pairs):
        rows = [row for table in tables if not math.isnan((row := table.row(place, named=True))["low"])]
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
    return alt.vconcat(*panels, config=_config(background="white", padding=10))


def users_ticks(users: Sequence[int]) -> list[int]:
    """Numbers of users for a logarithmic axis, about evenly apart; none where too few are so round.

    >>> users_ticks([137, 3000])
    [200, 500, 1000, 2000]
    >>> users_ticks([137, 180])
    []
    """
    low, high = min(users, default=0), max(users, default=0)
    steps = (step * 10**power for power in range(len(str(high))) for step in (1, 2, 5))
    ticks = [step for step in steps if low <= step <= high]
    return ticks if len(ticks) > 1 else []


def watch_picture(watched: Watched, form: str) -> bytes:
    """The chart as the content of a file; HTML holds all it needs, and opens without a network."""
    return picture_or_page(watch_chart(watched), form, who=WATCH)
