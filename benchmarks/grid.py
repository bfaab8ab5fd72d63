"""Workload D: the reliability grid, 1,512 scenarios of 8 models on a world of 1,411 x 3,327, ten times over.

The whole study is timed: from labels and scores in memory to tables with intervals on disk. Its kernel is compared
with the same in vectorised numpy (the oracle of the tests, which gives the same bits) on a subset of users, in turn
on one thread each. Without training data the popularity logger of the code has no meaning: its weights are given.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from benchmarks.plain_kernels import use_plain_kernels
from truerank.core.arrays import Floats
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.exposure.counts import zipf
from truerank.exposure.logging_policies import LoggingPolicy, PositivityLogger, UniformLogger
from truerank.ranking.scores.scores import dense
from truerank.reliability import Grid, LabelledDataset, Models, study
from truerank.reliability.scenarios import LoggerRun, MetricTables, Scenarios

SUBSET, SUBSET_PLAIN = 96, 6  # users that the two kernels are timed on


@dataclass(frozen=True, slots=True)
class Ranked(LoggingPolicy):
    """A logger that favours items by their place in the catalogue, as a popularity logger does by training data."""

    name: ClassVar[str] = "ranked"

    def weights(self, world: Log, *, train: Log | None = None) -> Floats:
        return zipf(-np.arange(len(world.items)), shift=1)


def run(*, n_users: int = 1_411, n_items: int = 3_327, rounds: int = 10, threads: int = 2) -> dict[str, Any]:
    """`rounds` repetitions of the whole grid; with fewer than ten the time of ten is a rule of three."""
    world, scores = make(n_users, n_items)
    grid = replace(Grid.from_names(repetitions=rounds), loggers=(UniformLogger(), Ranked(), PositivityLogger()))
    steps: dict[str, float] = {}
    begin = time.perf_counter()

    def watch(what: str, done: int, total: int) -> None:
        steps[what] = time.perf_counter() - begin

    ratio = against_numpy(world, scores, replace(grid, repetitions=1))
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        cpu = time.process_time()
        found = study(scores, world, Path(folder) / "study", grid=grid, threads=threads, progress=watch)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    ten = seconds * 10 / rounds
    return {
        "workload": "grid",
        "users": n_users,
        "items": n_items,
        "models": len(scores),
        "scenarios": len(grid.loggers) * len(grid.sparsities) * grid.n_candidates,
        "metrics": len(grid.metrics),
        "repetitions": rounds,
        "threads": threads,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "seconds_until": {what: round(value, 1) for what, value in steps.items()},
        "rows": len(found.results),
        **ratio,
        "goals": {
            "the whole grid, ten times, within 180 s": ten <= 180,
            ">= 10x faster than vectorised numpy, by processor time": ratio["ratio_cpu"] >= 10,
        },
    }


def against_numpy(world: Log, scores: dict[str, Scores], grid: Grid, *, rounds: int = 3) -> dict[str, float]:
    """How much longer numpy takes per user, all scenarios of one logger; medians of rounds in turn."""
    known = LabelledDataset.from_log(world)
    models = Models.align(scores, known, seed=0)
    units = np.flatnonzero(known.positive.count > 0)[:SUBSET]
    group = np.arange(len(units)) // 11  # as many users as a group has among 1,411
    order, finite = models.orders(units)
    tables = MetricTables.of_metrics(
        grid.metrics, most_positives=int(known.positive.count.max()), n_users=len(known.users)
    )
    logger = grid.loggers[-1]
    weight = logger.weights(world)
    run = LoggerRun.prepare(known, logger, sparsities=grid.sparsities, holdout=grid.holdout, weight=weight, seed=1)
    counted = run.count(np.arange(len(known.users)))
    scenarios = Scenarios.prepare(run, counted, grid=grid, tables=tables, train=None)
    scenarios.evaluate(units[:1], group[:1], order[:1], finite[:1])  # loads or compiles it

    def timed(call: Callable[[], Any], n: int) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        return (time.perf_counter() - wall) / n, (time.process_time() - cpu) / n

    few = min(SUBSET_PLAIN, len(units))

    def in_numpy() -> None:
        with pytest.MonkeyPatch.context() as patch:
            use_plain_kernels(patch)
            scenarios.evaluate(units[:few], group[:few], order[:few], finite[:few])

    pairs = [
        (
            timed(lambda: scenarios.evaluate(units, group, order, finite), len(units)),
            timed(in_numpy, few),
        )
        for _ in range(rounds)
    ]
    return {
        "ratio_wall": round(statistics.median(b[0] / a[0] for a, b in pairs), 1),
        "ratio_cpu": round(statistics.median(b[1] / a[1] for a, b in pairs), 1),
        "ms_per_user_and_logger": round(1e3 * statistics.median(a[1] for a, _ in pairs), 2),
        "ms_per_user_and_logger_numpy": round(1e3 * statistics.median(b[1] for _, b in pairs), 1),
    }


def make(n_users: int, n_items: int, *, n_models: int = 8, density: float = 0.046) -> tuple[Log, dict[str, Scores]]:
    """As many positives as KuaiRec's block has, tastes of rank 16 and skewed popularity; models see them with noise."""
    rng = np.random.default_rng(20240503)
    taste = rng.standard_normal((n_users, 16)) @ rng.standard_normal((16, n_items)) * 0.4
    appeal = taste + np.log(rng.gamma(0.6, size=n_items))
    label = (appeal > np.quantile(appeal, 1 - density)).astype(np.float64)
    user, item = np.repeat(np.arange(n_users), n_items), np.tile(np.arange(n_items), n_users)
    world = Log(Ids.of(np.arange(n_users)), Ids.of(np.arange(n_items)), user, item, {"label": label.ravel()})
    scores: dict[str, Scores] = {
        f"m{at}": dense(appeal + rng.standard_normal(appeal.shape) * (0.5 + 0.4 * at)) for at in range(n_models)
    }
    return world, scores
