"""A plan of how much data is needed: as text, as plain values, and as a chart."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from truerank.evaluation.planning import SamplePlan
from truerank.evaluation.power import PlannedPair
from truerank.report.charts import COLOURS, TYPEFACE, altair, picture_or_page
from truerank.report.numbers import number

WHO = "the chart of a plan"
MANY = 6  # pairs of one question, beyond which the table shows the one that needs most
GRID = "#eeeeee"


def plan_text(plan: SamplePlan, *, for_cli: bool = True) -> str:
    """What is asked, the curve of each pair, and what the data at hand could have shown."""
    first = plan.pairs[0]
    adjusted = "" if plan.sure.family == 1 else f", p adjusted over {plan.sure.family:,} comparisons"
    whom = "exactly these users" if first.components.by_rows else f"the population these {first.cluster}s come from"
    lines = [
        f"To see a difference of {plan.difference:g} with {plan.sure.power:.0%} power at level {plan.sure.level:g}"
        f"{adjusted}, for {whom}:",
        "",
    ]
    table = plan.table()
    for name, pairs in _by_question(plan).items():
        hardest = max(pairs, key=lambda pair: pair.components.variance(pair.components.rows))
        shown = pairs if len(pairs) <= MANY else [hardest]
        if len(shown) < len(pairs):
            lines += [f"{name}: of {len(pairs):,} pairs the one that needs most; JSON and CSV have all.", ""]
        for pair in shown:
            lines += [f"{name}: {pair.model} against {pair.baseline}", _curve(table, pair), ""]
    said = [message.said(for_cli=for_cli) for message in (*plan.messages, *plan.at_hand)]
    lines += [sentence[:1].upper() + sentence[1:] for sentence in said]
    return "\n".join(lines).rstrip() + "\n"


def _by_question(plan: SamplePlan) -> dict[str, list[PlannedPair]]:
    found: dict[str, list[PlannedPair]] = {}
    for pair in plan.pairs:
        found.setdefault(pair.name, []).append(pair)
    return found


def _own(table: pl.DataFrame, pair: PlannedPair) -> pl.DataFrame:
    names = ("metric", "estimator", "reward", "model", "baseline")
    return table.filter(*(pl.col(name) == getattr(pair, name) for name in names))


def _curve(table: pl.DataFrame, pair: PlannedPair) -> str:
    """A line for each number of rows per user."""
    header = [f"{pair.row}s per {pair.cluster}", f"{pair.cluster}s needed", f"{pair.row}s in all"]
    at_hand = pair.users is not None
    if at_hand:
        header.append(f"seen with these {pair.users:,} {pair.cluster}s from")
    rows = [header]
    for row in _own(table, pair).iter_rows(named=True):
        cells = [f"{row['per_user']:,.4g}" + (" (at hand)" if row["at_hand"] else "")]
        cells += ["no number" if row["users"] is None else f"{row['users']:,}"]
        cells += ["" if row["rows"] is None else f"{row['rows']:,}"]
        rows.append(cells + ([_smallest(row["detectable"])] if at_hand else []))
    width = [max(len(row[at]) for row in rows) for at in range(len(header))]
    return "\n".join("  " + "  ".join(f"{cell:>{width[at]}}" for at, cell in enumerate(row)).rstrip() for row in rows)


def _smallest(difference: float) -> str:
    return "none" if math.isnan(difference) else number(difference)


def plan_plain(plan: SamplePlan) -> dict[str, Any]:
    """For JSON."""
    return {
        "difference": plan.difference,
        "power": plan.sure.power,
        "level": plan.sure.level,
        "comparisons": plan.sure.family,
        "plan": plan.table().to_dicts(),
        "messages": [
            {"code": each.code, "severity": str(each.severity), "text": str(each), **each.numbers}
            for each in (*plan.messages, *plan.at_hand)
        ],
    }


def plan_chart(plan: SamplePlan) -> Any:
    """Users needed, and the smallest difference that the users at hand show, over rows per user."""
    library = altair(WHO)
    pair = plan.pairs[0]
    table = plan.table().with_columns(
        pair=pl.format("{}, {}: {} against {}", "metric", "estimator", "model", "baseline"),
        size=pl.format("{} x {}", "users", pl.col("per_user").round_sig_figs(4)),
    )
    alone = table["per_user"].n_unique() == 1
    x = library.X(
        "per_user:Q", title=f"{pair.row}s per {pair.cluster}",
        axis=library.Axis(format="~g", labelOverlap=True, gridColor=GRID),
        scale=library.Scale(type="linear" if alone else "log", nice=False),
    )  # fmt: skip
    colour = library.Color(
        "pair:N", title=None, scale=library.Scale(range=list(COLOURS)),
        legend=library.Legend(orient="bottom", direction="vertical", labelLimit=600),
    )  # fmt: skip

    def panel(column: str, title: str) -> Any:
        known = table.filter(pl.col(column).is_not_null() & (pl.col(column) > 0))
        base = library.Chart(library.Data(values=known.to_dicts())).encode(
            x=x,
            y=library.Y(
                f"{column}:Q",
                title=title,
                scale=library.Scale(type="log", nice=False),
                axis=library.Axis(format=",~r", gridColor=GRID),
            ),
            color=colour,
            tooltip=["pair:N", "per_user:Q", "users:Q", "rows:Q", "detectable:Q"],
        )
        hand = base.transform_filter("datum.at_hand").mark_point(size=140, filled=True, shape="diamond", opacity=1)
        return (base.mark_line(strokeWidth=2) + base.mark_circle(size=40, opacity=1) + hand).properties(
            width=330, height=260
        )

    needed = panel("users", f"{pair.cluster}s needed to see {plan.difference:g}")
    panels = [needed]
    if pair.users is not None:
        panels.append(panel("detectable", f"difference seen with the {pair.users:,} {pair.cluster}s at hand"))
    title = f"{plan.sure.power:.0%} power at level {plan.sure.level:g}"
    subtitle = [] if pair.users is None else ["diamonds: the data at hand"]
    return library.hconcat(
        *panels,
        title=library.Title(title, subtitle=subtitle, anchor="start"),
        config=library.Config(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb")),
    )


def plan_picture(plan: SamplePlan, form: str) -> bytes:
    """The chart as the content of a file; HTML holds all it needs, and opens without a network."""
    return picture_or_page(plan_chart(plan), form, who=WHO)
