"""How close estimators come to the truth: `make truth` draws, and writes docs/results/truth.md.

The folder of the study is kept: a stopped run goes on, and more draws later are the same study.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import mean_recall
from truerank.report.reliability_charts import PictureFormat, altair, picture
from truerank.studies.truth.known import FIRST, JUDGES
from truerank.studies.truth.summary import RESULTS

PAGE = Path("docs/results/truth.md")
PICTURE = Path("docs/results/truth.svg")
WHO = "the page of the truth"
NOISE = 2  # Monte-Carlo errors that a ratio may lie beyond a bar
REFERENCE = {"Precision": "horvitz-thompson", "Recall": "pooled"}
GOOD = "assisted by a good judge"
LISTS = {10: "K = 5, 10", 50: "K = 20, 50", 10**6: "K = 500"}  # by the longest of each group
COLOURS = ["#0072B2", "#C44E00", "#2A7F62", "#9B3F86", "#6E6E6E", "#B8860B", "#333333"]


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--folder", type=Path, default=Path("build/truth"))
    parser.add_argument("--page-only", action="store_true", help="from the draws that are there")
    arguments = parser.parse_args()
    if not arguments.page_only:
        data = Path(os.environ.get("TRUERANK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
        real = [word for name in ("kuairec", "jester") for word in (f"--{name}", str(data / name))]
        words = ["study", "truth", "--draws", str(arguments.draws), *real, "--out", str(arguments.folder)]
        arguments.folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "truerank", *words], check=True)
    every = pl.read_parquet(arguments.folder / RESULTS)
    mean_recall.write(every)
    found = with_cutoffs(every.filter(pl.col("error_published").is_null()))
    PICTURE.write_bytes(picture(chart(found), PictureFormat.SVG, who=WHO))
    PAGE.write_text(page(found, mean_recall.with_cutoffs(every)))


def with_cutoffs(found: pl.DataFrame) -> pl.DataFrame:
    """Metric and cut-off apart, whether a row is of a random list, and the ratio to the first reference."""
    kind, k = (pl.col("metric").str.split("@").list.get(at) for at in (0, 1))
    first = pl.when(kind == "Precision")
    return found.with_columns(
        kind=kind,
        k=k.cast(pl.Int64),
        random=pl.col("what").str.starts_with("random"),
        ratio=first.then(pl.col("ratio_horvitz-thompson")).otherwise(pl.col("ratio_pooled")),
        noise=first.then(pl.col("noise_horvitz-thompson")).otherwise(pl.col("noise_pooled")),
    )


# ------------------------------------------------------------------------------------------------------------- picture


def chart(found: pl.DataFrame) -> Any:
    """Variance, error, coverage and right signs of every contender: a dot for each world, model, number judged and K."""
    library = altair(WHO)
    rows = [_row(library, found, kind) for kind in REFERENCE]
    return library.vconcat(*rows, spacing=20).configure_view(stroke="#dddddd")


def _row(library: Any, found: pl.DataFrame, kind: str) -> Any:
    """One metric: a panel for each measure, dots by length of lists; every contender, the references too."""
    reference = REFERENCE[kind]
    own = measured(found.filter((pl.col("kind") == kind) & ~pl.col("random")), reference)
    names = own["estimator"].unique(maintain_order=True).to_list()
    lists = library.Scale(domain=list(LISTS.values()), range=COLOURS[: len(LISTS)])
    colour = library.Color("lists:N", scale=lists, legend=library.Legend(title="lists", orient="bottom"))

    def panel(at: int, measure: Measure) -> Any:
        scale = library.Scale(type="log" if measure.ratio else "linear", domain=list(measure.domain), clamp=True)
        axis = library.Axis(values=list(measure.ticks), format="~g" if measure.ratio else ".0%")
        rows = own.filter(pl.col("measure") == measure.name)
        data = library.Data(values=rows.select("estimator", "lists", "value").to_dicts())
        labels = library.Axis(labelLimit=240) if at == 0 else None
        x = library.X("value:Q", scale=scale, axis=axis, title=None)
        dots = library.Chart(data).mark_circle(size=24, opacity=0.35).encode(
            x=x, y=library.Y("estimator:N", sort=names, title=None, axis=labels), yOffset="lists:N", color=colour,
        )  # fmt: skip
        best = library.Chart(library.Data(values=[{"at": measure.mark}])).mark_rule(color="#777777", strokeDash=[4, 4])
        both = library.layer(best.encode(x=library.X("at:Q", scale=scale, axis=axis, title=None)), dots)
        return both.properties(width=190, height=30 * len(names), title=measure.name)

    title = f"{kind} (variance and error: over those of {reference})"
    return library.hconcat(*(panel(at, each) for at, each in enumerate(MEASURES)), spacing=10).properties(title=title)


def measured(cells: pl.DataFrame, reference: str) -> pl.DataFrame:
    """A row for each cell and measure that it has: of values variance, error and coverage, of differences the sign."""
    key = ["world", "judged", "what", "metric"]
    usual = cells.filter(pl.col("estimator") == reference).select(*key, usual=pl.col("rmse"))
    values = cells.filter(~pl.col("difference")).join(usual, on=key, how="left")
    parts = [
        values.select("estimator", "k", measure=pl.lit("variance"), value="ratio"),
        values.select("estimator", "k", measure=pl.lit("error"), value=pl.col("rmse") / pl.col("usual")),
        values.select("estimator", "k", measure=pl.lit("coverage"), value="covered"),
        told_apart(cells).select("estimator", "k", measure=pl.lit("right signs"), value="right_sign"),
    ]
    named = pl.col("k").map_elements(lists_of, return_dtype=pl.String)
    return pl.concat(parts).filter(pl.col("value").is_finite()).with_columns(lists=named)


def lists_of(k: int) -> str:
    """
    >>> lists_of(20)
    'K = 20, 50'
    """
    return next(words for most, words in LISTS.items() if k <= most)


def told_apart(cells: pl.DataFrame) -> pl.DataFrame:
    """Differences to popularity whose true size is at least 2 % of popularity's value."""
    key = ["world", "judged", "metric", "estimator"]
    level = cells.filter(pl.col("what") == FIRST).select(*key, level="truth")
    apart = cells.filter("difference").join(level, on=key)
    return apart.filter(pl.col("truth").abs() >= 0.02 * pl.col("level").abs())


