"""Run a study: count what loggers show, evaluate block after block, and sum up. It can be stopped at any moment."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.progress import Progress, Watching, watching
from truerank.core.sizes import check_size
from truerank.engines.engine import Threads, Values, Workers, map_chunks
from truerank.engines.named import as_engine
from truerank.evaluation.numbering import check_numbers
from truerank.exposure.logging_policies import UniformLogger
from truerank.inference.intervals import MOST_REPLICATES
from truerank.io.checkpoint import Blocks, keep_question, working
from truerank.ranking.candidates import whole_tables
from truerank.ranking.samplers.draw import ItemCounts, SamplerWeights
from truerank.ranking.scores.given import as_scores
from truerank.reliability.draws import CandidateCounts, LoggerRun, train_shares
from truerank.reliability.folder import FORMAT, KEPT, MEANS, NOTE, PAIRS, RESULTS, Folder, WorkBlock
from truerank.reliability.grid import Grid, default_loggers
from truerank.reliability.logs import table_of_logs
from truerank.reliability.order_of_means import Resampling, grouped
from truerank.reliability.scenarios import Compared, MetricTables, Scenarios
from truerank.reliability.summary import Summary, Tables, runs
from truerank.reliability.worlds import LabelledWorld, Models, Orders

BLOCK_CELLS = 2**23  # items of all models of a block of users
BLOCK_USERS = 256
BLOCK_BYTES, BLOCK_SECONDS = 100.0, 1e-3  # that a block of users takes at least, whatever is in it
VALUE_SECONDS = 1e-8  # that one value of one user and model takes at least


@dataclass(frozen=True, slots=True)
class Found(Tables):
    """The tables of a study, and what is to be said about it."""

    notes: tuple[str, ...]


def study(
    scores: Mapping[str, Any],
    labels: Log,
    out: str | Path,
    *,
    grid: Grid | None = None,
    train: Log | None = None,
    exclude: Log | None = None,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
    threads: int | None = None,
    block_users: int | None = None,
    engine: Any = None,
    progress: Watching = None,
) -> Found:
    """How far sampled and biased evaluation can be trusted, on a fully observed world (paper 5).

    Every logger of the `grid` shows part of the world at every sparsity; every sampler chooses candidates from that log
    at every size; every metric gives each user one value per model. Per user: the share of pairs of models that tie
    (resolution), and Kendall's τ-b with the values that Full gives on the same log (fidelity), that the same sampler
    gives at sparsity 0 (robustness), and that Full gives at sparsity 0 (predictive power). The estimand of each is its
    mean over users; τ of a user whose models all tie is undefined, left out, and counted as 0 in columns of its own.

    `train` counts for loggers and samplers that look at training data; pairs to `exclude`, such as those that models
    were trained on, are neither shown nor candidates.

    Work is kept in the folder `out` block by block: the same call after a stop at any moment goes on from there, and
    ends with the same files, byte by byte. `threads` and `engine` (as in `evaluate`) never change a bit.
    """
    grid = Grid.of(loggers=default_loggers(train=train is not None)) if grid is None else grid
    if not 2 <= resamples <= MOST_REPLICATES:
        raise InputError(f"{resamples:,} resamples; expected 2 to {MOST_REPLICATES:,}, and 1,000 is enough.")
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95.")
    for name, given in (("threads", threads), ("block_users", block_users)):
        if given is not None and given < 1:
            raise InputError(f"{name} is {given}; expected a whole number from 1.")
    known = {name: as_scores(each, name=name) for name, each in scores.items()}
    numbered = check_numbers(known, {labels.source: labels})
    every = Ids.union({name: each.items for name, each in known.items()}) if known else None
    world = LabelledWorld.of(labels, items=every, exclude=exclude)
    known = whole_tables(known, others={world.log.source: world.items}, items=None, n_items=None)
    models = Models.of(known, world, seed=seed)
    work = _Work.of(grid, world, models, train, seed=seed, block_users=block_users)
    resampling = Resampling(resamples, level, seed)
    damaged: list[str] = []
    with watching(progress) as say, working(Path(out)) as place, threadpool_limits(limits=1, user_api="blas"):
        asked = work.described() | {"resamples": resamples, "level": level}
        folder = Folder(place, Blocks(keep_question(place / NOTE, asked, what="study", advice=KEPT), KEPT))
        if not folder.finished:
            folder.blocks.mkdir(exist_ok=True)
            damaged = folder.damaged()
            with as_engine(engine, threads=threads).open() as workers:
                _run(work, folder, resampling, workers=workers, progress=say)
        if folder.blocks.is_dir():
            folder.clear()
        results, means, pairs = (folder.read_table(name) for name in (RESULTS, MEANS, PAIRS))
    notes = work.notes(n_evaluated=int(results["users"].to_numpy().max()))
    again = (f"{place}: {some(damaged)} had been altered and was made again.",) if damaged else ()
    return Found(results, means, pairs, (*(message.text for message in numbered), *notes, *again))


@dataclass(frozen=True, slots=True)
class _Work:
    """What is studied, and how it is divided."""

    grid: Grid
    world: LabelledWorld
    models: Models
    exposing: tuple[tuple[LoggerRun, ...], ...]  # of each repetition and logger
    tables: MetricTables
    train: Log | None
    shares: Floats | None
    users: tuple[Ints, ...]  # who is evaluated, in blocks
    groups: tuple[Ints, ...]  # of these users
    seed: int

    @classmethod
    def of(
        cls,
        grid: Grid,
        world: LabelledWorld,
        models: Models,
        train: Log | None,
        *,
        seed: int,
        block_users: int | None,
    ) -> _Work:
        units = np.flatnonzero(models.scored & (world.positive.count > 0))
        if len(units) == 0:
            raise InputError(f"{world.log.source}: no user with a positive has scores of every model. Check the ids.")
        size = block_users or max(1, min(BLOCK_USERS, BLOCK_CELLS // (len(models) * world.n_items)))
        _check_work(grid, world, n_blocks=-(-len(units) // size), n_users=len(units), n_models=len(models))
        shares = train_shares(train, world.items)
        _check_samplers(grid, world, shares)
        tables = MetricTables.of_metrics(
            grid.metrics, most_positives=int(world.positive.count.max()), n_users=len(units)
        )
        weights = [logger.weights(world.log, train=train) for logger in grid.loggers]
        exposing = tuple(
            tuple(
                LoggerRun.of(
                    world,
                    logger,
                    sparsities=grid.sparsities,
                    holdout=grid.holdout,
                    weight=weight,
                    seed=grid.seed_of(repetition, seed=seed),
                )
                for logger, weight in zip(grid.loggers, weights, strict=True)
            )
            for repetition in range(grid.repetitions)
        )
        units, group = grouped(units, world.users.keys()[units], seed=seed)
        blocks, groups = tuple(runs(units, size)), tuple(runs(group, size))
        return cls(grid, world, models, exposing, tables, train, shares, blocks, groups, seed)

    def described(self) -> dict[str, Any]:
        """All that the results depend on, and how the work is divided."""
        return {
            "study": "reliability",
            "format": FORMAT,
            **self.grid.described(),
            "seed": self.seed,
            "users": self.world.n_users,
            "items": self.world.n_items,
            "labels": self.world.digest(),
            "models": list(self.models.scores),  # the order in which blocks have their sums
            "scores": self.models.digest(),
            "train": "none" if self.train is None else digest_of_log(self.train),
            "users in a block": len(self.users[0]),
        }

    def notes(self, *, n_evaluated: int) -> tuple[str, ...]:
        world = self.world
        lost = sum(map(len, self.users)) - n_evaluated
        unscored = int((~self.models.scored).sum())
        silent = int((world.positive.count == 0).sum())
        said = [
            (unscored, f"{unscored:,} users without scores of every model are shown items but not evaluated."),
            (silent, f"{silent:,} users like nothing that is left; they are shown items but not evaluated."),
            (lost, f"{lost:,} or more users have all that they like held out, and are not evaluated then."),
            (world.n_unknown, f"{world.n_unknown:,} pairs to exclude are of users or items that the labels lack."),
            (world.n_dropped, f"{world.n_dropped:,} labels are of excluded pairs and dropped."),
            (world.n_missing, f"{world.n_missing:,} pairs have no label and are never shown."),
            *(
                (n, f"{name} does not know {n:,} of the items; it never recommends them.")
                for name, n in self.models.unknown_items.items()
            ),
            *(
                (np.ptp(exposing.weight) == 0, f"the {logger} logger favours no item here: it shows all alike.")
                for logger, exposing in zip(self.grid.loggers, self.exposing[0], strict=True)
                if not isinstance(logger, UniformLogger)
            ),
        ]
        return (
            f"{n_evaluated:,} users evaluated, {world.n_items:,} items, {len(self.models)} models.",
            *(text for count, text in said if count),
        )

    @property
    def parts(self) -> list[WorkBlock]:
        """All blocks, those of one run of users together: its items are put in order only once."""
        return [
            WorkBlock(repetition, logger, number)
            for number in range(len(self.users))
            for repetition in range(self.grid.repetitions)
            for logger in range(len(self.grid.loggers))
        ]


def _run(work: _Work, folder: Folder, resampling: Resampling, *, workers: Workers, progress: Progress | None) -> None:
    scenarios = _count(work, folder, workers=workers, progress=progress)
    metrics = [str(each) for each in work.grid.metrics]
    left = [block for block in work.parts if not folder.is_done(block)]
    n_all = len(work.parts)
    say = _counter(progress, "evaluating scenarios", total=n_all, done=n_all - len(left))
    for block, compared in map_chunks(workers, _Evaluation(_Orders(work), scenarios), Values(left)):
        folder.write_block(block, compared, metrics)
        say()
    keys = work.world.users.keys()
    summary = Summary(
        folder,
        work.grid,
        tuple(work.models.scores),
        tuple(keys[units] for units in work.users),
        work.tables.scale,
        work.tables.of,
        int(work.groups[-1][-1]) + 1,
        resampling,
    )
    asked = [(at, group) for at in range(len(work.grid.loggers)) for group in summary.groups]
    say = _counter(progress, "summing up", total=len(asked), done=0)
    found: dict[tuple[int, int], Tables] = {}
    near = workers if workers.here else Threads(os.cpu_count() or 1)  # other machines do not have the folder
    for tables in map_chunks(near, partial(_summed, summary), Values(asked)):
        found |= tables
        say()
    folder.write_logs(table_of_logs(folder, work.grid, n_users=work.world.n_users))
    whole = Tables.together([found[key] for key in sorted(found)])
    if whole.results["users"].max() == 0:
        raise InputError("no user is left to evaluate: all that users like is held out. Study a larger world.")
    folder.write_tables(whole.results, whole.means, whole.pairs)


def _summed(summary: Summary, asked: tuple[int, tuple[int, ...]]) -> dict[tuple[int, int], Tables]:
    logger, group = asked
    return {(logger, metric): tables for metric, tables in summary.of(logger, group).items()}


def _count(
    work: _Work, folder: Folder, *, workers: Workers, progress: Progress | None
) -> tuple[tuple[Scenarios, ...], ...]:
    """What each log shows of each item decides pools and weights, so it is counted over all users first."""
    everyone = np.arange(work.world.n_users)
    blocks = list(runs(everyone, max(1, min(BLOCK_USERS, BLOCK_CELLS // work.world.n_items))))
    n_sparsities, n_loggers = len(work.grid.sparsities), len(work.grid.loggers)
    say = _counter(progress, "counting what is shown", total=work.grid.repetitions * n_loggers, done=0)
    found: list[tuple[Scenarios, ...]] = []
    for repetition in range(work.grid.repetitions):
        of_loggers = []
        for logger in range(n_loggers):
            exposing, part = work.exposing[repetition][logger], WorkBlock(repetition, logger, 0)
            counted = folder.read_counts(part, n_sparsities)
            if counted is None:
                counted = CandidateCounts.nothing(n_sparsities, work.world.n_items)
                for each in map_chunks(workers, exposing.count, Values(blocks)):
                    counted += each
                folder.write_counts(part, counted)
            of_loggers.append(Scenarios.of(exposing, counted, grid=work.grid, tables=work.tables, train=work.shares))
            say()
        found.append(tuple(of_loggers))
    return tuple(found)


class _Orders:
    """The items of the latest few blocks of users in every model's order, made once for all that need them."""

    def __init__(self, work: _Work) -> None:
        self.work, self.lock, self.kept = work, Lock(), OrderedDict[int, tuple[Orders, Ints]]()

    def of(self, number: int) -> tuple[Orders, Ints]:
        with self.lock:
            if number not in self.kept:
                while len(self.kept) > 1:
                    self.kept.popitem(last=False)
                self.kept[number] = self.work.models.orders(self.work.users[number])
            return self.kept[number]

    def __reduce__(self) -> tuple[type[_Orders], tuple[_Work]]:
        """Another process makes its own."""
        return _Orders, (self.work,)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """All scenarios of a block of users under one logger: a pure function, to be sent."""

    orders: _Orders
    scenarios: tuple[tuple[Scenarios, ...], ...]

    def __call__(self, block: WorkBlock) -> tuple[WorkBlock, Compared]:
        order, finite = self.orders.of(block.number)
        users, group = self.orders.work.users[block.number], self.orders.work.groups[block.number]
        return block, self.scenarios[block.repetition][block.logger].evaluate(users, group, order, finite)


