"""The page of the study of targeted exposure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truerank.report.reliability_charts import altair
from truerank.report.study_charts import plain
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
        f"{world} ({settings['users']:,} users, {settings['items']:,} items), {draws:,} draws for each cut-off, designed for Precision@K and DCG@K of {', '.join(settings['known'])}; the same users in every draw. A share is the variance over that of {per_user} uniform items per user: of the same estimator (Hájek's linearised, the others' exact), or of Horvitz-Thompson, which the bars are about.",
        "",
        f"| Hájek, Precision and DCG, K = {', '.join(map(str, settings['cutoffs']))} | largest share, same estimator | largest share, Horvitz-Thompson | bar | intervals that hold, mean | lowest |",
        "|---|---|---|---|---|---|",
        *(
            f"| {kind} | {row['like']:.3f} | {row['share']:.3f} | {row['bar']:g} | {row['covered']:.0%} | {row['lowest']:.0%} |"
            for kind, row in kinds.items()
        ),
        "",
        f"The Monte-Carlo error of a share is about {(2 / draws) ** 0.5:.0%} of it. Intervals are for exactly these users (Hájek's and Deville's variance), made of one draw in {every}, so that a share that holds has an error of about {(0.05 * 0.95 * every / draws) ** 0.5:.0%}. Lists unlike any that the design knew are not to be trusted at small K: few of their rows are drawn, each stands for many, and `truerank evaluate` says so.",
        "",
    ]
    for metric in dict.fromkeys(row["metric"] for row in rows):
        lines += [
            f"<details><summary>{metric}</summary>",
            "",
            "| of | estimator | share, same estimator | share, Horvitz-Thompson or pooled | bias in standard errors | covered | wrong sign |",
            "|---|---|---|---|---|---|---|",
            *(_line(row) for row in rows if row["metric"] == metric),
            "",
            "</details>",
            "",
        ]
    return StudyPage(
        "What targeted exposure saves on KuaiRec",
        chart(rows, per_user),
        "Variance of targeted exposure over that of uniform exposure, by model and cut-off",
        _sentences(rows, per_user, len(settings["known"])),
        lines[:-1],
    )


def _sentences(rows: Sequence[Row], per_user: int, n_known: int) -> tuple[str, str, str]:
    """What the shares of each kind say, each against the same estimator from uniform items."""
    like = {
        kind: [row["like"] for row in rows if row["kind"] == kind and row["estimator"] == "hajek"] for kind in COLOURS
    }
    as_many, other = per_user / max(like["known"]), like["not known"]
    gains = sum(each < 1 for each in other)
    return (
        f"{per_user} items per user that were chosen for {n_known} models (the defaults of `truerank plan exposure --allocate`) tell as much about these models as {'hundreds of' if as_many >= 200 else f'{as_many:.0f}'} random ones.",
        f"Models that were not known when the items were chosen are known better too in {gains} of {len(other)} cases: they have {min(other):.2f} to {max(other):.2f} times the variance of uniform exposure.",
        f"A list that resembles nothing, a random one, has {min(like['random list']):.1f} to {max(like['random list']):.1f} times that variance.",
    )


def _line(row: Row) -> str:
    wrong = f"{row['wrong']:.0%}" if row["kind"] == "difference" else ""
    covered = "" if row["covered"] is None else f"{row['covered']:.0%}"
    bias = "" if row["bias"] is None else f"{row['bias']:+.1f}"
    return f"| {row['what']} ({row['kind']}) | {row['estimator']} | {row['like']:.3f} | {row['share']:.3f} | {bias} | {covered} | {wrong} |"


def chart(found: Sequence[Row], per_user: int) -> Any:
    """A point for each model or difference: Hájek's variance over that from uniform exposure, Precision and DCG."""
    alt = altair(WHO)
    rows = [
        {"what": row["what"], "kind": row["kind"], "share": row["like"], "metric": row["metric"]}
        for row in found
        if row["estimator"] == "hajek" and row["like"] > 0
    ]
    order = [what for kind in COLOURS for what in dict.fromkeys(row["what"] for row in rows if row["kind"] == kind)]
    metrics = sorted({row["metric"] for row in rows}, key=lambda name: (int(name.split("@")[1]), name))
    x = alt.X("share:Q", title=f"variance over that of {per_user} uniform items",
              scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", values=[0.001, 0.01, 0.1, 1, 2]))  # fmt: skip
    points = alt.Chart(alt.Data(values=rows)).mark_point(size=70, filled=True, opacity=0.85).encode(
        x=x,
        y=alt.Y("what:N", sort=order, title=None),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
        shape=alt.Shape("metric:N", title=None, sort=metrics),
    )  # fmt: skip
    one = alt.Chart(alt.Data(values=[{"at": 1}])).mark_rule(strokeDash=[4, 4], color=BAR).encode(x="at:Q")
    return alt.layer(one, points, width=430, height=260, config=plain(alt))
