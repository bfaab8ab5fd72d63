"""Whether the advice of a study holds on fresh logs: is the logger recognised, is the expected τ what comes out?

One half of the users of a world is studied; fresh logs are drawn of the other.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from truerank import models
from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.core.rng import cell_uniforms, generator
from truerank.exposure.counts import shares_of_items
from truerank.io.spill import scratch
from truerank.metrics.listwise import NDCG
from truerank.reliability import FinishedStudy, Grid, LabelledDataset, Models, advice_for, study
from truerank.reliability.scenarios import LoggerRun, MetricTables, Scenarios
from truerank.reliability.studied import LOGS, PAIRS, RESULTS, LogProfile, match_loggers, profiles_of
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Study
from truerank_research.validation.kuairec import DATASET, block

STUDY_SEED, WORLD_SEED = 7, 1
METRIC = NDCG(100)
SPARSITIES = (0.2, 0.6, 0.8, 0.93, 0.98)  # between those of the study; the last is outside
MADE, KUAIREC = WORLDS = ("synthetic", "KuaiRec")
SMALL = DatasetSettings(users=120, items=80, density=0.1, shown=20, judged=10)
LOOKS = tuple(LogProfile.__dataclass_fields__)
MODELS: Mapping[str, Mapping[str, Any]] = {
    "random": {},
    "popularity": {},
    "item-knn": {"neighbours": 10},
    "item-knn 100": {"neighbours": 100},
    "user-knn": {"neighbours": 100},
    "ease": {"regularisation": 500.0},
    "sar": {},
}


@dataclass(frozen=True, slots=True)
class AdvisedWorld(Setting):
    """A world whose users are halved: one half is studied, fresh logs are drawn of the other."""

    of: str = MADE

    @property
    def grid(self) -> Grid:
        return _grid(self.full)


@cache
def _grid(full: bool) -> Grid:
    if not full:
        return Grid.from_names(samplers=("Exposed", "Random"), sizes=(5, 20), metrics=(METRIC,), repetitions=2)
    samplers = ("Exposed", "Random@e", "Random", "Popularity", "Positivity", "WTD", "Skew")
    return Grid.from_names(samplers=samplers, sizes=(5, 20, 100, 500), metrics=(METRIC,), repetitions=3)


@dataclass(frozen=True, slots=True)
class HalvedUsers:
    """All labels of a world, what its models are trained on, and what they say."""

    labels: Log
    train: Log
    scores: Mapping[str, Scores]
    seed: int

    def half(self, which: int) -> Log:
        key = self.labels.users.keys()
        mine = (cell_uniforms(self.seed, "halves", key, np.zeros_like(key)) < 0.5) == (which == 0)
        users = Ids(self.labels.users.values.filter(pl.Series(mine)))
        rows = self.labels.select(np.flatnonzero(mine[self.labels.user]))
        return replace(rows, users=users, unit=(np.cumsum(mine) - 1)[rows.user], source=f"half {which} of the users")


@cache
def halved(world: AdvisedWorld) -> HalvedUsers:
    if world.of == MADE:
        made = simulate_dataset(None if world.full else SMALL, seed=WORLD_SEED)
        labels, train = made.truth, made.train
    else:
        labels, train = block(world.source, full=world.full, seed=world.seed)
    scores = {title: models.named(title.split(" ")[0])(**chosen).fit(train, seed=0) for title, chosen in MODELS.items()}
    return HalvedUsers(labels, train, scores, world.seed)


# ------------------------------------------------------------------------------------------------------------ the study


def study_half(world: AdvisedWorld) -> pl.DataFrame:
    """The files of the reliability study of the first half."""
    users = halved(world)
    with scratch() as space:
        out = space.make("study")
        study(
            users.scores, users.half(0), out, grid=world.grid, train=users.train, seed=STUDY_SEED,
            resamples=200 if world.full else 20, threads=1,
        )  # fmt: skip
        return pl.DataFrame([{"file": name, "content": (out / name).read_bytes()} for name in (RESULTS, PAIRS, LOGS)])


def studied_of(table: pl.DataFrame) -> FinishedStudy:
    """A kept study, as advice reads it."""
    results, pairs, logs = (pl.read_parquet(io.BytesIO(content)) for content in table["content"])
    return FinishedStudy(results, pairs, logs)


# ----------------------------------------------------------------------------------------------------------- fresh logs


class OtherHalf:
    """The users who were not studied, ready for logs to be drawn from."""

    def __init__(self, world: AdvisedWorld) -> None:
        users = halved(world)
        self.world = LabelledDataset.from_log(users.half(1))
        self.grid = world.grid
        self.models = Models.align(users.scores, self.world, seed=STUDY_SEED)
        self.able = np.flatnonzero(self.models.scored & (self.world.positive.count > 0))
        self.orders = self.models.orders(np.arange(len(self.world.users)))
        self.weights = [each.weights(users.labels, train=users.train) for each in self.grid.loggers]
        self.shares = shares_of_items(users.train, self.world.items)
        self.tables = MetricTables.of_metrics(
            (METRIC,), most_positives=int(self.world.positive.count.max()), n_users=4 * len(self.able)
        )

    def draw(self, logger: int, units: Ints, *, seed: int) -> tuple[list[LogProfile], Ints]:
        """What the log of these users looks like at each sparsity, and sums [sparsities x candidates x models].

        Users are drawn with replacement: they stand for a population of which the half is a sample.
        """
        exposing = LoggerRun.prepare(
            self.world,
            self.grid.loggers[logger],
            sparsities=(0.0, *SPARSITIES),
            holdout=self.grid.holdout,
            weight=self.weights[logger],
            seed=seed,
        )
        counted = exposing.count(units)
        scenarios = Scenarios.prepare(exposing, counted, grid=self.grid, tables=self.tables, train=self.shares)
        order, finite = self.orders
        found = scenarios.evaluate(units, np.zeros(len(units), np.int64), order[units], finite[units])
        return profiles_of(counted, n_users=len(units)), found.sums[0, :, :, 0]

    def differences(self, sums: Ints) -> Ints:
        """Of every pair of models, in the last axis."""
        first, second = np.triu_indices(len(self.models), 1)
        return sums[..., first] - sums[..., second]


other_half = cache(OtherHalf)


def true_order(world: AdvisedWorld) -> pl.DataFrame:
    """The true mean difference of each pair of models: Full at sparsity 0, all users, some hold-outs."""
    half = other_half(world)
    total = sum(half.draw(0, half.able, seed=world.seed + at)[1][0, 0] for at in range(3))
    return pl.DataFrame({"difference": half.differences(np.asarray(total)).astype(np.float64)})


def fresh_logs(world: AdvisedWorld, logger: str, users: int, draws: int) -> pl.DataFrame:
    """Fresh logs of one logger and number of users (0: as many as there are).

    A row for each draw and sparsity: what the log looks like, and signs of all pairs, [candidates x pairs].
    """
    half = other_half(world)
    at = [str(name) for name in half.grid.loggers].index(logger)
    rows = []
    for draw in range(draws):
        rng = generator(world.seed, f"{world.of}-1-{logger}-{users} {draw}")
        units = np.sort(rng.choice(half.able, users or len(half.able)))
        looks, sums = half.draw(at, units, seed=int(rng.integers(2**62)))
        signs = np.sign(half.differences(sums))
        rows += [
            {"draw": draw, "sparsity": sparsity, **{name: getattr(look, name) for name in LOOKS},
             "signs": sign.ravel().tolist()}
            for sparsity, look, sign in zip(SPARSITIES, looks[1:], signs[1:], strict=True)
        ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"signs": pl.List(pl.Int8)})


def looks_and_signs(table: pl.DataFrame, *, candidates: int) -> tuple[list[LogProfile], Floats]:
    """Of the rows of one sparsity: what each log looks like, and signs [draws x candidates x pairs]."""
    looks = [LogProfile(*each) for each in table.select(LOOKS).rows()]
    return looks, np.array(table["signs"].to_list(), dtype=np.float64).reshape(len(looks), candidates, -1)


DRAWS = {50: 40, 200: 20, 0: 6}  # of each number of users; 0: as many as there are
QUICK_DRAWS = {20: 2, 0: 2}
OUTSIDE = 0.95  # sparsities from which the study has none


@dataclass(frozen=True, slots=True)
class FollowedAdvice:
    """Fresh logs of one logger, number of users and sparsity, and what came of following the advice."""

    logger: str
    users: int
    sparsity: float
    taken: tuple[str, ...]  # the logger recognised in each draw
    expected: Floats  # of each way to choose candidates, by the true logger
    realised: Floats
    stated: float  # expected τ of what was recommended in each draw
    followed: float  # its realised τ
    full: float
    exposed: float
    best: float  # in hindsight

    @property
    def beyond(self) -> bool:
        """Whether the log is sparser than any of the study."""
        return self.sparsity >= OUTSIDE


def follow(
    world: AdvisedWorld, logger: str, fresh: pl.DataFrame, studied: FinishedStudy, truth: Floats
) -> Iterator[FollowedAdvice]:
    """What fresh logs say, at each sparsity, in every way that a study knows."""
    labels = world.grid.candidates
    at = {label: place for place, label in enumerate(labels)}
    for sparsity in SPARSITIES:
        looks, signs = looks_and_signs(fresh.filter(pl.col("sparsity") == sparsity), candidates=len(labels))
        size, seen = looks[0].users, float(np.mean([each.sparsity for each in looks]))
        taken = tuple(match_loggers(studied, each, sparsity=each.sparsity)[0].logger for each in looks)
        advice = {each: advice_for(studied, None, users=size, sparsity=seen, logger=each) for each in {logger, *taken}}
        own = advice[logger]
        decided = _decided(studied, own.undecided)
        tau = (signs[:, :, decided] * np.sign(truth[decided])).mean(axis=2)  # [draws x candidates]
        expected = {(each.sampler, each.size): each.tau for each in own.choices}
        chosen = [advice[name].recommended for name in taken]
        followed = float(np.mean([tau[draw, at[way.sampler, way.size]] for draw, way in enumerate(chosen)]))
        mean = tau.mean(axis=0)
        yield FollowedAdvice(
            logger, size, sparsity, taken,
            np.array([expected[each] for each in labels]), mean,
            float(np.mean([way.tau for way in chosen])), followed,
            float(mean[at["Full", None]]), float(mean[at["Exposed", None]]), float(mean.max()),
        )  # fmt: skip


def _decided(studied: FinishedStudy, undecided: Sequence[tuple[str, str]]) -> Ints:
    """The places of the pairs whose order the study knows."""
    pairs = list(studied.pairs.select("model", "other").unique(maintain_order=True).iter_rows())
    return np.array([at for at, each in enumerate(pairs) if each not in undecided], dtype=np.int64)


# -------------------------------------------------------------------------------------------------------------- tables


def recognised(world: str, rows: Sequence[FollowedAdvice], loggers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """How often each logger was taken for which, over all fresh logs."""
    for logger in loggers:
        taken = [each for row in rows if row.logger == logger for each in row.taken]
        for each in loggers:
            yield {"world": world, "logger": logger, "taken for": each, "logs": taken.count(each)}


def regrets(world: str, rows: Sequence[FollowedAdvice]) -> Iterator[dict[str, Any]]:
    """Realised τ of what was advised, beside what could have been done."""
    for sparsity in SPARSITIES:
        for n in sorted({row.users for row in rows}):
            mean = _means(row for row in rows if row.sparsity == sparsity and row.users == n)
            yield {"world": world, "sparsity": sparsity, "users": n, **mean, "regret": mean["best"] - mean["advised"]}


def in_short(world: str, rows: Sequence[FollowedAdvice]) -> Iterator[dict[str, Any]]:
    """Users who were not in the study: how far expected τ is off, within the study's sparsities and beyond."""
    for beyond in (False, True):
        these = [row for row in rows if row.beyond == beyond]
        apart = np.concatenate([row.expected - row.realised for row in these])
        mean = _means(these)
        shown = {name: mean[name] for name in ("advised", "stated", "full", "best")}
        yield {"world": world, "beyond": beyond, "off": math.sqrt(float(np.mean(apart**2))), **shown}


