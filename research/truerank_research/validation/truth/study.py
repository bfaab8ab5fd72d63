"""How close estimators come to the truth: cells within limits, medians, coverage, and the points of the picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.truth.known import FIRST
from truerank_research.validation.truth.worlds import KEY, draw_worlds, ratios, summary, worlds

NOISE = 2  # Monte-Carlo errors that a ratio may lie beyond a bar
GOOD, STRATA = "assisted by a good judge", "post-stratified"
GROUPS = {"5, 10": (5, 10), "20, 50": (20, 50), "500": (500, 500)}  # of cut-offs
COST, FEW, SHORT = 1.02, 20, 10  # what assistance may cost; judged items that are few; a short list
CLEAR = 0.02  # of popularity's value: differences whose sign is asked for
REAL = ("kuairec", "jester")
DIGITS = 3  # of what is drawn


def measure(run: Run) -> Measured:
    chosen, draws = (worlds(run), 2000) if run.full else (worlds(run)[:2], 8)
    parts = []
    for world, drawn in draw_worlds(run, chosen, draws=draws):
        wide = ratios(drawn).pivot("reference", index=KEY, values=["ratio", "noise"])
        row = summary(drawn).join(wide, on=KEY, how="left")
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
            "medians": list(_medians(found)),
            "dots": _dots(found),
        },
        {
            "worlds": found["world"].unique(maintain_order=True).to_list(),
            "most draws": draws.max(),
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
    for info, cells, reference, bar in (
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
        yield {"about": info, "bar": bar, "held": len(held), "cells": len(own),
               "median": own[f"ratio_{reference}"].median()}  # fmt: skip


def told_apart(cells: pl.DataFrame) -> pl.DataFrame:
    """Differences to popularity of some size: their sign is asked for."""
    key = ["world", "judged", "metric", "estimator"]
    level = cells.filter(pl.col("what") == FIRST).select(*key, level="truth")
    apart = cells.filter("difference").join(level, on=key, maintain_order="left")
    return apart.filter(pl.col("truth").abs() >= CLEAR * pl.col("level").abs())


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


def _dots(found: pl.DataFrame) -> list[dict[str, Any]]:
    """Of each contender, dataset and group of cut-offs: median, lowest and highest ratio of variances."""
    groups = {k: name for name, ks in GROUPS.items() for k in ks}
    rows = found.filter(~pl.col("random") & ~pl.col("difference") & pl.col("ratio").is_finite()).with_columns(
        lists=pl.col("k").replace_strict(groups, return_dtype=pl.String), value=pl.col("ratio").round(DIGITS)
    )
    by = rows.group_by("kind", "estimator", "lists", "world", maintain_order=True)
    return by.agg(median=pl.col("value").median(), low=pl.col("value").min(), high=pl.col("value").max()).to_dicts()


STUDIES = (
    Study(
        "truth", "How close do estimators come to the truth?", measure, data=("kuairec", "jester"), minutes=30,
    ),
)  # fmt: skip