# ---------------------------------------------------------------------------------------------------------------- page


def page(found: pl.DataFrame, means: pl.DataFrame) -> str:
    return "\n".join(
        [
            "# How close do estimators come to the truth?",
            "",
            "![Variance, error, coverage and right signs of every estimator](truth.svg)",
            "",
            f"In five worlds every label is known: a few items of each user were shown at random, {_times(found)} times "
            "over, and every estimator had to say what all labels say. A dot is a recommender in one world with one "
            "number of shown items; left of the dashed line of the first two panels an estimator needs fewer labels than "
            "the usual one to be as sure, or as close. Recall in two strata (`post-stratified`) and a judge (`assisted`) "
            "help most where lists are short, and cost next to nothing where they have nothing to say.",
            "",
            _made(found),
            "",
            "## The bars",
            "",
            "A cell is a recommender in one world with one number judged and one K; it holds a bar if it lies above it by "
            "no more than two of its own Monte-Carlo errors.",
            "",
            *_bars(found),
            "",
            "## How far, how sure, which sign",
            "",
            "Medians over worlds, recommenders (without the random one) and numbers judged. Variance is over that of "
            "`horvitz-thompson` for Precision and `pooled` for Recall. Coverage is that of 95 % intervals, of `published` "
            "against the mean recall over users. Signs are of differences to popularity whose true size is at least 2 % of popularity's value.",
            "",
            *_medians(found, most=10),
            "",
            *_folded("The same at larger K", _medians(found, least=20)),
            "",
            "## The mean recall over users",
            "",
            f"`corrected` puts a model in place of users without a judged relevant item; {min(means['draws'].to_list()):,} of the same draws, errors over "
            "those of the published mean ([all cells](mean-recall.md), [when to use it](../mean-recall.md)).",
            "",
            *mean_recall.bars(means),
            "",
            "## Do intervals hold",
            "",
            *_uncovered(found),
            "",
            *_folded("Every cell of the real worlds at 20 judged items", _cells(found)),
            "",
        ]
    )  # fmt: skip


def _made(found: pl.DataFrame) -> str:
    judges = "; ".join(
        f"{name}: {right:.0%} of what is relevant, {1 - other:.0%} of the rest"
        for name, (right, other) in JUDGES.items()
    )
    return (
        "KuaiRec (1,411 x 3,327, recommenders from its big matrix), Jester (3,600 users x 80 jokes, of which recommenders "
        "know 20 others), and three synthetic worlds (1,200 x 1,500; in one 30 % of users like nothing, in one recall "
        "rises with the number of relevant items). Users are redrawn with every draw. Recommenders: popularity, cosines "
        f"of items, two truncated SVDs, chance. Judges call relevant, {judges}. Written by `make truth` from "
        f"`truerank study truth`; seeds are fixed, a stopped study goes on. Every fourth draw has intervals, so that "
        f"coverage rests on a quarter of them. "
        f"The Monte-Carlo error of a ratio of variances in a single cell is "
        f"{_number(found['noise'].filter(found['noise'] > 0).median())} (median)."
    )


