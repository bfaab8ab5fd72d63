"""The page of the study of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from truerank.report.reliability_charts import altair
from truerank.report.studied.mean_recall import bars as mean_bars
from truerank.report.studied.mean_recall import number
from truerank.report.study_pages import WHO, StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row
from truerank.studies.truth.found import ABOUT, COST, FEW, GOOD, GROUPS, REFERENCE, SHORT, STRATA

COLOURS = ["#0072B2", "#C44E00", "#2A7F62", "#9B3F86", "#6E6E6E", "#B8860B", "#333333"]
COUNTED = {3: "three", 4: "four", 5: "five"}
QUOTED = (0.2, 0.1, 0.05)  # shares of relevant places at which a judge is spoken of


class Measure(NamedTuple):
    """What is measured of a contender: its axis, and where on it nothing is gained or all is well."""

    name: str
    ratio: bool
    domain: tuple[float, float]
    ticks: tuple[float, ...]
    mark: float


MEASURES = (
    Measure("variance", True, (0.1, 2.0), (0.1, 0.2, 0.5, 1, 2), 1.0),
    Measure("error", True, (0.2, 10.0), (0.2, 0.5, 1, 2, 5, 10), 1.0),
    Measure("coverage", False, (0.5, 1.0), (0.5, 0.75, 0.95), 0.95),
    Measure("right signs", False, (0.5, 1.0), (0.5, 0.75, 1.0), 1.0),
)
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
        ABOUT,
        chart(result),
        "Variance, error, coverage and right signs of every estimator",
        (
            f"In {COUNTED.get(n_worlds, n_worlds)} worlds every label is known: a few items of each user were shown at random, {times} times over, and every estimator had to say what all labels say.",
            "A dot is the median of one world over recommenders (but chance) and numbers of shown items, a line reaches from the lowest to the highest of all; left of the dashed line in the first two columns an estimator needs fewer labels than the usual one to be as sure, or as close.",
            "Recall in two strata (`post-stratified`) and a judge (`assisted`) help most where lists are short"
            f"{_costing(said['costs'])}.",
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


def _costing(costs: Row) -> str:
    """What assistance costs where it has nothing to say, as a part of a sentence."""
    if not costs["cells"]:
        return f", and nowhere cost more than {COST - 1:.0%} of the variance"
    return (
        f"; in {costs['cells']} of {costs['of']:,} cases assistance cost more than {COST - 1:.0%} of the variance beyond chance, "
        f"at most {costs['ratio_hajek'] - 1:.0%}"
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
        ". Every fourth draw has intervals, so that coverage rests on a quarter of them. The Monte-Carlo error of a ratio of variances in a single cell is "
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
        if own:
            lines += ["", f"Where {words}, by the median of a world:", "", *exceptional(own)]
    costs = result.settings["costs"]
    if costs["cells"]:
        lines += [
            "",
            f"Where assistance costs more than {COST:g}: {costs['cells']} of {costs['of']} cells. {costs['random']} are values of random lists{_hardly(costs)}. "
            f"{costs['differences']} are differences{_from(costs)}: where two lists share most of their places, the slope of each whole list need not fit "
            "the places in which they differ, and `truerank evaluate` says so (`assistance-costs`). "
            f"The worst is {costs['ratio_hajek']:.2f} ({costs['what']}, {costs['world']}, K = {costs['k']}, {costs['judged']} judged, {costs['estimator']}).",
        ]
    return [*lines, "", why(result)]


def _hardly(costs: Row) -> str:
    most = costs["most relevant of random"]
    hits = "nearly no judged row in them is a hit, which `truerank evaluate` warns of (`few-hits`, `no-hit`)"
    return "" if most is None else f" of whose places at most {most:.1%} are relevant: {hits}"


def _from(costs: Row) -> str:
    least = costs["least k of differences"]
    return "" if least is None else f" at K of {least} or more"


def exceptional(rows: Sequence[Row]) -> list[str]:
    return [
        "| world | K | variance left | places that are relevant |",
        "|---|---|---|---|",
        *(f"| {row['world']} | {row['k']} | {number(row['median'])} | {share(row['relevant'])} |" for row in rows),
    ]


def why(result: StudyResult) -> str:
    """Why some bars are out of reach where few places are relevant."""
    right, other = result.settings["judges"]["good"]
    left = ", ".join(f"{left_by_judge(q, right=right, other=other):.2f} at q = {q:g}" for q in QUOTED)
    return (
        "Why strata and judges leave more in some worlds, and why nothing is warned of there: `pooled` and `horvitz-thompson` vary as a count of relevant rows does, "
        "strata and `hajek` as a share, so what is left is about 1 - q, q the share of places that are relevant. A judge "
        f"leaves about (1 - ρ²)(1 - q), ρ its correlation with labels: for the good one {left}. Users are redrawn with "
        "every draw, and how they differ is a part of the variance that no estimator takes away: it brings all ratios "
        "nearer to 1, most in long lists. A variance that is not halved endangers nobody: intervals know their width."
    )


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


def chart(result: StudyResult) -> Any:
    """Variance, error, coverage and right signs of every contender: a dot for each world and group of cut-offs."""
    library = altair(WHO)
    rows = [_panels(library, result, kind) for kind in REFERENCE]
    return library.vconcat(*rows, spacing=20).configure_view(stroke="#dddddd")


def _panels(library: Any, result: StudyResult, kind: str) -> Any:
    """One metric: a panel for each measure, by length of lists; every contender, the references too."""
    own = [row | {"lists": f"K = {row['lists']}"} for row in result.rows("dots") if row["kind"] == kind]
    names = list(dict.fromkeys(row["estimator"] for row in own))
    groups = [f"K = {words}" for words in GROUPS]
    colours = library.Scale(domain=groups, range=COLOURS[: len(groups)])
    colour = library.Color("lists:N", scale=colours, legend=library.Legend(title=None, orient="bottom"))

    def panel(at: int, measure: Measure) -> Any:
        scale = library.Scale(type="log" if measure.ratio else "linear", domain=list(measure.domain), clamp=True)
        axis = library.Axis(values=list(measure.ticks), format="~g" if measure.ratio else ".0%")
        shown = [row for row in own if row["measure"] == measure.name]
        place = {
            "y": library.Y(
                "estimator:N", sort=names, title=None, axis=library.Axis(labelLimit=240) if at == 0 else None
            ),
            "yOffset": library.YOffset("lists:N", sort=groups),
            "color": colour,
        }
        ends = library.X("low:Q", scale=scale, axis=axis, title=None)
        ranges = library.Chart(library.Data(values=spans(shown))).mark_rule(opacity=0.5)
        dots = library.Chart(library.Data(values=shown)).mark_circle(size=30, opacity=0.7)
        best = library.Chart(library.Data(values=[{"at": measure.mark}])).mark_rule(color="#777777", strokeDash=[4, 4])
        layers = (
            best.encode(x=library.X("at:Q", scale=scale, axis=axis, title=None)),
            ranges.encode(x=ends, x2="high:Q", **place),
            dots.encode(x=library.X("median:Q", scale=scale, axis=axis, title=None), **place),
        )
        title = f"{measure.name} over {REFERENCE[kind]}'s" if measure.ratio else measure.name
        return library.layer(*layers).properties(width=200, height=36 * len(names), title=title)

    return library.hconcat(*(panel(at, each) for at, each in enumerate(MEASURES)), spacing=12).properties(title=kind)


def spans(rows: Sequence[Row]) -> list[Row]:
    """From the lowest to the highest of all worlds.

    >>> low, high = ({"estimator": "a", "lists": "K = 5", "low": at, "high": at + 1} for at in (1, 5))
    >>> spans([low, high])
    [{'estimator': 'a', 'lists': 'K = 5', 'low': 1, 'high': 6}]
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["estimator"], row["lists"]), []).append(row)
    return [
        {"estimator": estimator, "lists": lists, "low": min(row["low"] for row in own),
         "high": max(row["high"] for row in own)}
        for (estimator, lists), own in found.items()
    ]  # fmt: skip


def left_by_judge(relevant: float, *, right: float, other: float) -> float:
    """(1 - ρ²)(1 - q): what a judge leaves of horvitz-thompson's variance, q the share of places that are relevant.

    ρ is the correlation of the judge with labels: of places q are relevant, and q s + (1 - q)(1 - t) called so, s the
    judge's sensitivity and t its specificity (statistics of the assisted mean: the residual of a line).

    >>> [round(left_by_judge(q, right=0.7, other=0.95), 2) for q in (0.2, 0.14, 0.1, 0.05)]
    [0.43, 0.5, 0.56, 0.7]
    """
    called = relevant * right + (1 - relevant) * (1 - other)
    squared = relevant * (1 - relevant) * (right + other - 1) ** 2 / (called * (1 - called))
    return (1 - squared) * (1 - relevant)
