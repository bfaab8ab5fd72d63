"""Run a study: count what is exposed, evaluate block after block, and sum up. It can be stopped at any moment."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.progress import Progress, Watching, watching
from truerank.core.record import record
from truerank.core.sizes import check_size
from truerank.engines.engine import Threads, Workers, as_chunks, map_chunks
from truerank.engines.named import as_engine
from truerank.evaluation.label_facts import check_numbers
from truerank.exposure.logging_policies import UniformLogger
from truerank.inference.intervals import MOST_REPLICATES
from truerank.io.checkpoint import Blocks, keep_question, working
from truerank.io.files import read_table
from truerank.ranking.candidates import whole_tables
from truerank.ranking.samplers.draw import ItemCounts, weights_of
from truerank.ranking.scores.tables import as_scores
from truerank.reliability.dataset import LabelledDataset, Models, Orders, digest
from truerank.reliability.folder import RESUME, Block, Folder
from truerank.reliability.grid import Grid, default_loggers
from truerank.reliability.scenarios import FIGURES, Compared, LoggerRun, MetricTables, Scenarios, train_shares
from truerank.reliability.studied import FIGURES as LOG_FIGURES
from truerank.reliability.studied import FORMAT, LOGS, MEANS, NOTE, PAIRS, RESULTS, profiles_of
from truerank.reliability.tables import Resampling, Summary, Tables, grouped

BLOCK_CELLS = 2**23  # items of all models of a block of users
BLOCK_USERS = 256
BLOCK_BYTES, BLOCK_SECONDS = 100.0, 1e-3  # that a block of users takes at least, whatever is in it
VALUE_SECONDS = 1e-8  # that one value of one user and model takes at least


class StudyTables(NamedTuple):
    """The tables of a study, and remarks about it: `results` per scenario, metric and question; `means` per scenario,
    metric and model; `pairs` per scenario, metric and pair of models.
    """

    results: pl.DataFrame
    means: pl.DataFrame
    pairs: pl.DataFrame
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
) -> StudyTables:
    """How far sampled and biased evaluation can be trusted, on a fully observed dataset (paper 5).

    Every logging policy of the `grid` exposes part of the dataset at every sparsity; every sampler chooses candidates
    from that log at every size; every metric gives each user one value per model. Per user: the share of pairs of
    models that tie (resolution), and Kendall's τ-b with the values that Full gives on the same log (fidelity), that the
    same sampler gives at sparsity 0 (robustness), and that Full gives at sparsity 0 (predictive power). The estimand of
    each is its mean over users; τ of a user whose models all tie is undefined, excluded, and counted as 0 in columns
    of its own.

    `train` counts for logging policies and samplers that look at training data; pairs to `exclude`, such as those that
    models were trained on, are neither exposed nor candidates.

    Work is stored in the folder `out` block by block: the same call after a stop at any moment goes on from there, and
    ends with the same files, byte by byte. `threads` and `engine` (as in `evaluate`) never change a bit.
    """
    grid = Grid.of(loggers=default_loggers(train=train is not None)) if grid is None else grid
    if not 2 <= resamples <= MOST_REPLICATES:
        raise InputError(f"{resamples:,} resamples; expected 2 to {MOST_REPLICATES:,}, and 1,000 is enough.")
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95.")
    for name, number in (("threads", threads), ("block_users", block_users)):
        if number is not None and number < 1:
            raise InputError(f"{name} is {number}; expected a whole number from 1.")
    models = {name: as_scores(model, name=name) for name, model in scores.items()}
    numbered = check_numbers(models, {labels.source: labels})
    every = Ids.union({name: model.items for name, model in models.items()}) if models else None
    dataset = LabelledDataset.of(labels, items=every, exclude=exclude)
    models = whole_tables(models, others={dataset.log.source: dataset.items}, items=None, n_items=None)
    aligned = Models.of(models, dataset, seed=seed)
    work = _Work.of(grid, dataset, aligned, train, seed=seed, block_users=block_users)
    resampling = Resampling(resamples, level, seed)
    damaged: list[str] = []
    with watching(progress) as report, working(Path(out)) as place, threadpool_limits(limits=1, user_api="blas"):
        settings = work.described() | {"resamples": resamples, "level": level}
        question = keep_question(place / NOTE, settings, what="study", advice=RESUME)
        folder = Folder(place, Blocks(question, RESUME))
        if not folder.is_finished():
            folder.blocks.mkdir(exist_ok=True)
            damaged = folder.files.drop_damaged(folder.written())
            with as_engine(engine, threads=threads).open() as workers:
                _run(work, folder, resampling, workers=workers, progress=report)
        if folder.blocks.is_dir():
            folder.clear()
        results, means, pairs = (read_table(place / name) for name in (RESULTS, MEANS, PAIRS))
    notes = work.notes(n_evaluated=int(results["users"].to_numpy().max()))
    again = (f"{place}: {some(damaged)} had been altered and was made again.",) if damaged else ()
    return StudyTables(results, means, pairs, (*(message.text for message in numbered), *notes, *again))


@record
class _Work:
    """What is studied, and how it is divided."""

    grid: Grid
    dataset: LabelledDataset
    models: Models
    runs: Mapping[tuple[int, int], LoggerRun]  # of each repetition and logging policy
    tables: MetricTables
    train: Log | None
    shares: Floats | None
    users: list[Ints]  # who is evaluated, in blocks
    groups: list[Ints]  # of these users
    seed: int

    @classmethod
    def of(
        cls, grid: Grid, dataset: LabelledDataset, models: Models, train: Log | None, *, seed: int,
        block_users: int | None,
    ) -> _Work:  # fmt: skip
        units = np.flatnonzero(models.scored & (dataset.positive.count > 0))
        if len(units) == 0:
            raise InputError(f"{dataset.log.source}: no user with a positive has scores of every model. Check the ids.")
        size = block_users or max(1, min(BLOCK_USERS, BLOCK_CELLS // (len(models) * len(dataset.items))))
        _check_work(
            grid, n_items=len(dataset.items), n_blocks=-(-len(units) // size), n_values=len(units) * len(models)
        )
        shares = train_shares(train, dataset.items)
        one = np.ones(1, dtype=np.int64)  # a sampler that lacks what it needs is refused before any work
        of_train = None if shares is None else np.ones(1)
        for family in grid.families:
            counts = ItemCounts(one, one, of_train, random=np.ones(1), items=Ids(dataset.items.values[:1]))
            weights_of(family.sampler, counts, users=Ids(dataset.users.values[:1]))
        most = int(dataset.positive.count.max())
        tables = MetricTables.of_metrics(grid.metrics, most_positives=most, n_users=len(units))
        weights = [logger.weights(dataset.log, train=train) for logger in grid.loggers]
        runs = {
            (repetition, at_logger): LoggerRun.of(
                dataset,
                grid.loggers[at_logger],
                sparsities=grid.sparsities,
                holdout=grid.holdout,
                weight=weights[at_logger],
                seed=grid.seed_of(repetition, seed=seed),
            )
            for repetition, at_logger in product(range(grid.repetitions), range(len(grid.loggers)))
        }
        units, group = grouped(units, dataset.users.keys()[units], seed=seed)
        return cls(grid, dataset, models, runs, tables, train, shares, _parts(units, size), _parts(group, size), seed)

    def described(self) -> dict[str, Any]:
        """All that the results depend on, and how the work is divided."""
        dataset, train = self.dataset, self.train
        of_train = [] if train is None else [train.users, train.items, train.user, train.item, *train.rewards.values()]
        return {
            "study": "reliability",
            "format": FORMAT,
            **self.grid.described(),
            "seed": self.seed,
            "users": len(dataset.users),
            "items": len(dataset.items),
            "labels": dataset.digest(),
            "models": list(self.models.aligned),  # the order in which blocks have their sums
            "scores": self.models.digest(),
            "train": "none" if train is None else digest(of_train),
            "users in a block": len(self.users[0]),
        }

    def notes(self, *, n_evaluated: int) -> tuple[str, ...]:
        dataset = self.dataset
        lost = sum(map(len, self.users)) - n_evaluated
        unscored, silent = int((~self.models.scored).sum()), int((dataset.positive.count == 0).sum())
        remarks = [
            (unscored, f"{unscored:,} users without scores of every model are shown items but not evaluated."),
            (silent, f"{silent:,} users like nothing that is left; they are shown items but not evaluated."),
            (lost, f"{lost:,} or more users have all that they like held out, and are not evaluated then."),
            (dataset.n_unknown, f"{dataset.n_unknown:,} pairs to exclude are of users or items that the labels lack."),
            (dataset.n_dropped, f"{dataset.n_dropped:,} labels are of excluded pairs and dropped."),
            (dataset.n_missing, f"{dataset.n_missing:,} pairs have no label and are never shown."),
            *(
                (n, f"{name} does not know {n:,} of the items; it never recommends them.")
                for name, n in self.models.unknown_items.items()
            ),
            *(
                (
                    np.ptp(self.runs[0, at_logger].weight) == 0,
                    f"the {logger} logger favours no item here: it shows all alike.",
                )
                for at_logger, logger in enumerate(self.grid.loggers)
                if not isinstance(logger, UniformLogger)
            ),
        ]
        return (
            f"{n_evaluated:,} users evaluated, {len(dataset.items):,} items, {len(self.models)} models.",
            *(text for count, text in remarks if count),
        )


def _parts(units: Ints, size: int) -> list[Ints]:
    """Runs of that many users."""
    return [units[low : low + size] for low in range(0, len(units), size)]


def _check_work(grid: Grid, *, n_items: int, n_blocks: int, n_values: int) -> None:
    """Refuse a study that cannot be held or finished: every policy of every repetition is counted, then evaluated."""
    n_runs, n_sparsities = float(grid.repetitions * len(grid.loggers)), len(grid.sparsities)
    check_size(
        f"a study of {grid.repetitions:,} repetitions, {len(grid.loggers):,} loggers, {n_sparsities:,} sparsities and "
        f"{grid.n_candidates:,} sets of candidates",
        memory=n_runs * n_sparsities * n_items + BLOCK_BYTES * n_runs * n_blocks,
        seconds=n_runs * (BLOCK_SECONDS * n_blocks + VALUE_SECONDS * n_sparsities * grid.n_candidates * n_values),
        instead="Study fewer of them.",
    )


def _run(work: _Work, folder: Folder, resampling: Resampling, *, workers: Workers, progress: Progress | None) -> None:
    grid = work.grid
    counts = _count(work, folder, workers=workers, progress=progress)
    scenarios = {
        key: Scenarios.of(work.runs[key], count, grid=grid, tables=work.tables, train=work.shares)
        for key, count in counts.items()
    }
    # blocks of one run of users together: their items are put in order only once
    blocks = [Block(*key, number) for number, key in product(range(len(work.users)), work.runs)]
    left = [block for block in blocks if not folder.has(block, "", "-sums")]
    evaluated = map_chunks(workers, _Evaluation(_Orders(work), scenarios), as_chunks(left))
    for block, compared in _watched(evaluated, progress, "evaluating scenarios", len(blocks), len(blocks) - len(left)):
        _write_block(folder, block, compared, grid=grid, first=int(work.groups[block.number][0]))
    keys = [work.dataset.users.keys()[units] for units in work.users]
    n_groups = int(work.groups[-1][-1]) + 1
    summary = Summary(folder, grid, tuple(work.models.aligned), tuple(keys), work.tables.scale, n_groups, resampling)
    alike = [np.flatnonzero(work.tables.table == table).tolist() for table in range(work.tables.table.max() + 1)]
    cases = list(product(range(len(grid.loggers)), alike))
    near = workers if workers.here else Threads(os.cpu_count() or 1)  # other machines do not have the folder
    result: dict[tuple[int, int], Tables] = {}
    for tables in _watched(
        map_chunks(near, partial(_summed, summary), as_chunks(cases)), progress, "summing up", len(cases)
    ):
        result |= tables
    results, means, pairs = (pl.concat([result[key][at_table] for key in sorted(result)]) for at_table in range(3))
    if results["users"].max() == 0:
        raise InputError("no user is left to evaluate: all that users like is held out. Study a larger world.")
    logs = _logs(grid, counts, n_users=len(work.dataset.users))
    folder.finish({LOGS: logs, PAIRS: pairs, MEANS: means, RESULTS: results})


def _summed(summary: Summary, case: tuple[int, Sequence[int]]) -> dict[tuple[int, int], Tables]:
    logger, metrics = case
    return {(logger, metric): tables for metric, tables in zip(metrics, summary.of(logger, metrics), strict=True)}


def _watched(values: Iterable[Any], progress: Progress | None, what: str, total: int, done: int = 0) -> Iterable[Any]:
    """The values, each reported when the next is asked for."""
    for number, value in enumerate(values, start=done + 1):
        yield value
        if progress is not None:
            progress(what, number, total)


def _count(work: _Work, folder: Folder, *, workers: Workers, progress: Progress | None) -> dict[tuple[int, int], Ints]:
    """What each log exposes of each item decides pools and weights, so it is counted over all users first."""
    n_users, n_items = len(work.dataset.users), len(work.dataset.items)
    blocks = _parts(np.arange(n_users), max(1, min(BLOCK_USERS, BLOCK_CELLS // n_items)))
    counts = {}
    for key, run in _watched(work.runs.items(), progress, "counting what is shown", len(work.runs)):
        block = Block(key[0], key[1], 0)
        if not folder.has(block, "-counts"):
            total = reduce(np.add, map_chunks(workers, run.count, as_chunks(blocks)))
            folder.write(block, "-counts", pl.DataFrame({str(row): values for row, values in enumerate(total)}))
        counts[key] = folder.read(block, "-counts").to_numpy().T
    return counts


def _write_block(folder: Folder, block: Block, compared: Compared, *, grid: Grid, first: int) -> None:
    """Rows are (user, sparsity, candidates), a column for each metric and figure; sums of models beside it, with rows
    (group, sparsity, candidates, model).
    """
    n_groups, in_group = len(compared.sums), compared.sums[0, :, :, 0].size
    sums = {str(metric): compared.sums[:, :, :, q].ravel() for q, metric in enumerate(grid.metrics)}
    sums["group"] = np.repeat(np.arange(n_groups) + first, in_group)
    sums["users"] = np.repeat(compared.users, in_group)
    folder.write(block, "-sums", pl.DataFrame(sums))
    figures = {
        f"{metric} {figure}": np.ascontiguousarray(compared.figures[:, :, :, q, f]).ravel()
        for q, metric in enumerate(grid.metrics)
        for f, figure in enumerate(FIGURES)
    }
    folder.write(block, "", pl.DataFrame(figures))


def _logs(grid: Grid, counts: Mapping[tuple[int, int], Ints], *, n_users: int) -> pl.DataFrame:
    """One row for each logging policy and sparsity: the profile of its log, as means over repetitions.

    The catalogue is the items that have a row where everything is exposed: a hold-out of whole items removes them from
    all logs alike. `observed_sparsity` counts held-out pairs as not exposed, as whoever looks at the log does.
    """
    rows = []
    for at_logger, logger in enumerate(grid.loggers):
        of_policy = [profiles_of(counts[r, at_logger], n_users=n_users) for r in range(grid.repetitions)]
        for s, sparsity in enumerate(grid.sparsities):
            means = {
                name: np.mean([float(getattr(profiles[s], name.removeprefix("observed_"))) for profiles in of_policy])
                for name in LOG_FIGURES
            }
            rows.append({"logger": str(logger), "sparsity": sparsity, **means, "repetitions": grid.repetitions})
    return pl.DataFrame(rows)


class _Orders:
    """The items of the latest few blocks of users in every model's order, made once for all that need them."""

    def __init__(self, work: _Work) -> None:
        self.work, self.lock, self.latest = work, Lock(), OrderedDict[int, tuple[Orders, Ints]]()

    def of_block(self, number: int) -> tuple[Orders, Ints]:
        with self.lock:
            if number not in self.latest:
                while len(self.latest) > 1:
                    self.latest.popitem(last=False)
                self.latest[number] = self.work.models.orders(self.work.users[number])
            return self.latest[number]

    def __reduce__(self) -> tuple[type[_Orders], tuple[_Work]]:
        """Another process makes its own."""
        return _Orders, (self.work,)


@record
class _Evaluation:
    """All scenarios of a block of users under one logging policy: a pure function, to be sent."""

    orders: _Orders
    scenarios: Mapping[tuple[int, int], Scenarios]

    def __call__(self, block: Block) -> tuple[Block, Compared]:
        order, finite = self.orders.of_block(block.number)
        users, group = self.orders.work.users[block.number], self.orders.work.groups[block.number]
        return block, self.scenarios[block[:2]].evaluate(users, group, order, finite)
