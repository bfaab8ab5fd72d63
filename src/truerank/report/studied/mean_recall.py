"""The page of the mean recall over users, which `truerank study truth` measures too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from truerank.report.reliability_charts import TYPEFACE, altair
from truerank.report.reliability_layout import COLOURS
from truerank.report.study_charts import dot, ranges
from truerank.report.study_pages import WHO, StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row
from truerank.studies.truth.found_means import COVERED, CUTOFF, MANY, NOISE, OFF, REAL, SHOWN

SPREAD = "kuairec"  # the name of the second picture
GLANCE = (5, 50, 500)  # cut-offs of the table of KuaiRec
WHY = {
    "rising recall": "users who like much have the higher recall, the correction goes downwards and stops too early. "
    "`recall-rises` takes verdicts away.",
    "30% like nothing": "no data tell how many users like nothing, and their share is taken as 0. `like-nothing` is the "
    "caution: it shows what the value is for every share that can be. With 10 judged items `few-with-relevant` takes "
    "verdicts away.",
    "kuairec": "lists of 50 hold most that is relevant, values stay too low, and the interval allows for two fifths of "
    "the correction only. `large-correction` is the caution.",
}  # of worlds with cells that fall short


def page(result: StudyResult) -> StudyPage:
    rows, spread = result.rows("cells"), result.rows("spread")
    ordered = sorted(rows, key=lambda row: (row["judged"], row["what"], row["k"]))
    dots = [dot(f"{row['what']}, K = {row['k']}", f"{row['judged']} judged items", row["error"]) for row in ordered]
    off = [row for row in rows if abs(row["published_bias"]) > OFF]
    covered = [row["covered"] for row in rows if row["judged"] >= MANY and row["covered"] is not None]
    return StudyPage(
        "Mean recall from few judged items, measured",
        ranges(dots, "error of corrected, over that of the published mean", at=1.0),
        "Error of the corrected mean over that of the published one, by model and cut-off",
        (
            "Where users have few judged items, those without a relevant one among them drop out of the published mean, and it is biased; corrected models them.",
            f"Left of the dashed line corrected has the smaller error: in {better(rows)} of {len(rows)} cells, and in {better(off)} of the {len(off)} in which the published mean is more than {OFF * 100:.0f} % off.",
            f"Its 95 % intervals held the truth less often than in {COVERED * 100:.0f} % of draws in {sum(each < COVERED for each in covered)} of {len(covered)} cells with {MANY} judged items or more; such a share has a Monte-Carlo error of {_rough(rows):.1f} points.",
        ),
        [
            "Users are redrawn and N̄ items of each judged uniformly, in "
            "every draw; the truth is the mean recall over all users with a relevant item. *Error* is the root mean squared "
            "error over that of the published mean in the same draws (below 1 is better), *bias* a share of the truth, "
            "*covered* how often the 95 % interval holds the truth, *warned* how often the tool takes verdicts away. The seed "
            "was fixed before the first draw, and the estimator was not changed after it; the warnings `recall-rises` and "
            "`large-correction` were added after looking at draws of this seed; the second is a caution, which takes no verdict "
            "away and is not counted as *warned*.",
            "",
            *real(result),
            "## The bars",
            "",
            *bars(result.rows("bars"), result.rows("missed")),
            "",
            *costs(result),
            *(line for world in dict.fromkeys(row["world"] for row in rows) for line in table(rows, world)),
        ],
        pictures={SPREAD: estimates(spread)} if spread else {},
    )


def better(rows: Sequence[Row]) -> int:
    return sum(row["error"] < 1 for row in rows)


def bars(reached: Sequence[Row], missed: Sequence[Row]) -> list[str]:
    """What was to be reached, in how many cells it is, and where it is not."""
    lines = ["| of corrected | bar | cells that hold it | of | worst |", "|---|---|---|---|---|"]
    for row in reached:
        bar = f"{row['bar'] * 100:.0f} %" if row["of intervals"] else f"{row['bar']:g}"
        worst = number(row["worst"], ".0%" if row["of intervals"] else ".2f")
        lines.append(f"| {row['about']} | {bar} | {row['held']} | {row['cells']} | {worst} |")
    lines += ["", f"A cell holds a bar if it lies beyond it by no more than {NOISE} of its own Monte-Carlo errors."]
    if not missed:
        return lines
    cells = [f"- {row['world']}, {row['what']}, K = {row['k']}, {row['judged']} judged: {_miss(row)}" for row in missed]
    worlds = {row["world"] for row in missed}
    why = [f"- {world}: {reason}" for world, reason in WHY.items() if world in worlds]
    told = "Why, and what the tool says there; a caution takes no verdict away, and is not counted as *warned of*:"
    return [*lines, "", told, "", *why, "", "<details><summary>Cells that fall short</summary>", "", *cells, "",
            "</details>"]  # fmt: skip


def _rough(rows: Sequence[Row]) -> float:
    """The Monte-Carlo error of a coverage of 95 %, in points."""
    return 100 * math.sqrt(0.95 * 0.05 / min(row["draws"] for row in rows))


def _miss(row: Row) -> str:
    if row["of intervals"]:
        return f"held in {row['covered']:.0%}, warned of in {row['warned']:.0%}"
    return f"error {row['error']:.2f} (bar {row['bar']:g}), warned of in {row['warned']:.0%}"


def number(value: float | None, form: str = ".2f") -> str:
    return "" if value is None else format(value, form)


def real(result: StudyResult) -> list[str]:
    """KuaiRec at one glance: the picture of estimates, and error, bias and coverage by number judged."""
    own = [row for row in result.rows("cells") if row["world"] == REAL and row["k"] in GLANCE]
    if not own:
        return []
    judged = sorted({row["judged"] for row in own})
    lines = {
        (row["what"], row["k"]): [
            f"{each['error']:.2f}, {each['bias']:+.0%}, {number(each['covered'], '.0%')}"
            for each in own
            if (each["what"], each["k"]) == (row["what"], row["k"])
        ]
        for row in own
    }
    return [
        "## On KuaiRec",
        "",
        f"![Estimates of mean Recall@{CUTOFF} on KuaiRec, over the truth: where 95 % of them lie, and their mean]({result.study}-{SPREAD}.svg)",
        "",
        f"Bars: where 95 % of the estimates of Recall@{CUTOFF} lie; dashed: the truth. Below, of `corrected`: error, bias, how often the interval held the truth, from {result.settings['draws']:,} draws.",
        "",
        "| KuaiRec | " + " | ".join(f"{n} judged" for n in judged) + " |",
        "|---|" + "---|" * len(judged),
        *(f"| {what}, K = {k} | {' | '.join(figures)} |" for (what, k), figures in lines.items()),
        "",
    ]


def costs(result: StudyResult) -> list[str]:
    """What a correction costs where none is needed, and what it does to differences."""
    said = result.settings
    return [
        "## What it costs",
        "",
        f"- **Where the published mean is right already** (within 5 %), a correction has little to gain: {number(said['least where right'])} to "
        f"{number(said['most where right'])} times its error (median {number(said['median where right'])}).",
        _worst(result.rows("cells")),
        f"- **Differences** from popularity have {number(said['median of differences'])} times the error of `published` (median of {said['differences']} "
        f"cells), and a larger one in {said['worse differences']} of them, up to {number(said['most of differences'])} times: show both. The right sign was had in "
        f"{number(said['right signs'], '.0%')} of all draws.",
        "- **Not claimed**: that it is unbiased, or that it improves every comparison.",
        "",
    ]


def _worst(rows: Sequence[Row]) -> str:
    worst = max(rows, key=lambda row: row["error"])
    return (
        f"- **The largest of all errors** is {worst['error']:.2f} times that of the published mean: {worst['world']}, {worst['what']}, "
        f"K = {worst['k']}, {worst['judged']} judged, where the published mean is off by {worst['published_bias']:+.0%}, corrected by "
        f"{worst['bias']:+.0%}, and the tool warned in {worst['warned']:.0%} of draws."
    )


def table(rows: Sequence[Row], world: str) -> list[str]:
    own = [row for row in rows if row["world"] == world]
    return [
        f"## {world}, {min(row['draws'] for row in own):,} draws",
        "",
        "<details><summary>all cells</summary>",
        "",
        "| model | K | N̄ | truth | published bias | corrected error | bias | covered | warned | weighted error | shrunk error |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {row['what']} | {row['k']} | {row['judged']} | {row['truth']:.4f} | {row['published_bias']:+.1%} | {row['error']:.2f} | "
            f"{row['bias']:+.1%} | {number(row['covered'], '.0%')} | {row['warned']:.0%} | {number(row['weighted'])} | {number(row['shrunk'])} |"
            for row in own
        ),
        "",
        "</details>",
        "",
    ]


def estimates(rows: Sequence[Row]) -> Any:
    """Where 95 % of the estimates of Recall@50 lie, over the truth, by judged items per user."""
    library = altair(WHO)
    names, colours = ["published", "corrected"], [COLOURS[1], COLOURS[0]]
    base = library.Chart().encode(
        y=library.Y("judged:O", title="judged items per user", sort="ascending"),
        yOffset=library.YOffset("estimator:N", sort=names),
        color=library.Color("estimator:N", title=None, sort=names, scale=library.Scale(domain=names, range=colours)),
    )
    x = library.X("low:Q", title="estimate / true mean recall", axis=library.Axis(format="%", gridColor="#eeeeee"))
    bars = base.mark_rule(strokeWidth=3).encode(x=x, x2="high:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x="mean:Q")
    truth = library.Chart().mark_rule(strokeDash=[4, 3], color="#555555").encode(x=library.datum(1.0))
    layered = library.layer(bars, points, truth).properties(width=190, height=150)
    return layered.facet(
        data=library.Data(values=list(rows)), column=library.Column("what:N", title=None, sort=list(SHOWN))
    ).properties(config=library.Config(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb")))
