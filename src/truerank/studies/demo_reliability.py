"""The demo's reliability study: how far sampled evaluation on a biased log can be trusted, where the truth is known."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from truerank.core.ranking import Scores
from truerank.metrics.ndcg import NDCG
from truerank.studies.reliability import Grid, study
from truerank.studies.world import World

METRIC = NDCG(10)
SPARSITY = 0.95
SIZES = (10, 100)
SAMPLERS = ("Full", "Exposed", "Random", "Popularity")
LOGGERS = ("uniform", "popularity")
WHAT = {
    "Full": "every item that was not shown counts as a negative",
    "Exposed": "only what was shown competes",
    "Random n": "n negatives from all items of the log",
    "Popularity n": "the same, popular ones more often",
}

Say = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Trusted:
    """How a way to choose candidates did: ties of models, and agreement with the true order per user and of means."""

    candidates: str
    ties: float
    tau: float
    low: float
    high: float
    tau_of_means: float


def trusted(world: World, models: Mapping[str, Scores], folder: Path, *, seed: int, say: Say | None) -> list[Trusted]:
    """Study the world of the demo, and what came out where 95 % of it is hidden by a logger that likes the popular."""
    if (folder / "study.json").is_file():
        shutil.rmtree(folder)  # of an earlier demo, perhaps with another seed
    grid = Grid.of(loggers=LOGGERS, samplers=SAMPLERS, sparsities=(0.5, SPARSITY), sizes=SIZES, metrics=(METRIC,))
    found = study(
        models, world.truth, folder, grid=grid, train=world.train, exclude=world.train, seed=seed, progress=say
    )
    rows = found.results.filter(pl.col("logger") == "popularity", pl.col("sparsity") == SPARSITY)
    ties = rows.filter(question="resolution")["value"]
    taus = rows.filter(question="predictive_power").with_columns(ties=ties)
    return [
        Trusted(
            row["sampler"] if row["size"] is None else f"{row['sampler']} {row['size']}",
            row["ties"],
            row["value_undefined_as_0"],
            row["low_undefined_as_0"],
            row["high_undefined_as_0"],
            row["tau_of_means"],
        )
        for row in taus.iter_rows(named=True)
    ]
