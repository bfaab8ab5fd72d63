"""How close estimators come to the truth: `make truth` draws, and writes docs/results/truth.md.

The folder of the study is kept: a stopped run goes on, and more draws later are the same study.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

import mean_recall
from truerank.report.reliability_charts import PictureFormat, altair, picture
from truerank.studies.truth.known import JUDGES
from truerank.studies.truth.summary import RESULTS

PAGE = Path("docs/results/truth.md")
PICTURE = Path("docs/results/truth.svg")
WHO = "the page of the truth"
NOISE = 2  # Monte-Carlo errors that a ratio may lie beyond a bar
REFERENCE = {"Precision": "horvitz-thompson", "Recall": "pooled"}
GOOD = "assisted by a good judge"
COLOURS = ["#0072B2", "#C44E00", "#2A7F62", "#9B3F86", "#6E6E6E", "#B8860B", "#333333"]


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
    """The variance of every contender over that of the usual estimator: a dot for each world, model and number judged."""
    library = altair(WHO)
    return library.vconcat(*(_row(library, found, kind) for kind in REFERENCE), spacing=20).configure_view(
        stroke="#dddddd"
    )


def _row(library: Any, found: pl.DataFrame, kind: str) -> Any:
    """One metric: a panel for each cut-off."""
    reference = REFERENCE[kind]
    own = found.filter(
        (pl.col("kind") == kind) & ~pl.col("difference") & ~pl.col("random")
        & ~pl.col("estimator").is_in([reference, "published"])
    )  # fmt: skip
    names = own["estimator"].unique(maintain_order=True).to_list()
    scale = library.Scale(type="log", domain=[0.1, 2.0], clamp=True)
    x_axis = library.Axis(values=[0.1, 0.2, 0.5, 1, 2], format="~g")
    colour = library.Color("estimator:N", scale=library.Scale(domain=names, range=COLOURS), legend=None)

    def panel(at: int, k: int) -> Any:
        data = library.Data(values=own.filter(pl.col("k") == k).select("estimator", "ratio").to_dicts())
        labels = library.Axis(labelLimit=240) if at == 0 else None
        dots = library.Chart(data).mark_circle(size=30, opacity=0.4).encode(
            x=library.X("ratio:Q", scale=scale, axis=x_axis, title=None),
            y=library.Y("estimator:N", sort=names, title=None, axis=labels),
            color=colour,
        )  # fmt: skip
        same = library.Chart(library.Data(values=[{"one": 1}])).mark_rule(color="#777777", strokeDash=[4, 4])
        both = library.layer(same.encode(x=library.X("one:Q", scale=scale, axis=x_axis, title=None)), dots)
        return both.properties(width=130, height=26 * len(names), title=f"K = {k}")

    panels = [panel(at, k) for at, k in enumerate(sorted(own["k"].unique().to_list()))]
    title = f"{kind}: variance over that of {reference}"
    return library.hconcat(*panels, spacing=10).properties(title=title)


# ---------------------------------------------------------------------------------------------------------------- page


def page(found: pl.DataFrame, means: pl.DataFrame) -> str:
    return "\n".join(
        [
            "# How close do estimators come to the truth?",
            "",
            "![The variance of every estimator over that of the usual one](truth.svg)",
            "",
            f"In five worlds every label is known: a few items of each user were shown at random, {_times(found)} times "
            "over, and every estimator had to say what all labels say. A dot is a recommender in one world with one "
            "number of shown items; left of the dashed line an estimator needs fewer labels than the usual one to be as "
            "sure. Recall in two strata (`post-stratified`) and a judge (`assisted`) help most where lists are short, "
            "and cost next to nothing where they have nothing to say.",
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
        where = ", ".join(f"{world} at K = {k} ({ratio:.2f})" for world, k, ratio in medians.sort("world", "k").rows())
        if where:
            lines += ["", f"Where {words}, by the median of a world: {where}."]
    costs = assisted.filter(pl.col("ratio_hajek") > 1.02 + NOISE * pl.col("noise_hajek"))
    if len(costs):
        worst = costs.sort("ratio_hajek", descending=True).row(0, named=True)
        lines += [
            "",
            f"Where assistance costs more than 1.02: {len(costs)} of {len(assisted)} cells, {len(costs.filter('random'))} of random lists and "
            f"{len(costs.filter((pl.col('k') <= 10) & (pl.col('judged') <= 20)))} at K ≤ 10 with at most 20 judged items, where a line is fitted to a few dozen rows; "
            f"the worst is {worst['ratio_hajek']:.2f} ({worst['what']}, {worst['world']}, K = {worst['k']}, {worst['judged']} judged, {worst['estimator']}).",
        ]
    return [
        *lines,
        "",
        "Users are redrawn with every draw, and how users differ is a part of the variance that no estimator takes away: "
        "the longer the lists and the more items are judged, the larger that part, and the nearer are all ratios to 1. And where few places are relevant, most of "
        "what a judge of 95 % specificity calls relevant is not.",
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
            scale = alone.select("world", "judged", "metric", "estimator", "what", "truth").filter(
                pl.col("what") == "popularity"
            )
            apart = cells.filter("difference").join(
                scale.rename({"truth": "level"}).drop("what"), on=["world", "judged", "metric", "estimator"]
            ).filter(pl.col("truth").abs() >= 0.02 * pl.col("level").abs())  # fmt: skip
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