def _times(found: pl.DataFrame) -> str:
    draws = found.filter(pl.col("estimator") == "hajek")["draws"].to_list()
    least, most = min(draws), max(draws)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _held(cells: pl.DataFrame, ratio: str, noise: str, bar: float) -> tuple[int, int, float]:
    """How many cells lie within a bar, chance apart, how many there are, and the median."""
    own = cells.filter(pl.col(ratio).is_not_null() & pl.col(ratio).is_finite())
    held = own.filter(pl.col(ratio) <= bar + NOISE * pl.col(noise))
    middle = own[ratio].median()
    return len(held), len(own), float(middle) if isinstance(middle, float) else float("nan")


def _bars(found: pl.DataFrame) -> list[str]:
    assisted = found.filter((pl.col("kind") == "Precision") & pl.col("estimator").str.starts_with("assisted"))
    post = found.filter((pl.col("estimator") == "post-stratified") & ~pl.col("difference"))
    asked = [
        ("post-stratified over pooled, all K", post.filter(~pl.col("random")), "pooled", 1.02),
        ("post-stratified over pooled, a random list", post.filter("random"), "pooled", 1.06),
        ("post-stratified over pooled, K ≤ 10", post.filter(~pl.col("random") & (pl.col("k") <= 10)), "pooled", 0.7),
        ("assisted (all) over hajek, values", assisted.filter(~pl.col("difference")), "hajek", 1.02),
        ("assisted (all) over hajek, differences", assisted.filter("difference"), "hajek", 1.02),
        (
            "assisted by the good judge over horvitz-thompson",
            assisted.filter((pl.col("estimator") == GOOD) & ~pl.col("difference") & ~pl.col("random")),
            "horvitz-thompson",
            0.5,
        ),
    ]
    lines = ["| variance of | bar | cells that hold it | of | median |", "|---|---|---|---|---|"]
    for what, cells, reference, bar in asked:
        held, n, middle = _held(cells, f"ratio_{reference}", f"noise_{reference}", bar)
        lines.append(f"| {what} | {bar:g} | {held} | {n} | {middle:.2f} |")
    near = pl.col("estimator").is_in([GOOD, "post-stratified"]) & ~pl.col("difference") & ~pl.col("random")
    for kind, estimator, most, bar, words in (
        ("Precision", GOOD, 500, 0.5, "the good judge leaves more than half of the variance"),
        ("Recall", "post-stratified", 10, 0.7, "strata leave more than .7 of the variance at K ≤ 10"),
    ):
        own = found.filter(near & (pl.col("kind") == kind) & (pl.col("estimator") == estimator) & (pl.col("k") <= most))
        medians = own.group_by("world", "k").agg(pl.col("ratio").median()).filter(pl.col("ratio") > bar)
        beside = medians.join(_relevant(found), on=["world", "k"]).sort("world", "k")
        where = ", ".join(f"{world} at K = {k} ({ratio:.2f}; {share:.0%})" for world, k, ratio, share in beside.rows())
        if where:
            lines += [
                "",
                f"Where {words}, by the median of a world, and the share of places that are relevant: {where}.",
            ]
    costs = assisted.filter(pl.col("ratio_hajek") > 1.02 + NOISE * pl.col("noise_hajek"))
    if len(costs):
        worst = costs.sort("ratio_hajek", descending=True).row(0, named=True)
        lines += [
            "",
            f"Where assistance costs more than 1.02: {len(costs)} of {len(assisted)} cells, {len(costs.filter('random'))} of random lists and "
            f"{len(costs.filter((pl.col('k') <= 10) & (pl.col('judged') <= 20)))} at K ≤ 10 with at most 20 judged items, where a line is fitted to a few dozen rows; "
            f"the worst is {worst['ratio_hajek']:.2f} ({worst['what']}, {worst['world']}, K = {worst['k']}, {worst['judged']} judged, {worst['estimator']}).",
        ]
    return [*lines, "", *WHY, "", "## The slope with few rows", "", *SLOPE]


def _relevant(found: pl.DataFrame) -> pl.DataFrame:
    """The share of places that are relevant, by the median of a world."""
    own = found.filter((pl.col("metric") == "Precision@" + pl.col("k").cast(pl.String)) & ~pl.col("difference"))
    return own.filter(~pl.col("random")).group_by("world", "k").agg(relevant=pl.col("truth").median())


def left_by_judge(relevant: float, *, right: float, other: float) -> float:
    """(1 - ρ²)(1 - q): what a judge leaves of horvitz-thompson's variance, q the share of places that are relevant.

    ρ is the correlation of the judge with labels: of places q are relevant, and q s + (1 - q)(1 - t) called so.

    >>> [round(left_by_judge(q, right=0.7, other=0.95), 2) for q in (0.2, 0.14, 0.1, 0.05)]
    [0.43, 0.5, 0.56, 0.7]
    """
    called = relevant * right + (1 - relevant) * (1 - other)
    squared = relevant * (1 - relevant) * (right + other - 1) ** 2 / (called * (1 - called))
    return (1 - squared) * (1 - relevant)


