"""The page of the study of targeted exposure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truerank.report.reliability_charts import TYPEFACE, altair
from truerank.report.study_pages import WHO, StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

COLOURS = {"known": "#0072B2", "difference": "#56B4E9", "not known": "#C44E00", "random list": "#6E6E6E"}
BAR = "#777777"


def page(result: StudyResult) -> StudyPage:
    rows, settings = result.rows("questions"), result.settings
    kinds = {row["kind"]: row for row in result.rows("kinds")}
    draws, every, per_user = settings["draws"], settings["every"], settings["per user"]
    world = "A world of the shape of KuaiRec's block" if result.synthetic else "KuaiRec's fully observed block"
    lines = [
        f"{world} ({settings['users']:,} users, {settings['items']:,} items), {draws:,} draws for each cut-off, designed for Precision@K and DCG@K of {', '.join(settings['known'])}; the same users in every draw. A share is the variance over that of Horvitz-Thompson from {per_user} uniform items, which is known exactly.",
        "",
        f"| Hájek, Precision and DCG, K = {', '.join(map(str, settings['cutoffs']))} | largest share of the variance | bar | intervals that hold, mean | lowest |",
        "|---|---|---|---|---|",
        *(
            f"| {kind} | {row['share']:.3f} | {row['bar']:g} | {row['covered']:.0%} | {row['lowest']:.0%} |"
            for kind, row in kinds.items()
        ),
        "",
        f"The Monte-Carlo error of a share is about {(2 / draws) ** 0.5:.0%} of it. Intervals are for exactly these users (Hájek's and Deville's variance), made of every fifth draw, so that a share that holds has an error of about {(0.05 * 0.95 * every / draws) ** 0.5:.0%}. Lists unlike any that the design knew are not to be trusted at small K: few of their rows are drawn, each stands for many, and `truerank evaluate` says so.",
        "",
    ]
    for metric in dict.fromkeys(row["metric"] for row in rows):
        lines += [
            f"<details><summary>{metric}</summary>",
            "",
            "| of | estimator | share of the variance | bias in standard errors | covered | wrong sign |",
            "|---|---|---|---|---|---|",
            *(_line(row) for row in rows if row["metric"] == metric),
            "",
            "</details>",
            "",
        ]
    return StudyPage(
        "What targeted exposure saves on KuaiRec",
        chart(rows),
        "Variance of targeted exposure over that of uniform exposure, by model and cut-off",
        _sentences({kind: row["share"] for kind, row in kinds.items()}, per_user),
        lines[:-1],
    )


def _sentences(share: dict[str, float], per_user: int) -> tuple[str, str, str]:
    """What the largest share of each kind says."""
    as_many = per_user / share["known"]
    gain = (
        "gain too, because they resemble the known ones"
        if share["not known"] < 1
        else f"may lose: up to {share['not known']:.1f} times the variance"
    )
    return (
        f"Twenty items per user that were chosen for three models (the defaults of `truerank plan exposure --allocate`) tell as much about these models as {'hundreds of' if as_many >= 200 else f'{as_many:.0f}'} random ones.",
        f"Models that were not known when the items were chosen {gain}.",
        "Only a list that resembles nothing, a random one, is known worse than from uniform exposure."
        if share["random list"] > 1 > share["not known"]
        else f"A list that resembles nothing, a random one, has up to {share['random list']:.1f} times the variance of uniform exposure.",
    )


def _line(row: Row) -> str:
    wrong = f"{row['wrong']:.0%}" if row["kind"] == "difference" else ""
    covered = "" if row["covered"] is None else f"{row['covered']:.0%}"
    bias = "" if row["bias"] is None else f"{row['bias']:+.1f}"
    return f"| {row['what']} ({row['kind']}) | {row['estimator']} | {row['share']:.3f} | {bias} | {covered} | {wrong} |"


def chart(found: Sequence[Row]) -> Any:
    """A point for each model or difference: its variance over that of uniform exposure, Hájek, Precision and DCG."""
    alt = altair(WHO)
    rows = [
        {"what": row["what"], "kind": row["kind"], "share": row["share"], "metric": row["metric"]}
        for row in found
        if row["estimator"] == "hajek" and row["share"] > 0
    ]
    order = [what for kind in COLOURS for what in dict.fromkeys(row["what"] for row in rows if row["kind"] == kind)]
    metrics = sorted({row["metric"] for row in rows}, key=lambda name: (int(name.split("@")[1]), name))
    x = alt.X("share:Q", title="variance over that of 20 uniform items (Horvitz-Thompson)",
              scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", values=[0.001, 0.01, 0.1, 1, 2]))  # fmt: skip
    points = alt.Chart(alt.Data(values=rows)).mark_point(size=70, filled=True, opacity=0.85).encode(
        x=x,
        y=alt.Y("what:N", sort=order, title=None),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
        shape=alt.Shape("metric:N", title=None, sort=metrics),
    )  # fmt: skip
    one = alt.Chart(alt.Data(values=[{"at": 1}])).mark_rule(strokeDash=[4, 4], color=BAR).encode(x="at:Q")
    axis = alt.AxisConfig(labelFontSize=12, titleFontSize=12, gridColor="#e8e8e8", labelLimit=300)
    config = alt.Config(font=TYPEFACE, padding=10, background="white", axis=axis, view=alt.ViewConfig(stroke=None))
    return alt.layer(one, points, width=430, height=260, config=config)
