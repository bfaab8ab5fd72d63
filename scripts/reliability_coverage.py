"""Do the intervals of a reliability study keep their promise? `make reliability-coverage` writes docs/results/reliability-coverage.md.

A world of many users is the population. A study sees a few hundred of them, drawn with replacement; its intervals are held against the same
study of everybody, repeated. What is done is kept in a folder, so that an interrupted run goes on; delete the folder to start again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from cores import on_all_cores
from result_pages import write_page
from truerank.core.arrays import Floats, Ints
from truerank.core.chance import generator
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.data.whole import whole_file
from truerank.metrics.ndcg import NDCG
from truerank.models import Model
from truerank.models.baselines import Popularity, Random
from truerank.models.ease import EASE
from truerank.models.neighbours import ItemKNN
from truerank.ranks.scores.scores import dense
from truerank.studies.reliability import Grid, study
from truerank.studies.world import WorldSettings, make_world

SEED = 20261118
OUT = Path("docs/results/reliability-coverage.md")
DONE = Path("build/reliability-coverage")
SETTINGS = WorldSettings(users=6000, items=200, density=0.08, shown=30, judged=10)
USERS = 300  # of each study
REPETITIONS = (1, 4)
TRUTH_REPETITIONS = 20
RESAMPLES = 500
KEY = ["logger", "sparsity", "sampler", "size", "question"]
# what is asked: the column of the value, and of its interval
ASKED = {
    "mean over users": ("value", "low", "high"),
    "undefined as 0": ("value_undefined_as_0", "low_undefined_as_0", "high_undefined_as_0"),
    "of means": ("tau_of_means", "tau_of_means_low", "tau_of_means_high"),
}
COLUMNS = [name for names in ASKED.values() for name in names]


def grid(repetitions: int) -> Grid:
    return Grid.of(
        loggers=["uniform", "popularity"], sparsities=[0.5, 0.9], samplers=["Full", "Exposed", "Random", "Popularity", "WTDH"],
        sizes=[5, 50], metrics=[NDCG(10)], repetitions=repetitions,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Population:
    """Labels and scores of everybody, [users x items], and what models were trained on."""

    label: Floats
    scores: dict[str, Floats]
    train: Log

    @classmethod
    def made(cls) -> Population:
        world = make_world(SETTINGS, seed=SEED)
        models: dict[str, Model] = {
            "random": Random(),
            "popularity": Popularity(),
            "narrow-knn": ItemKNN(neighbours=5),
            "item-knn": ItemKNN(neighbours=50),
            "ease": EASE(),
        }
        everyone = np.arange(len(world.users))
        scores = {
            name: model.fit(world.train, seed=1).block(everyone).astype(np.float64) for name, model in models.items()
        }
        return cls((world.rating > 3).astype(np.float64), scores, world.train)

    def study(self, users: Ints, *, repetitions: int, resamples: int, seed: int) -> pl.DataFrame:
        """A study of these users, each of whom is somebody new."""
        n, n_items = len(users), self.label.shape[1]
        ids, items = np.arange(n), np.arange(n_items)
        labels = Log(
            Ids.of(ids), Ids.of(items), user=np.repeat(ids, n_items), item=np.tile(items, n),
            rewards={"label": self.label[users].ravel()},
        )  # fmt: skip
        scores = {name: dense(each[users], users=ids, items=items) for name, each in self.scores.items()}
        with tempfile.TemporaryDirectory() as folder:
            found = study(
                scores, labels, Path(folder) / "study", grid=grid(repetitions), train=self.train,
                exclude=self._seen(users), seed=seed, resamples=resamples, threads=1,
            )  # fmt: skip
        return found.results

    def _seen(self, users: Ints) -> Log:
        """What each of them was trained on."""
        start = np.searchsorted(self.train.user, np.arange(len(self.label) + 1))
        rows = [np.arange(start[u], start[u + 1]) for u in users]
        copy = np.repeat(np.arange(len(users)), [len(each) for each in rows])
        item = self.train.item[np.concatenate(rows)]
        return Log(Ids.of(np.arange(len(users))), self.train.items, user=copy, item=item, rewards={}, source="seen")


@dataclass(frozen=True)
class Run:
    """One study of a few users: its figures, [rows x columns]."""

    population: Population
    repetitions: int
    seed: int

    def __call__(self, run: int) -> Floats:
        chance = generator(self.seed, f"users of study {run}")
        users = chance.integers(0, len(self.population.label), USERS)
        seed = int(chance.integers(2**62))
        found = self.population.study(users, repetitions=self.repetitions, resamples=RESAMPLES, seed=seed)
        return found.select(COLUMNS).to_numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    DONE.mkdir(parents=True, exist_ok=True)
    population = Population.made()
    truth = kept_truth(population)
    tables = {
        repetitions: measured(truth, kept_runs(population, repetitions=repetitions, runs=arguments.runs), repetitions)
        for repetitions in REPETITIONS
    }
    write_page(arguments.out, "reliability-coverage", page(tables, runs=arguments.runs))


def kept_truth(population: Population) -> pl.DataFrame:
    path = DONE / "truth.parquet"
    if not path.exists():
        print("everybody ...", file=sys.stderr, flush=True)
        everyone = np.arange(len(population.label))
        found = population.study(everyone, repetitions=TRUTH_REPETITIONS, resamples=2, seed=SEED)
        with whole_file(path) as temporary:
            found.write_parquet(temporary)
    return pl.read_parquet(path)


def kept_runs(population: Population, *, repetitions: int, runs: int, part: int = 100) -> Floats:
    """[runs x rows x columns], made and kept in parts."""
    found = []
    for low in range(0, runs, part):
        path = DONE / f"{repetitions}-{low}-{min(runs, low + part)}.npy"
        if not path.exists():
            work = Run(population, repetitions, SEED + repetitions)
            made = np.stack(on_all_cores(work, range(low, min(runs, low + part))))
            with whole_file(path) as temporary, temporary.open("wb") as file:
                np.save(file, made)
            print(f"{repetitions} repetitions: {min(runs, low + part)} of {runs}", file=sys.stderr, flush=True)
        found.append(np.load(path))
    return np.concatenate(found)


def measured(truth: pl.DataFrame, runs: Floats, repetitions: int) -> pl.DataFrame:
    """Per scenario, question and kind of figure: the truth, the mean of estimates, and how often intervals hold the truth."""
    parts = []
    for at, (kind, names) in enumerate(ASKED.items()):
        true = truth[names[0]].to_numpy()
        value, low, high = np.moveaxis(runs[..., 3 * at : 3 * at + 3], -1, 0)
        known = ~np.isnan(value)
        with np.errstate(invalid="ignore", divide="ignore"):
            held = ((low - 1e-12 <= true) & (true <= high + 1e-12) & known).sum(axis=0) / known.sum(axis=0)
            mean = np.nansum(value, axis=0) / known.sum(axis=0)
            spread = np.sqrt(np.nansum((value - mean) ** 2, axis=0) / (known.sum(axis=0) - 1))
            width = np.nansum(high - low, axis=0) / known.sum(axis=0)
        parts.append(
            truth.select(KEY).with_columns(
                kind=pl.lit(kind),
                repetitions=pl.lit(repetitions),
                truth=true,
                mean=mean,
                sd=spread,
                width=width,
                covered=held,
            )
        )
    # what cannot vary (a tau of 1 by definition) is nothing to cover; tie rates have no order of means
    return pl.concat(parts).filter((pl.col("sd") > 1e-9) & pl.col("truth").is_not_nan())


def page(tables: dict[int, pl.DataFrame], *, runs: int) -> str:
    lines = [
        "# Intervals of the reliability study",
        "",
        f"Written by `make reliability-coverage`. The population is a synthetic world of {SETTINGS.users:,} users x {SETTINGS.items} items with five "
        f"recommenders (random, popularity, two item-knn, EASE), whose training pairs are excluded. A study sees {USERS} of these users, drawn with "
        f"replacement; {runs:,} studies for each number of repetitions, {RESAMPLES} resamples, 95 % intervals, nDCG@10, seed {SEED}. The truth is the same "
        f"study of everybody, the mean of {TRUTH_REPETITIONS} repetitions. With {runs:,} studies a correct method falls within "
        f"{0.95 - 3.3 * (0.95 * 0.05 / runs) ** 0.5:.1%} to {0.95 + 3.3 * (0.95 * 0.05 / runs) ** 0.5:.1%} with 99.9 % probability.",
        "",
        "| figure | repetitions | question | rows | coverage: least | median | most | largest bias in standard deviations |",
        "|---|---|---|---|---|---|---|---|",
        *summary(tables),
        "",
        *REMARKS,
        "",
    ]
    for repetitions, table in tables.items():
        lines += [f"## {repetitions} repetition{'s' * (repetitions > 1)}, logger popularity, 90 % hidden", ""]
        lines += [
            "| figure | question | candidates | truth | mean | sd | mean width | coverage |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in table.filter(pl.col("logger") == "popularity", pl.col("sparsity") == 0.9).iter_rows(named=True):
            size = "" if row["size"] is None else f" {row['size']}"
            lines.append(
                f"| {row['kind']} | {row['question']} | {row['sampler']}{size} | {row['truth']:.4f} | {row['mean']:.4f} | {row['sd']:.4f} | "
                f"{row['width']:.4f} | {row['covered']:.1%} |"
            )
        lines.append("")
    return "\n".join(lines)


REMARKS = [
    "What to expect of them:",
    "",
    "- One repetition: most intervals do what they say. Those that hold the truth too rarely are of two kinds. Samplers that weigh items by their rows in the log (Popularity, WTDH), above all where all items "
    "have been shown about equally often (logger uniform): ranks of nearly equal counts are chance of the users who are there, so that a study of few users expects something else than one of many; the "
    "interval knows nothing of that bias. And means close to 1, to which few users contribute.",
    "- Several repetitions: intervals are wider than they need to be, as a bootstrap that redraws users and repetitions is; the same two kinds are the exceptions.",
    "- τ of means takes few values, and close models change places from resample to resample: intervals are wide, mostly hold the truth always, and the estimate itself is too low where models are close in the world and some draws "
    "of users turn them round.",
]


def summary(tables: dict[int, pl.DataFrame]) -> Iterator[str]:
    for table in tables.values():
        rows = table.with_columns(bias=(pl.col("mean") - pl.col("truth")).abs() / pl.col("sd"))
        for key, part in rows.group_by(["kind", "repetitions", "question"], maintain_order=True):
            covered, bias = part["covered"], cast("float", part["bias"].max())
            yield (
                f"| {' | '.join(map(str, key))} | {len(part)} | {_share(covered.min())} | {_share(covered.median())} | "
                f"{_share(covered.max())} | {bias:.2f} |"
            )


def _share(value: Any) -> str:
    return f"{float(value):.1%}"


if __name__ == "__main__":
    main()
