"""The page of the study of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truerank.report.reliability_charts import TYPEFACE, altair
from truerank.report.study_pages import WHO, StudyPage
from truerank.studies.own.power import CLOSE
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row


def page(result: StudyResult) -> StudyPage:
    rows = result.rows("worlds")
    close = [row for row in rows if abs(row["apart"]) <= CLOSE]
    furthest = max(rows, key=lambda row: abs(row["apart"]))
    return StudyPage(
        "Does a plan keep its word?",
        chart(rows),
        "Power as planned against how often the difference was shown: dots along the diagonal",
        (
            f"In {len(rows)} worlds whose truth is known the power was planned from a pilot, and then {result.settings['draws']:,} data sets of the planned size were drawn and tested as `truerank evaluate` tests.",
            f"{len(close)} plans are within 3 points of what happened (the green band); the furthest, {furthest['world']}, is off by {100 * abs(furthest['apart']):.1f}.",
            "The pilot has half as many judged items or sessions per user as the plan, and so many users that its own luck does not matter; a pilot of yours has luck of its own.",
        ),
        [
            "What the worlds do not cover: single users who hold most of the spread (rewards with very long tails), and models that only a handful of users tells apart; plans for these are rougher.",
            "",
            "| world | true difference | planned | shown | apart (points) |",
            "|---|---|---|---|---|",
            *(
                f"| {row['world']} | {row['difference']:.4f} | {row['planned']:.1%} | {row['shown']:.1%} ± {row['noise']:.1%} | {100 * row['apart']:+.1f} |"
                for row in rows
            ),
        ],
    )


def chart(rows: Sequence[Row]) -> Any:
    """Planned against shown; a dot on the line is a plan that kept its word."""
    library = altair(WHO)
    values = [{name: row[name] for name in ("world", "planned", "shown")} for row in rows]
    share = library.Scale(domain=[0.1, 0.9])
    ends = [{"x": at, "low": at - CLOSE, "high": at + CLOSE} for at in (0.1, 0.9)]
    band = library.Chart(library.Data(values=ends)).mark_area(color="#d9ead3", opacity=0.8, clip=True)
    dots = library.Chart(library.Data(values=values)).mark_circle(size=70, color="#1f6f8b", opacity=0.9)
    axis = library.Axis(format="%", grid=False)
    return (
        (
            band.encode(x=library.X("x:Q", scale=share), y=library.Y("low:Q", scale=share), y2="high:Q")
            + dots.encode(
                x=library.X("planned:Q", title="power as planned", scale=share, axis=axis),
                y=library.Y("shown:Q", title="how often the difference was shown", scale=share, axis=axis),
            )
        )
        .properties(width=380, height=380)
        .configure(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb"))
    )