def _means(rows: Iterator[FollowedAdvice] | Sequence[FollowedAdvice]) -> dict[str, float]:
    these = list(rows)
    named = {"advised": "followed", **{each: each for each in ("stated", "best", "full", "exposed")}}
    return {name: float(np.mean([getattr(row, field) for row in these])) for name, field in named.items()}


# --------------------------------------------------------------------------------------------------------------- study


def measure(run: Run) -> Measured:
    """Advice from a reliability study of one half of the users, followed on fresh logs of the other."""
    worlds = [AdvisedWorld(run.source, run.full, run.seed, name) for name in WORLDS]
    grid = worlds[0].grid
    files = run.pieces(study_half, [(world,) for world in worlds], about="studying one half of the users")
    judged = {world.of: _judged(world, studied_of(table), run) for world, table in zip(worlds, files, strict=True)}
    loggers = [str(each) for each in grid.loggers]
    return Measured(
        {
            "in short": [row for name, rows in judged.items() for row in in_short(name, rows)],
            "recognised": [row for name, rows in judged.items() for row in recognised(name, rows, loggers)],
            "regrets": [row for name, rows in judged.items() for row in regrets(name, rows)],
        },
        {"models": len(MODELS), "ways": grid.n_candidates},
    )


def _judged(world: AdvisedWorld, studied: FinishedStudy, run: Run) -> list[FollowedAdvice]:
    draws = DRAWS if world.full else QUICK_DRAWS
    (truth,) = run.pieces(true_order, [(world,)], about="ranking")
    cases = [(world, str(logger), n, times) for logger in world.grid.loggers for n, times in draws.items()]
    fresh = run.pieces(fresh_logs, cases, about=f"drawing fresh logs ({world.of})")
    return [
        row
        for (_, logger, *_), table in zip(cases, fresh, strict=True)
        for row in follow(world, logger, table, studied, truth["difference"].to_numpy())
    ]


STUDIES = (
    Study(
        "advice", "Does the advice of `truerank advise` hold on logs whose truth is known?",
        measure, data=(DATASET,), minutes=10,
    ),
)  # fmt: skip
