"""The page of the study of intervals that hold at every look."""

from __future__ import annotations

from typing import Any

from truerank.report.reliability_charts import altair
from truerank.report.study_charts import plain
from truerank.report.study_pages import WHO, StudyPage
from truerank.studies.own.result import StudyResult

WAYS = {"peeked": "ordinary interval after every user", "wrong": "truerank watch"}
USUAL, SEQUENCE, BAR = "#C44E00", "#0072B2", "#777777"


def page(result: StudyResult) -> StudyPage:
    rows, users, runs = result.rows("streams"), result.settings["users"], result.settings["runs"]
    equal, better = ([row for row in rows if (row["fixed"] is None) == flag] for flag in (True, False))
    usual, ratio = [row["peeked"] for row in rows], [row["median"] / row["fixed"] for row in better]
    most = max(row["wrong"] for row in rows)
    return StudyPage(
        "Does an interval that holds at every look keep its word?",
        chart(rows),
        "Ever wrong: an ordinary interval looked at after every user, and the interval of truerank watch",
        (
            f"Looking at an ordinary 95 % interval after every user is wrong at some look in {min(usual):.0%} to {max(usual):.0%} of all runs.",
            f"The interval of `truerank watch` is ever wrong in at most {most:.1%} of them (the bar is 5 %).",
            "A difference that is there is shown after about as many users as a single test needs that looks once: "
            f"the median stop is at {min(ratio):.2f} to {max(ratio):.2f} of its size (the bar is 1.2).",
        ),
        [
            f"{runs:,} runs of {users:,} users each, looked at after every user from the {result.settings['first look']}th on who tells the models apart; planned for the size of the single test (80 % power), for equal models for {users:,}.",
            "",
            "| two equal models | ever wrong | ordinary interval ever wrong |",
            "|---|---|---|",
            *(f"| {row['stream']} | {row['wrong']:.1%} | {row['peeked']:.0%} |" for row in equal),
            "",
            f"| one is better | ever wrong | shown within {users:,} | users that a single test needs | median stop | ratio |",
            "|---|---|---|---|---|---|",
            *(
                f"| {row['stream']} | {row['wrong']:.1%} | {row['shown']:.1%} | {row['fixed']:,.0f} | {row['median']:,.0f} | {row['median'] / row['fixed']:.2f} |"
                for row in better
            ),
        ],
    )


def chart(rows: Any) -> Any:
    """For each stream two bars: how often an ordinary interval and the sequence are ever wrong."""
    alt = altair(WHO)
    values = [
        {"stream": row["stream"], "way": name, "share": row[key]} for row in rows for key, name in WAYS.items()
    ]  # fmt: skip
    order = list(dict.fromkeys(row["stream"] for row in rows))
    bars = alt.Chart(alt.Data(values=values)).mark_bar(height=8).encode(
        x=alt.X("share:Q", title="runs in which it is ever wrong", axis=alt.Axis(format="%", tickCount=6)),
        y=alt.Y("stream:N", sort=order, title=None),
        yOffset=alt.YOffset("way:N", sort=list(WAYS.values())),
        color=alt.Color("way:N", title=None, scale=alt.Scale(domain=list(WAYS.values()), range=[USUAL, SEQUENCE]),
                        legend=alt.Legend(orient="top", labelLimit=400)),
    )  # fmt: skip
    promised = alt.Chart(alt.Data(values=[{"at": 0.05}])).mark_rule(strokeDash=[4, 4], color=BAR).encode(x="at:Q")
    return alt.layer(bars, promised, width=400, height=260, config=plain(alt))
