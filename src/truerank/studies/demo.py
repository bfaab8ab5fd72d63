"""The demo: hide a known world, evaluate with every scheme, and see which scheme finds the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.estimator import Asked, Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.options import Denominator, Gain, Ideal
from truerank.core.ranking import Scores
from truerank.core.results import Results
from truerank.data.files import write
from truerank.estimators.biased.ips import IPS
from truerank.estimators.biased.naive import Naive
from truerank.estimators.biased.snips import SNIPS
from truerank.estimators.judged.full import Full, Traditional
from truerank.estimators.judged.hajek import Hajek
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.judged.published import Published
from truerank.estimators.ranked.ips import RankedIPS
from truerank.estimators.ranked.naive import LearntDiscountRaw
from truerank.estimators.ranked.snips import RankedSNIPS
from truerank.evaluation.judged import evaluate
from truerank.evaluation.ranked import off_policy
from truerank.exposure.kinds import BiasedExposure, RandomExposure
from truerank.exposure.loggers.expose import expose_independently
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.dcg import DCG
from truerank.metrics.ndcg import NDCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.models import Model
from truerank.models.baselines import Popularity, Random
from truerank.models.ease import EASE
from truerank.models.neighbours import ItemKNN
from truerank.ranks.scores.files import write_scores
from truerank.studies.feed import FeedSettings
from truerank.studies.feed_truth import write_feed
from truerank.studies.reliability import Grid, study
from truerank.studies.world import World, WorldSettings, make_world, write_tables

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


SETTINGS = FeedSettings(sessions=4000)
TARGETS = ("better", "worse")
WHY = {
    "dcg-raw": "counts clicks by the new rank alone, on a scale of its own: what the old ranker buried had no chance "
    "to be clicked",
    "ips": "each click counts by how much likelier the new ranker shows the item than the old one did",
    "snips": "the same as a ratio: chance in how much exposure the log happens to carry cancels",
}


@dataclass(frozen=True, slots=True)
class Earned:
    """The reward per session of a policy: the truth, and what each estimator says with its interval."""

    policy: str
    truth: float
    found: dict[str, tuple[float, float, float]]


def earned(folder: Path, *, seed: int, say: Say | None = None) -> list[Earned]:
    """Write a feed to a folder and estimate from its log what the other policies earn."""
    paths = write_feed(SETTINGS, folder, seed=seed, say=say)
    results = off_policy(
        paths["log"],
        {name: paths[name] for name in TARGETS},
        estimators=[LearntDiscountRaw(), RankedIPS(), RankedSNIPS()],
        rewards=["reward"],
    )
    known = msgspec.json.decode(paths["truth"].read_bytes())["truth"]
    truth = {each["policy"]: each["value"] for each in known if each["reward"] == "reward"}
    return [
        Earned(
            name,
            truth[name],
            {each.estimator: (each.value, each.low, each.high) for each in results.estimates if each.model == name},
        )
        for name in TARGETS
    ]


Thing = TypeVar("Thing")
K = 5
DRAWS = 10
BIASED_DRAWS = 5

Fitted = Mapping[str, Scores]
Say = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to evaluate, what it is held against, and why it works or fails."""

    metric: Metric
    estimator: Estimator
    truth: Estimator
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a scheme said over repeated draws of the random test set, beside the truth; one column per model."""

    scheme: Scheme
    truth: Floats
    values: Floats

    @property
    def error(self) -> Floats:
        """How far the average over draws is from the truth, relative to it."""
        error: Floats = (self.values.mean(axis=0) - self.truth) / self.truth
        return error

    @property
    def on_target(self) -> bool:
        """Every model's average is within 3 Monte-Carlo standard errors, or 1 %, of the truth."""
        noise = 3 * self.values.std(axis=0, ddof=1) / np.sqrt(len(self.values))
        return bool((np.abs(self.values.mean(axis=0) - self.truth) <= np.maximum(noise, 0.01 * self.truth)).all())

    @property
    def orders_right(self) -> int:
        """In how many draws the models came in their true order."""
        right = np.argsort(self.truth)
        return sum(bool((np.argsort(row) == right).all()) for row in self.values)


SCHEMES = (
    Scheme(Recall(K), Traditional(), Full(),
           "ranks 20 judged items instead of 1,000: its top 5 is a top 250, which rewards other models"),
    Scheme(Recall(K), Published(), Full(),
           "leaves out users without a judged relevant item, who are mostly those with few relevant items"),
    Scheme(Recall(K), Pooled(), Pooled(), "every relevant pair counts once, so no user needs to be left out"),
    Scheme(Precision(K), Traditional(), Full(), "ranks 20 judged items instead of 1,000"),
    Scheme(Precision(K), HorvitzThompson(), Full(), "each judged item stands for the 1 / share of items judged"),
    Scheme(Precision(K), Hajek(), Full(), "the same as a ratio: chance in how many judged items rank high cancels"),
    Scheme(DCG(K), HorvitzThompson(), Full(), "works for every metric that is a sum over relevant items"),
    Scheme(DCG(K), Hajek(), Full(), "the same as a ratio"),
)  # fmt: skip


BIASED = (
    Scheme(Recall(K), Naive(), Pooled(), "takes the log for a random sample: what was shown anyway looks relevant"),
    Scheme(Recall(K), SNIPS(), Pooled(), "each shown item stands for 1 / propensity items like it"),
    Scheme(DCG(K), Naive(), Full(), "takes the log for a random sample"),
    Scheme(DCG(K), IPS(), Full(), "each shown item stands for 1 / propensity; unbiased, and noisy where that is large"),
    Scheme(DCG(K), SNIPS(), Full(), "the same as a ratio: chance in how much of the top 5 was shown cancels"),
)  # fmt: skip


