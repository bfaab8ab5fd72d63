"""Intervals of the reliability study, held against the same study of everybody.

A world of many users is the population. A study sees a few hundred of them, drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.rng import generator
from truerank.io.spill import scratch
from truerank.metrics.listwise import NDCG
from truerank.models import Model
from truerank.models.baselines import Popularity, Random
from truerank.models.least_squares import EASE
from truerank.models.neighbours import ItemKNN
from truerank.ranking.scores.scores import dense
from truerank.reliability import Grid, study
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

REPETITIONS = (1, 4)
KEY = ["logger", "sparsity", "sampler", "size", "question"]
# what is asked: the column of the value, and of its interval
ASKED = {
    "mean over users": ("value", "low", "high"),
    "undefined as 0": ("value_undefined_as_0", "low_undefined_as_0", "high_undefined_as_0"),
    "of means": ("tau_of_means", "tau_of_means_low", "tau_of_means_high"),
}
COLUMNS = [name for names in ASKED.values() for name in names]
AT_ONCE = 20  # studies that are kept together


@dataclass(frozen=True, slots=True)
class PopulationSettings:
    """Who there is, how many of them a study sees, and how much it does."""

    settings: DatasetSettings
    seed: int
    users: int
    resamples: int
    truth_repetitions: int

    def population(self) -> StudiedPopulation:
        return studied_population(self.settings, self.seed)


def studied_world(seed: int, *, full: bool) -> PopulationSettings:
    if not full:
        few = DatasetSettings(users=200, items=80, density=0.1, shown=15, judged=8)
        return PopulationSettings(few, seed, users=60, resamples=20, truth_repetitions=2)
    many = DatasetSettings(users=6000, items=200, density=0.08, shown=30, judged=10)
    return PopulationSettings(many, seed, users=300, resamples=500, truth_repetitions=20)


def grid(repetitions: int) -> Grid:
    return Grid.from_names(
        loggers=["uniform", "popularity"], sparsities=[0.5, 0.9], sizes=[5, 50],
        samplers=["Full", "Exposed", "Random", "Popularity", "WTDH"], metrics=[NDCG(10)], repetitions=repetitions,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class StudiedPopulation:
    """Labels and scores of everybody, [users x items], and what models were trained on."""

    label: Floats
    scores: dict[str, Floats]
    train: Log

    def study(self, users: Ints, *, repetitions: int, resamples: int, seed: int) -> pl.DataFrame:
        """A study of these users, each of whom is somebody new."""
        n, n_items = len(users), self.label.shape[1]
        ids, items = np.arange(n), np.arange(n_items)
        labels = Log(
            Ids.of(ids), Ids.of(items), unit=np.repeat(ids, n_items), item=np.tile(items, n),
            rewards={"label": self.label[users].ravel()},
        )  # fmt: skip
        scores = {name: dense(each[users], users=ids, items=items) for name, each in self.scores.items()}
        with scratch() as space:
            found = study(
                scores, labels, space.make("study"), grid=grid(repetitions), train=self.train,
                exclude=self._seen(users), seed=seed, resamples=resamples, threads=1,
            )  # fmt: skip
        return found.results

    def _seen(self, users: Ints) -> Log:
        """What each of them was trained on."""
        start = np.searchsorted(self.train.user, np.arange(len(self.label) + 1))
        rows = [np.arange(start[u], start[u + 1]) for u in users]
        copy = np.repeat(np.arange(len(users)), [len(each) for each in rows])
        item = self.train.item[np.concatenate(rows)]
        return Log(Ids.of(np.arange(len(users))), self.train.items, unit=copy, item=item, rewards={}, source="seen")


@cache
def studied_population(settings: DatasetSettings, seed: int) -> StudiedPopulation:
    world = simulate_dataset(settings, seed=seed)
    models: dict[str, Model] = {
        "random": Random(),
        "popularity": Popularity(),
        "narrow-knn": ItemKNN(neighbours=5),
        "item-knn": ItemKNN(neighbours=50),
        "ease": EASE(),
    }
    everyone = np.arange(len(world.users))
    scores = {name: model.fit(world.train, seed=1).block(everyone).astype(np.float64) for name, model in models.items()}
    return StudiedPopulation((world.rating > 3).astype(np.float64), scores, world.train)


def study_everybody(world: PopulationSettings) -> pl.DataFrame:
    """The truth: the study of all users, repeated."""
    population = world.population()
    everyone = np.arange(len(population.label))
    results = population.study(everyone, repetitions=world.truth_repetitions, resamples=2, seed=world.seed)
    return results.select(*KEY, *COLUMNS)


def study_few(world: PopulationSettings, repetitions: int, first: int, last: int) -> pl.DataFrame:
    """The figures of some studies of a few users, one study after the other."""
    population, parts = world.population(), []
    for run in range(first, last):
        rng = generator(world.seed + repetitions, f"users of study {run}")
        users = rng.integers(0, len(population.label), world.users)
        seed = int(rng.integers(2**62))
        results = population.study(users, repetitions=repetitions, resamples=world.resamples, seed=seed)
        parts.append(results.select(COLUMNS))
    return pl.concat(parts)


def measured(truth: pl.DataFrame, runs: Floats, repetitions: int) -> pl.DataFrame:
    """Per scenario, question and kind of figure: the truth, the mean estimate, and how often intervals hold the truth.

    `runs` are [runs x rows of the truth x columns].
    """
    parts = []
    for at, (kind, names) in enumerate(ASKED.items()):
        true = truth[names[0]].to_numpy()
        value, low, high = np.moveaxis(runs[..., 3 * at : 3 * at + 3], -1, 0)
        known = ~np.isnan(value)
        with np.errstate(invalid="ignore", divide="ignore"):
            held = ((low - 1e-12 <= true) & (true <= high + 1e-12) & known).sum(axis=0) / known.sum(axis=0)
            mean = np.nansum(value, axis=0) / known.sum(axis=0)
            spread = np.sqrt(np.nansum((value - mean) ** 2, axis=0) / (known.sum(axis=0) - 1))
        parts.append(
            truth.select(KEY).with_columns(
                kind=pl.lit(kind), repetitions=pl.lit(repetitions), truth=true, mean=mean, sd=spread,
                covered=held,
            )
        )  # fmt: skip
    # what cannot vary (a tau of 1 by definition) is nothing to cover; tie rates have no order of means
    varies = (pl.col("sd") > 1e-9) & pl.col("sd").is_not_nan()
    return pl.concat(parts).filter(varies & pl.col("truth").is_not_nan())


def figures(found: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """By kind of figure and question: coverage over scenarios, and the largest bias in standard deviations."""
    rows = found.with_columns(bias=(pl.col("mean") - pl.col("truth")).abs() / pl.col("sd"))
    for (kind, repetitions, question), part in rows.group_by("kind", "repetitions", "question", maintain_order=True):
        yield {
            "kind": kind,
            "repetitions": repetitions,
            "question": question,
            "rows": len(part),
            "least": part["covered"].min(),
            "median": part["covered"].median(),
            "most": part["covered"].max(),
            "bias": part["bias"].max(),
        }


def measure(run: Run) -> Measured:
    """How often intervals of a reliability study of some users hold what a study of everybody finds."""
    world, runs = studied_world(run.seed, full=run.full), 2000 if run.full else 3
    (truth,) = run.pieces(study_everybody, [(world,)], about="studying everybody")
    tables = [_few(run, world, truth, repetitions, runs) for repetitions in REPETITIONS]
    return Measured(
        {"figures": [row for table in tables for row in figures(table)]},
        {
            "runs": runs, "population": world.settings.users, "users": world.users,
        },
    )  # fmt: skip


def _few(run: Run, world: PopulationSettings, truth: pl.DataFrame, repetitions: int, runs: int) -> pl.DataFrame:
    arguments = [(world, repetitions, first, min(first + AT_ONCE, runs)) for first in range(0, runs, AT_ONCE)]
    tables = run.pieces(study_few, arguments, about=f"studying a few, {repetitions} times")
    rows = np.concatenate([table.to_numpy() for table in tables])
    return measured(truth, rows.reshape(runs, len(truth), len(COLUMNS)), repetitions)


STUDIES = (
    Study(
        "reliability-coverage", "Do intervals of a reliability study of some users hold for all users?",
        measure, minutes=20,
    ),
)  # fmt: skip
