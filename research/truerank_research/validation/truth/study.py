"""How close estimators come to the truth: cells within limits, medians, coverage, and the points of the picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from truerank_research.pages import Page, Picture
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.calibration.drawing import draw_worlds
from truerank_research.validation.truth.contenders import DOUBT
from truerank_research.validation.truth.known import FIRST, JUDGES
from truerank_research.validation.truth.summary import REFERENCES, ratios, summary
from truerank_research.validation.truth.worlds import worlds

NOISE = 2  # Monte-Carlo errors that a ratio may lie beyond a bar
REFERENCE = {metric: first for metric, (first, _) in REFERENCES.items()}
GOOD, STRATA = "assisted by a good judge", "post-stratified"
GROUPS = {"5, 10": (5, 10), "20, 50": (20, 50), "500": (500, 500)}  # of cut-offs
COST, FEW, SHORT = 1.02, 20, 10  # what assistance may cost; judged items that are few; a short list
CLEAR = 0.02  # of popularity's value: differences whose sign is asked for
REAL = ("kuairec", "jester")
DIGITS = 3  # of what is drawn


def measure(run: Run) -> Measured:
    key = ["what", "metric", "estimator"]
    chosen, draws = (worlds(run), 2000) if run.full else (worlds(run)[:2], 8)
    parts = []
    for world, drawn in draw_worlds(run, chosen, draws=draws):
        wide = ratios(drawn).pivot("reference", index=key, values=["ratio", "noise"])
        row = summary(drawn).join(wide, on=key, how="left")
        parts.append(row.select(pl.lit(world.source).alias("world"), pl.lit(world.judged).alias("judged"), pl.all()))
    return truth_tables(with_cutoffs(pl.concat(parts, how="diagonal")))


def with_cutoffs(found: pl.DataFrame) -> pl.DataFrame:
    """Metric and cut-off in columns of their own, and the ratio to the first reference."""
    kind, k = (pl.col("metric").str.split("@").list.get(at) for at in (0, 1))
    first = pl.when(kind == "Precision")
    return found.with_columns(
        kind=kind,
        k=k.cast(pl.Int64),
        random=pl.col("what").str.starts_with("random"),
        ratio=first.then(pl.col("ratio_horvitz-thompson")).otherwise(pl.col("ratio_pooled")),
        noise=first.then(pl.col("noise_horvitz-thompson")).otherwise(pl.col("noise_pooled")),
    )


def truth_tables(found: pl.DataFrame) -> Measured:
    """Bars and what misses them, medians by cut-off, coverage, the cells of real worlds, and dots of the picture."""
    draws = found.filter(pl.col("estimator") == "hajek")["draws"]
    return Measured(
        {
            "bars": list(_bars(found)),
            "exceptions": list(_exceptions(found)),
            "medians": list(_medians(found)),
            "coverage": list(_coverage(found)),
            "cells": _cells(found),
            "dots": _dots(found),
        },
        {
            "worlds": found["world"].unique(maintain_order=True).to_list(),
            "fewest draws": draws.min(),
            "most draws": draws.max(),
            "noise": found["noise"].filter(found["noise"] > 0).median(),
            "judges": {name: list(rates) for name, rates in JUDGES.items()},
            "doubt": DOUBT,
            "costs": _costs(found),
        },
    )


def _assisted(found: pl.DataFrame) -> pl.DataFrame:
    return found.filter((pl.col("kind") == "Precision") & pl.col("estimator").str.starts_with("assisted"))


def _bars(found: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Ratios of variances that were to be reached: how many cells do, chance apart, and the median."""
    value, ranked = ~pl.col("difference"), ~pl.col("random")
    assisted, post = _assisted(found), found.filter((pl.col("estimator") == STRATA) & value)
    over, by = "post-stratified over pooled", "assisted (all) over hajek"
    good = assisted.filter((pl.col("estimator") == GOOD) & value & ranked)
    for about, cells, reference, bar in (
        (f"{over}, all K", post.filter(ranked), "pooled", 1.02),
        (f"{over}, a random list", post.filter(~ranked), "pooled", 1.06),
        (f"{over}, K ≤ 10", post.filter(ranked & (pl.col("k") <= SHORT)), "pooled", 0.7),
        (f"{by}, values", assisted.filter(value), "hajek", COST),
        (f"{by}, differences", assisted.filter(~value), "hajek", COST),
        ("assisted by the good judge over horvitz-thompson", good, "horvitz-thompson", 0.5),
    ):
        ratio, noise = pl.col(f"ratio_{reference}"), pl.col(f"noise_{reference}")
        own = cells.filter(ratio.is_not_null() & ratio.is_finite())
        held = own.filter(ratio <= bar + NOISE * noise)
        yield {"about": about, "bar": bar, "held": len(held), "cells": len(own),
               "median": own[f"ratio_{reference}"].median()}  # fmt: skip