WHY = [
    "Why, and why nothing is warned of there: `pooled` and `horvitz-thompson` vary as a count of relevant rows does, strata "
    "and `hajek` as a share, so what they leave is about 1 - q, q the share of places that are relevant: below .7 takes "
    "lists of which more than 30 % is relevant. A judge leaves about (1 - ρ²)(1 - q), ρ its correlation with labels: "
    + ", ".join(f"{left_by_judge(q, right=0.7, other=0.95):.2f} at q = {q:g}" for q in (0.2, 0.1, 0.05))
    + " for the good one, so half of the variance takes q of at least .14. Users are redrawn with every draw, and how they "
    "differ is a part of the variance that no estimator takes away: it brings all ratios nearer to 1, most in long lists. "
    "A variance that is not halved endangers nobody: no cell is worse than the usual estimator beyond chance, and intervals know their "
    "width.",
]
SLOPE = [
    "With a few dozen judged rows in lists the slope of labels on predictions is mostly noise. So `assisted` keeps "
    "max(0, 1 - 4 / t²) of the slope of least squares, t the slope over its standard error. The 4 was chosen among 20 rules "
    "(cut-offs of rows, of t, of leave-one-out errors; other shrinkage) by 600 draws of seven worlds (seed 101; K = 5, 10, 50; "
    "10 and 20 judged): variance above 1.02 x `hajek` beyond chance in 9 of 500 values and 12 of 400 differences with least "
    "squares (worst 2.51), in none with this; medians over hajek's variance went from .572 to .578 with the good judge and from "
    ".879 to .901 with scores. Then 700 draws of five worlds with another seed (20270314): 0 of 375 values and 1 of 300 "
    "differences (1.14 ± .05: two lists that nearly agree, whose own slopes are not the best for their difference).",
]


def _medians(found: pl.DataFrame, *, least: int = 0, most: int = 10**6) -> list[str]:
    values = found.filter(~pl.col("random") & pl.col("k").is_between(least, most))
    lines = ["| metric | estimator | K | variance | bias in standard deviations | coverage | right signs |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    order = found.select("kind", "estimator").unique(maintain_order=True).rows()
    for kind, estimator in order:
        own = values.filter((pl.col("kind") == kind) & (pl.col("estimator") == estimator))
        for low, high, words in ((5, 10, "5, 10"), (20, 50, "20, 50"), (500, 500, "500")):
            cells = own.filter(pl.col("k").is_between(low, high))
            alone = cells.filter(~pl.col("difference"))
            apart = told_apart(cells)
            if not len(alone):
                continue
            off = ((alone["mean"] - alone["truth"]).abs() / alone["variance"].sqrt()).median()
            signs = apart["right_sign"].mean()
            ratio = alone["ratio"].median()
            lines.append(
                f"| {kind} | {estimator} | {words} | {_number(ratio)} | {_number(off)} | {_share(alone['covered'].mean())} "
                f"| {_share(signs)} |"
            )
    return lines


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.2f}"


def _share(value: Any) -> str:
    return "" if value is None else f"{value:.0%}"


def _uncovered(found: pl.DataFrame) -> list[str]:
    """Coverage of real recommenders and of random lists, by contender: means over all cells, which few draws allow."""
    lines = ["| metric | estimator | values | differences | values of random lists |", "|---|---|---|---|---|"]
    for kind, estimator in found.select("kind", "estimator").unique(maintain_order=True).rows():
        own = found.filter((pl.col("kind") == kind) & (pl.col("estimator") == estimator))
        means = [
            own.filter(each)["covered"].mean()
            for each in (
                ~pl.col("difference") & ~pl.col("random"),
                pl.col("difference") & ~pl.col("random"),
                ~pl.col("difference") & pl.col("random"),
            )
        ]
        lines.append(f"| {kind} | {estimator} | " + " | ".join(_share(mean) for mean in means) + " |")
    return lines


def _cells(found: pl.DataFrame) -> list[str]:
    lines = ["| world | model or difference | metric | estimator | truth | mean | variance over usual | RMSE | coverage |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    own = found.filter(pl.col("world").is_in(["kuairec", "jester"]) & (pl.col("judged") == 20))
    return lines + [
        f"| {row['world']} | {row['what']} | {row['metric']} | {row['estimator']} | {row['truth']:.4f} "
        f"| {row['mean']:.4f} | {_number(row['ratio'])} | {row['rmse']:.4f} | {_share(row['covered'])} |"
        for row in own.iter_rows(named=True)
    ]


def _folded(title: str, lines: list[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


if __name__ == "__main__":
    main()
