"""The page of the study of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truerank.report.reliability_charts import altair
from truerank.report.studied.mean_recall import bars as mean_bars
from truerank.report.studied.mean_recall import number
from truerank.report.study_pages import WHO, StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row
from truerank.studies.truth.found import COST, FEW, GOOD, GROUPS, REFERENCE, SHORT, STRATA

COLOURS = ["#0072B2", "#C44E00", "#2A7F62", "#9B3F86", "#6E6E6E", "#B8860B", "#333333"]
COUNTED = {3: "three", 4: "four", 5: "five"}
WORLDS = {
    "kuairec": "KuaiRec (1,411 x 3,327, recommenders from its big matrix)",
    "jester": "Jester (3,600 users x 80 jokes, of which recommenders know 20 others)",
}
EXCEPTIONS = {
    GOOD: "the good judge leaves more than half of the variance",
    STRATA: f"strata leave more than .7 of the variance at K ≤ {SHORT}",
}


def page(result: StudyResult) -> StudyPage:
    said, medians = result.settings, result.rows("medians")
    least, most = said["fewest draws"], said["most draws"]
    times = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    n_worlds = len(said["worlds"])
    first = next(iter(GROUPS))
    return StudyPage(
        "How close do estimators come to the truth?",
        chart(result.rows("dots")),
        "The variance of every estimator over that of the usual one",
        (
            f"In {COUNTED.get(n_worlds, n_worlds)} worlds every label is known: a few items of each user were shown at random, {times} times over, and every estimator had to say what all labels say.",
            "A dot is a recommender in one world with one number of shown items; left of the dashed line an estimator needs fewer labels than the usual one to be as sure.",
            "Recall in two strata (`post-stratified`) and a judge (`assisted`) help most where lists are short, and cost next to nothing where they have nothing to say.",
        ),
        [
            made(result),
            "",
            "## The bars",
            "",
            "A cell is a recommender in one world with one number judged and one K; it holds a bar if it lies above it by no more than two of its own Monte-Carlo errors.",
            "",
            *bars(result),
            "",
            "## How far, how sure, which sign",
            "",
            "Medians over worlds, recommenders (without the random one) and numbers judged. Variance is over that of "
            "`horvitz-thompson` for Precision and `pooled` for Recall. Coverage is that of 95 % intervals, of `published` "
            "against the mean recall over users. Signs are of differences to popularity whose true size is at least 2 % of popularity's value.",
            "",
            *by_cutoff([row for row in medians if row["k"] == first]),
            "",
            *hidden("The same at larger K", by_cutoff([row for row in medians if row["k"] != first])),
            "",
            "## The mean recall over users",
            "",
            f"`corrected` puts a model in place of users without a judged relevant item; {said['draws of means']:,} of the same draws, errors over "
            "those of the published mean ([all cells](mean-recall.md), [when to use it](../mean-recall.md)).",
            "",
            *mean_bars(result.rows("mean bars"), result.rows("mean missed")),
            "",
            "## Do intervals hold",
            "",
            "| metric | estimator | values | differences | values of random lists |",
            "|---|---|---|---|---|",
            *(
                f"| {row['metric']} | {row['estimator']} | {' | '.join(share(row[name]) for name in ('values', 'differences', 'random'))} |"
                for row in result.rows("coverage")
            ),
            "",
            *hidden(f"Every cell of the real worlds at {FEW} judged items", cells(result.rows("cells"))),
        ],
    )


def made(result: StudyResult) -> str:
    said = result.settings
    real = [words for name, words in WORLDS.items() if name in said["worlds"]]
    synthetic = "three synthetic worlds (1,200 x 1,500; in one 30 % of users like nothing, in one recall rises with the number of relevant items)"
    worlds = ", ".join([*real, f"{'and ' * bool(real)}{synthetic}"])
    judges = "; ".join(
        f"{name}: {right:.0%} of what is relevant, {1 - other:.0%} of the rest"
        for name, (right, other) in said["judges"].items()
    )
    return (
        f"{worlds[0].upper()}{worlds[1:]}. Users are redrawn with every draw. Recommenders: popularity, cosines "
        f"of items, two truncated SVDs, chance. Judges call relevant, {judges}. `assisted` is `assisted(doubt={said['doubt']:g})`"
        f"{'' if said['doubt'] else ', the slope of least squares as it is; by default it is now drawn towards 0 where few rows tell it'}. Every fourth draw has intervals, so that "
        "coverage rests on a quarter of them. The Monte-Carlo error of a ratio of variances in a single cell is "
        f"{number(said['noise'])} (median)."
    )


def bars(result: StudyResult) -> list[str]:
    lines = [
        "| variance of | bar | cells that hold it | of | median |",
        "|---|---|---|---|---|",
        *(
            f"| {row['about']} | {row['bar']:g} | {row['held']} | {row['cells']} | {number(row['median'])} |"
            for row in result.rows("bars")
        ),
    ]
    exceptions = result.rows("exceptions")
    for estimator, words in EXCEPTIONS.items():
        own = [row for row in exceptions if row["estimator"] == estimator]
        where = ", ".join(f"{row['world']} at K = {row['k']} ({row['median']:.2f})" for row in own)
        if where:
            lines += ["", f"Where {words}, by the median of a world: {where}."]
    costs = result.settings["costs"]
    if costs["cells"]:
        lines += [
            "",
            f"Where assistance costs more than {COST:g}: {costs['cells']} of {costs['of']} cells, {costs['random']} of random lists and "
            f"{costs['short']} at K ≤ {SHORT} with at most {FEW} judged items, where a line is fitted to a few dozen rows; "
            f"the worst is {costs['ratio_hajek']:.2f} ({costs['what']}, {costs['world']}, K = {costs['k']}, {costs['judged']} judged, {costs['estimator']}).",
        ]
    return [
        *lines,
        "",
        "Users are redrawn with every draw, and how users differ is a part of the variance that no estimator takes away: "
        "the longer the lists and the more items are judged, the larger that part, and the nearer are all ratios to 1. And where few places are relevant, most of "
        "what a judge of 95 % specificity calls relevant is not.",
    ]


def by_cutoff(rows: Sequence[Row]) -> list[str]:
    return [
        "| metric | estimator | K | variance | bias in standard deviations | coverage | right signs |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {row['metric']} | {row['estimator']} | {row['k']} | {number(row['variance'])} | {number(row['off'])} "
            f"| {share(row['covered'])} | {share(row['right signs'])} |"
            for row in rows
        ),
    ]


def cells(rows: Sequence[Row]) -> list[str]:
    return [
        "| world | model or difference | metric | estimator | truth | mean | variance over usual | RMSE | coverage |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {row['world']} | {row['what']} | {row['metric']} | {row['estimator']} | {row['truth']:.4f} "
            f"| {row['mean']:.4f} | {number(row['ratio'])} | {row['rmse']:.4f} | {share(row['covered'])} |"
            for row in rows
        ),
    ]


def share(value: float | None) -> str:
    return number(value, ".0%")


def hidden(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def chart(dots: Sequence[Row]) -> Any:
    """The variance of every contender over that of the usual estimator: a dot for each world, model and number judged."""
    library = altair(WHO)
    kinds = [(kind, [row for row in dots if row["kind"] == kind]) for kind in REFERENCE]
    return library.vconcat(*(_panels(library, kind, own) for kind, own in kinds), spacing=20).configure_view(
        stroke="#dddddd"
    )


def _panels(library: Any, kind: str, own: Sequence[Row]) -> Any:
    """One metric: a panel for each cut-off."""
    names = list(dict.fromkeys(row["estimator"] for row in own))
    scale = library.Scale(type="log", domain=[0.1, 2.0], clamp=True)
    x_axis = library.Axis(values=[0.1, 0.2, 0.5, 1, 2], format="~g")
    colour = library.Color("estimator:N", scale=library.Scale(domain=names, range=COLOURS), legend=None)

    def panel(at: int, k: int) -> Any:
        shown = [{name: row[name] for name in ("estimator", "ratio")} for row in own if row["k"] == k]
        labels = library.Axis(labelLimit=240) if at == 0 else None
        dots = library.Chart(library.Data(values=shown)).mark_circle(size=30, opacity=0.4).encode(
            x=library.X("ratio:Q", scale=scale, axis=x_axis, title=None),
            y=library.Y("estimator:N", sort=names, title=None, axis=labels),
            color=colour,
        )  # fmt: skip
        same = library.Chart(library.Data(values=[{"one": 1}])).mark_rule(color="#777777", strokeDash=[4, 4])
        both = library.layer(same.encode(x=library.X("one:Q", scale=scale, axis=x_axis, title=None)), dots)
        return both.properties(width=130, height=26 * len(names), title=f"K = {k}")

    panels = [panel(at, k) for at, k in enumerate(sorted({row["k"] for row in own}))]
    return library.hconcat(*panels, spacing=10).properties(title=f"{kind}: variance over that of {REFERENCE[kind]}")