def fit_models(train: Log, *, seed: int) -> dict[str, Scores]:
    """Five simple recommenders of different kinds."""
    models: dict[str, Model] = {
        "random": Random(),
        "popularity": Popularity(),
        "narrow-knn": ItemKNN(neighbours=5),
        "item-knn": ItemKNN(neighbours=100),
        "ease": EASE(),
    }
    return {name: model.fit(train, seed=seed) for name, model in models.items()}


def find(world: World, models: Fitted, *, draws: int = DRAWS, seed: int, say: Say | None = None) -> list[Finding]:
    """Evaluate with every scheme on several draws of the random test set, and with full labels for the truth."""
    steps = draws + 1
    known = evaluate(
        models, world.truth, exclude=world.train, metrics=_distinct([each.metric for each in SCHEMES]),
        estimators=[Full(), Pooled()],
    )  # fmt: skip
    results = []
    for draw in range(draws):
        if say is not None:
            say("evaluating", draw + 1, steps)
        judged = world.random if draw == 0 else world.judge(len(world.random) // len(world.users), seed=seed + draw)
        results.append(
            evaluate(
                models,
                judged,
                exclude=world.train,
                exposure=RandomExposure(),
                metrics=_distinct([each.metric for each in SCHEMES]),
                estimators=_distinct([each.estimator for each in SCHEMES]),
            )
        )
    return [
        Finding(
            scheme,
            _values(known, scheme.metric, scheme.truth, list(models)),
            np.array([_values(each, scheme.metric, scheme.estimator, list(models)) for each in results]),
        )
        for scheme in SCHEMES
    ]


def biased_log(world: World, *, seed: int) -> Log:
    """What a deployed system shows of the unseen pairs: popular items up to 13 times as often, liked ones 1.5 times."""
    shape = world.rating.shape
    seen = np.zeros(shape, dtype=bool)
    seen[world.train.user, world.train.item] = True
    unseen = world.truth.select(np.flatnonzero(~seen.ravel()))
    liked = world.rating > 3
    popularity = liked.mean(axis=0) / liked.mean(axis=0).max()
    chance = (0.02 + 0.24 * popularity) * np.where(liked, 1.5, 1.0)
    return expose_independently(unseen, chance[unseen.user, unseen.item], seed=seed)


def find_biased(
    world: World, models: Fitted, *, draws: int = BIASED_DRAWS, seed: int, say: Say | None = None
) -> list[Finding]:
    """The same with biased logs, whose propensities are known."""
    metrics, estimators = (_distinct([getattr(each, name) for each in BIASED]) for name in ("metric", "estimator"))
    known = evaluate(models, world.truth, exclude=world.train, metrics=metrics, estimators=[Full(), Pooled()])
    results = []
    for draw in range(draws):
        if say is not None:
            say("evaluating biased logs", draw + 1, draws)
        log = biased_log(world, seed=seed + draw)
        results.append(
            evaluate(
                models, log, exclude=world.train, exposure=BiasedExposure(), metrics=metrics, estimators=estimators
            )
        )
    return [
        Finding(
            scheme,
            _values(known, scheme.metric, scheme.truth, list(models)),
            np.array([_values(each, scheme.metric, scheme.estimator, list(models)) for each in results]),
        )
        for scheme in BIASED
    ]


VARIANTS: dict[Metric, str] = {
    Recall(K): "divides by all relevant items of the user",
    Recall(K, Denominator.SMALLER): "divides by the smaller of K and those, as LensKit",
    AveragePrecision(10): "divides by the smaller of K and the relevant items",
    AveragePrecision(10, Denominator.POSITIVES): "divides by all relevant items, as trec_eval",
    NDCG(10): "the ideal list has the user's own items",
    NDCG(10, ideal=Ideal.CUTOFF): "the ideal list is always K long, as RecTools",
    NDCG(10, Gain.EXPONENTIAL): "every rating adds 2^rating - 1",
}


def variants(world: World, scores: Scores) -> list[tuple[str, float, str]]:
    """One recommender, full labels: what the options of metrics with one name make of it."""
    found = evaluate({"model": scores}, world.truth, exclude=world.train, metrics=list(VARIANTS))
    return [(each.metric, each.value, why) for each, why in zip(found.estimates, VARIANTS.values(), strict=True)]


def prepare(folder: Path, *, seed: int) -> tuple[World, dict[str, Scores], dict[str, Path]]:
    """A world, fitted models, and all of it as files in a folder."""
    world = make_world(WorldSettings(), seed=seed)
    paths = write_tables(world, folder)
    paths["biased"] = folder / "biased.parquet"
    biased = biased_log(world, seed=seed)
    # one value column, as in the other files: labels follow from ratings
    write(replace(biased, rewards={"rating": biased.rewards["rating"]}), paths["biased"])
    models = fit_models(world.train, seed=seed)
    for name, scores in models.items():
        paths[f"scores/{name}"] = folder / f"scores/{name}.npz"
        paths[f"scores/{name}"].parent.mkdir(exist_ok=True)
        write_scores(scores, paths[f"scores/{name}"])
    return world, models, paths


def by_question(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """Findings that are held against the same truth, under that truth's estimand."""

    def question(each: Finding) -> str:
        return f"{each.scheme.metric}: {each.scheme.truth.estimand(Asked(each.scheme.metric))}"

    return [(name, list(group)) for name, group in groupby(findings, key=question)]


def _values(results: Results, metric: Metric, estimator: Estimator, models: list[str]) -> Floats:
    found = {
        each.model: each.value
        for each in results.estimates
        if (each.metric, each.estimator) == (str(metric), estimator.about.name)
    }
    return np.array([found[name] for name in models])


def _distinct(things: Sequence[Thing]) -> list[Thing]:
    return list(dict.fromkeys(things))