def _counter(progress: Progress | None, what: str, *, total: int, done: int) -> Callable[[], None]:
    at = done

    def say() -> None:
        nonlocal at
        at += 1
        if progress is not None:
            progress(what, at, total)

    return say


def _check_work(grid: Grid, world: LabelledWorld, *, n_blocks: int, n_users: int, n_models: int) -> None:
    """Refuse a study that cannot be held or finished: every logger of every repetition is counted, then evaluated."""
    n_runs, n_sparsities = float(grid.repetitions * len(grid.loggers)), len(grid.sparsities)
    n_candidates = sum(max(len(family.sizes), 1) for family in grid.families)
    check_size(
        f"a study of {grid.repetitions:,} repetitions, {len(grid.loggers):,} loggers, {n_sparsities:,} sparsities and "
        f"{n_candidates:,} sets of candidates",
        memory=n_runs * n_sparsities * world.n_items + BLOCK_BYTES * n_runs * n_blocks,
        seconds=n_runs * (BLOCK_SECONDS * n_blocks + VALUE_SECONDS * n_sparsities * n_candidates * n_users * n_models),
        instead="Study fewer of them.",
    )


def _check_samplers(grid: Grid, world: LabelledWorld, shares: Floats | None) -> None:
    """A sampler that lacks what it needs says so before any work."""
    one, item = np.ones(1, dtype=np.int64), Ids(world.items.values[:1])
    counts = ItemCounts(one, one, train=None if shares is None else np.ones(1), random=np.ones(1), items=item)
    for family in grid.families:
        SamplerWeights.of(family.sampler, counts, users=world.users)


def digest_of_log(log: Log) -> str:
    """Different for different rows of training data."""
    found = hashlib.blake2b(digest_size=16)
    for array in (log.users.keys(), log.items.keys(), log.user, log.item, *log.rewards.values()):
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
