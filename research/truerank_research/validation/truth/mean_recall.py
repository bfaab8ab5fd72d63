"""The mean recall over users: errors of `corrected` and of others over those of the published mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from truerank.core.estimator import Estimator, Learned, Request
from truerank.core.ranking import Ranks, RankView
from truerank.core.terms import Terms
from truerank.estimators.weighted import Published
from truerank.inference.intervals import Population
from truerank.metrics.additive import Recall
from truerank_research.estimators.corrected import Corrected
from truerank_research.estimators.curve_messages import check_fit
from truerank_research.estimators.curved_recall import CurvedRecall
from truerank_research.estimators.weighted import WeightedUsers
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.truth.contenders import Contender, ShownRows, published
from truerank_research.validation.truth.known import KnownWorld
from truerank_research.validation.truth.worlds import (
    KEY,
    Reported,
    TruthWorld,
    draw_worlds,
    errors,
    named,
    pairs_of,
    summary,
    worlds,
)

ESTIMATORS: tuple[Estimator, ...] = (Published(), Corrected(), WeightedUsers())
MEAN_OF_USERS = Contender("published", "Recall", published, of_users=True)


@dataclass(frozen=True, slots=True)
class MeanRecallWorld:
    """The draws of a dataset of the study, asked for the mean recall over users; each with its intervals."""

    drawn: TruthWorld

    def reported(self, seed: int, run: int) -> Iterator[Reported]:
        """Every value and every difference from the first model; warned where verdicts are taken from it."""
        draw = self.drawn.draw(seed, run)
        chunk, views = draw.chunk(), {model: RankView(ranks_of(draw, model)) for model in draw.world.rank}
        asked = [Request(Recall(k)) for k in self._cutoffs(draw.world)]
        for estimator in ESTIMATORS:
            found = {
                model: estimator.terms(chunk, view, requests=asked, learned=Learned()) for model, view in views.items()
            }
            for at, question in enumerate(asked):
                terms: dict[str, Terms] = {model: parts[at] for model, parts in found.items()}
                doubted = {
                    model for model, part in terms.items() if isinstance(part, CurvedRecall) and any(check_fit(part))
                }
                alone, apart = Population().spreads(terms, pairs_of(terms), level=0.95)
                for what, spread in named(alone, apart):
                    is_warned = not doubted.isdisjoint(what.split(" - "))
                    yield what, str(question.metric), estimator.info.name, spread, is_warned

    def true_values(self, seed: int) -> dict[tuple[str, str, str], float]:
        """The mean recall over all users with a relevant item, which all of them are to come close to."""
        world = self.drawn.known(seed)
        return {
            (what, str(Recall(k)), estimator.info.name): value
            for k in self._cutoffs(world)
            for what, value in MEAN_OF_USERS.truths(world, k).items()
            for estimator in ESTIMATORS
        }

    def _cutoffs(self, world: KnownWorld) -> list[int]:
        return [k for k in self.drawn.cutoffs if k < world.n_items]


def ranks_of(draw: ShownRows, model: str) -> Ranks:
    """The rank of every shown row; no two items of a user share one."""
    above = draw.world.rank[model][draw.user[:, None], draw.item].ravel().astype(np.float64)
    size = np.full(len(draw.user), float(draw.world.n_items))
    return Ranks(above, np.zeros(len(above)), size, size, np.ones(len(draw.user), dtype=bool))


CORRECTED = "corrected"
REAL, CUTOFF = "kuairec", 50
NOISE = 2  # Monte-Carlo errors that a cell may lie beyond a bar
COVERED = 0.9  # share of draws in which intervals are to hold the truth
OFF, NEAR, MANY = 0.15, 0.05, 20  # the published mean is far off, or right already; judged items that are not few


def measure(run: Run) -> Measured:
    chosen, draws = (worlds(run), 500) if run.full else (worlds(run)[:1], 4)
    parts = []
    for world, drawn in draw_worlds(run, [MeanRecallWorld(world) for world in chosen], draws=draws):
        row = summary(drawn).join(errors(drawn), on=KEY)
        parts.append(
            row.select(pl.lit(world.drawn.source).alias("world"), pl.lit(world.drawn.judged).alias("judged"), pl.all())
        )
    return mean_recall_tables(pl.concat(parts, how="diagonal"))


def mean_recall_tables(found: pl.DataFrame) -> Measured:
    """Every cell (world, model, K, number judged), the bars and what misses them."""
    means = found.with_columns(
        k=pl.col("metric").str.split("@").list.get(1).cast(pl.Int64),
        bias=(pl.col("mean") - pl.col("truth")) / pl.col("truth").abs(),
    )
    reached, missed = bars(means)
    own = means.filter((pl.col("estimator") == CORRECTED) & ~pl.col("difference"))
    return Measured({"cells": _cells(means), "bars": reached, "missed": missed}, {"draws": own["draws"].min()})


def bars(means: pl.DataFrame) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was to be reached, in how many cells it is, and those in which it is not.

    A cell holds a bar if it lies beyond it by no more than two of its own Monte-Carlo errors.
    """
    own = means.filter((pl.col("estimator") == CORRECTED) & ~pl.col("difference"))
    off, near = pl.col("published_bias").abs() > OFF, pl.col("published_bias").abs() <= NEAR
    deep, many = pl.col("k") >= CUTOFF, pl.col("judged") >= MANY
    svd_at_500 = pl.col("what").str.starts_with("svd") & (pl.col("k") == 500)
    short = pl.col("covered") < COVERED - NOISE * (COVERED * (1 - COVERED) / pl.col("intervals")).sqrt()
    beyond = pl.col("error_published") > pl.col("bar") + NOISE * pl.col("noise_error")
    far = "error, published more than 15 % off, K ≥ 50"
    asked = (
        (f"{far}, 20 and 80 judged", off & deep & many & ~svd_at_500, 0.5, beyond),
        ("the same, an SVD at K = 500", off & many & svd_at_500, 0.7, beyond),
        (f"{far}, 10 judged", off & deep & (pl.col("judged") == 10), 0.75, beyond),
        ("error, KuaiRec, K = 5, published more than 15 % off",
         off & (pl.col("world") == REAL) & (pl.col("k") == 5), 0.6, beyond),
        ("error, published within 5 %", near, 1.35, beyond),
        ("intervals, 20 and 80 judged, hold the truth in", many, COVERED, short),
    )  # fmt: skip
    rows, missed = [], []
    for info, which, bar, misses in asked:
        part = own.filter(which).with_columns(bar=pl.lit(bar))
        fell, of_shares = part.filter(misses), misses is short
        worst = part["covered"].min() if of_shares else part["error_published"].max()
        rows.append({"about": info, "of intervals": of_shares, "bar": bar, "held": len(part) - len(fell),
                     "cells": len(part), "worst": worst})  # fmt: skip
        missed += fell.select(
            "world", "what", "k", "judged", "bar", pl.lit(of_shares).alias("of intervals"), error="error_published",
            covered="covered", warned="warned",
        ).to_dicts()  # fmt: skip
    return rows, missed


def _cells(means: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each model, K and number judged of a world: of `corrected`, and the error of another correction."""
    key = ["world", "what", "k", "judged"]
    values = means.filter(~pl.col("difference"))
    weighted = values.filter(pl.col("estimator") == "weighted").select(*key, weighted="error_published")
    order = {world: at for at, world in enumerate(values["world"].unique(maintain_order=True))}
    rows = values.filter(pl.col("estimator") == CORRECTED).select(
        *key, "draws", "truth", "published_bias", "bias", "covered", "warned", error="error_published"
    )
    rows = rows.join(weighted, on=key, how="left", maintain_order="left")
    return sorted(
        rows.to_dicts(), key=lambda row: (order[row["world"]], row["what"], row["k"], row["judged"])
    )  # fmt: skip


STUDIES = (
    Study(
        "mean-recall", "Can the mean recall over users be estimated from few random labels?", measure,
        data=("kuairec", "jester"), minutes=15,
    ),
)  # fmt: skip