def _exceptions(found: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Worlds and cut-offs whose median lies above the bar of the good judge, or of strata in short lists."""
    near = found.filter(~pl.col("difference") & ~pl.col("random"))
    for kind, estimator, most, bar in (("Precision", GOOD, 500, 0.5), ("Recall", STRATA, SHORT, 0.7)):
        own = near.filter((pl.col("kind") == kind) & (pl.col("estimator") == estimator) & (pl.col("k") <= most))
        above = own.group_by("world", "k").agg(pl.col("ratio").median()).filter(pl.col("ratio") > bar)
        for world, k, ratio, relevant in above.join(_relevant(near), on=["world", "k"]).sort("world", "k").rows():
            yield {"estimator": estimator, "world": world, "k": k, "median": ratio, "relevant": relevant}


def _relevant(near: pl.DataFrame) -> pl.DataFrame:
    """The share of places that are relevant: of each world and cut-off the median over recommenders."""
    return near.filter(pl.col("kind") == "Precision").group_by("world", "k").agg(relevant=pl.col("truth").median())


def told_apart(cells: pl.DataFrame) -> pl.DataFrame:
    """Differences to popularity of some size: their sign is asked for."""
    key = ["world", "judged", "metric", "estimator"]
    level = cells.filter(pl.col("what") == FIRST).select(*key, level="truth")
    apart = cells.filter("difference").join(level, on=key, maintain_order="left")
    return apart.filter(pl.col("truth").abs() >= CLEAR * pl.col("level").abs())


def _costs(found: pl.DataFrame) -> dict[str, Any]:
    """Cells in which assistance costs more than it may, by more than chance: how many, where, and the worst."""
    assisted = _assisted(found)
    costs = assisted.filter(pl.col("ratio_hajek") > COST + NOISE * pl.col("noise_hajek"))
    apart, chance = costs.filter("difference"), costs.filter(pl.col("random") & ~pl.col("difference"))
    counts = {
        "cells": len(costs), "of": len(assisted), "random": len(chance),
        "most relevant of random": chance["truth"].max(), "differences": len(apart),
        "least k of differences": apart["k"].min(),
    }  # fmt: skip
    if not len(costs):
        return counts
    worst = costs.sort("ratio_hajek", descending=True).row(0, named=True)
    return counts | {name: worst[name] for name in ("ratio_hajek", "what", "world", "k", "judged", "estimator")}


def _contenders(found: pl.DataFrame) -> list[tuple[str, str]]:
    return found.select("kind", "estimator").unique(maintain_order=True).rows()


def _medians(found: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Of each contender and group of cut-offs, over worlds, recommenders and numbers judged."""
    for kind, estimator in _contenders(found):
        own = found.filter((pl.col("kind") == kind) & (pl.col("estimator") == estimator) & ~pl.col("random"))
        for words, (low, high) in GROUPS.items():
            cells = own.filter(pl.col("k").is_between(low, high))
            alone = cells.filter(~pl.col("difference"))
            if not len(alone):
                continue
            yield {
                "metric": kind, "estimator": estimator, "k": words, "variance": alone["ratio"].median(),
                "off": ((alone["mean"] - alone["truth"]).abs() / alone["variance"].sqrt()).median(),
                "covered": alone["covered"].mean(), "right signs": told_apart(cells)["right_sign"].mean(),
            }  # fmt: skip


def _coverage(found: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Coverage of real recommenders and of random lists, by contender: means over all cells, which few draws allow."""
    value, ranked = ~pl.col("difference"), ~pl.col("random")
    for kind, estimator in _contenders(found):
        own = found.filter((pl.col("kind") == kind) & (pl.col("estimator") == estimator))
        yield {
            "metric": kind, "estimator": estimator, "values": own.filter(value & ranked)["covered"].mean(),
            "differences": own.filter(~value & ranked)["covered"].mean(),
            "random": own.filter(value & ~ranked)["covered"].mean(),
        }  # fmt: skip


def _cells(found: pl.DataFrame) -> list[dict[str, Any]]:
    """Every cell of the real worlds at 20 judged items."""
    own = found.filter(pl.col("world").is_in(REAL) & (pl.col("judged") == FEW))
    return own.select("world", "what", "metric", "estimator", "truth", "mean", "ratio", "rmse", "covered").to_dicts()


def _dots(found: pl.DataFrame) -> list[dict[str, Any]]:
    """Of each contender, world and group of cut-offs the median of all cells, the lowest and the highest.

    Variance and error are over those of the usual estimator, which is among the contenders.
    """
    own = found.filter(~pl.col("random"))
    alone = own.filter(~pl.col("difference"))
    key = ["world", "judged", "what", "metric"]
    usual = alone.filter(pl.col("estimator").is_in(list(REFERENCE.values()))).select(*key, usual="rmse")
    beside = alone.join(usual, on=key, maintain_order="left")
    measures = (
        ("variance", alone, pl.col("ratio")),
        ("error", beside, pl.col("rmse") / pl.col("usual")),
        ("coverage", alone, pl.col("covered")),
        ("right signs", told_apart(own), pl.col("right_sign")),
    )
    group = ["kind", "estimator", "lists", "measure", "world"]
    lists = pl.col("k").replace_strict({k: name for name, ks in GROUPS.items() for k in ks}, return_dtype=pl.String)
    cells = pl.concat(
        rows.select("kind", "estimator", "world", lists=lists, measure=pl.lit(name), value=value)
        for name, rows, value in measures
    ).filter(pl.col("value").is_finite())
    value = pl.col("value").round(DIGITS)
    found = cells.group_by(group, maintain_order=True).agg(median=value.median(), low=value.min(), high=value.max())
    return found.to_dicts()


PAGE = Page(
    "Accuracy of estimators where every label is known",
    "Random labels were drawn {{ settings['most draws'] | number }} times from {{ settings.worlds | length }} datasets with "
    "complete labels ({{ settings.worlds | join(', ') }}). Post-stratified recall has a median variance of "
    "{{ tables.bars[0].median | percent(0) }} of that of pooled recall; assistance by a good judge reduces the variance of "
    "precision to {{ tables.bars[5].median | percent(0) }} of Horvitz-Thompson's.",
    Picture(
        "Variance over that of the usual estimator (Precision: Horvitz-Thompson, Recall: pooled), by cut-offs",
        "ranges", x="estimator", y="median", low="low", high="high", group="world", panel="lists",
        y_title="ratio of variances", table="dots", where={"measure": ["variance"]}, level=1.0,
    ),
    "medians",
    {
        "metric": "metric", "estimator": "estimator", "k": "cut-offs", "variance": "ratio of variances",
        "off": "bias in SD", "covered": "coverage", "right signs": "correct signs",
    },
)  # fmt: skip
STUDIES = (
    Study(
        "truth", "How close do estimators come to the truth?", measure, data=("kuairec", "jester"), minutes=30,
        page=PAGE,
    ),
)  # fmt: skip
