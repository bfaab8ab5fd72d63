"""Run a study: count what is exposed, evaluate block after block, and sum up. It can be stopped at any moment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
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
from truerank.ranking.scores.files import as_scores
from truerank.reliability.dataset import LabelledDataset, Models, digest
from truerank.reliability.folder import RESUME, Block, Folder
from truerank.reliability.grid import Grid, default_loggers
from truerank.reliability.scenarios import FIGURES, Compared, LoggerRun, MetricTables, Scenarios, train_shares
from truerank.reliability.studied import FIGURES as LOG_FIGURES
from truerank.reliability.studied import FORMAT, LOGS, MEANS, NOTE, PAIRS, RESULTS, profiles_of
from truerank.reliability.tables import Resampling, StudyFrames, Summary, group_users

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
    if grid is None:
        grid = Grid.from_names(loggers=default_loggers(train=train is not None))
    if not 2 <= resamples <= MOST_REPLICATES:
        raise InputError(f"{resamples:,} resamples; expected 2 to {MOST_REPLICATES:,}, and 1,000 is enough.")
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95.")
    models = {name: as_scores(model, name=name) for name, model in scores.items()}
    numbered = check_numbers(models, {labels.source: labels})
    every = Ids.union({name: model.items for name, model in models.items()}) if models else None
    dataset = LabelledDataset.from_log(labels, items=every, exclude=exclude)
    models = whole_tables(models, others={dataset.log.source: dataset.items}, items=None, n_items=None)
    aligned = Models.align(models, dataset, seed=seed)
    plan = StudyPlan.prepare(grid, dataset, aligned, train, seed=seed, block_users=block_users)
    damaged: list[str] = []
    with watching(progress) as report, working(Path(out)) as place, threadpool_limits(limits=1, user_api="blas"):
        settings = plan.described() | {"resamples": resamples, "level": level}
        folder = Folder(place, Blocks(keep_question(place / NOTE, settings, what="study", advice=RESUME), RESUME))
        if not folder.is_finished():
            folder.blocks.mkdir(exist_ok=True)
            damaged = folder.files.drop_damaged(folder.written())
            with as_engine(engine, threads=threads).open() as workers:
                folder.finish(_tables(plan, folder, Resampling(resamples, level, seed), workers, report))
        folder.clear()
        results, means, pairs = (read_table(place / name) for name in (RESULTS, MEANS, PAIRS))
    notes = plan.notes(n_evaluated=int(results["users"].to_numpy().max()))
    again = (f"{place}: {some(damaged)} had been altered and was made again.",) if damaged else ()
    return StudyTables(results, means, pairs, (*(message.text for message in numbered), *notes, *again))


@record
class StudyPlan:
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
    def prepare(
        cls, grid: Grid, dataset: LabelledDataset, models: Models, train: Log | None, *, seed: int,
        block_users: int | None,
    ) -> StudyPlan:  # fmt: skip
        units = np.flatnonzero(models.scored & (dataset.positive.count > 0))
        if len(units) == 0:
            raise InputError(f"{dataset.log.source}: no user with a positive has scores of every model. Check the ids.")
        size = block_users or max(1, min(BLOCK_USERS, BLOCK_CELLS // (len(models) * len(dataset.items))))
        _check_work(
            grid, n_items=len(dataset.items), n_blocks=-(-len(units) // size), n_values=len(units) * len(models)
        )
        shares = train_shares(train, dataset.items)
        one, first = np.ones(1, dtype=np.int64), Ids(dataset.items.values[:1])
        # a sampler that lacks what it needs is refused before any work
        counts = ItemCounts(one, one, None if shares is None else np.ones(1), np.ones(1), items=first)
        for family in grid.families:
            weights_of(family.sampler, counts, users=Ids(dataset.users.values[:1]))
        most = int(dataset.positive.count.max())
        tables = MetricTables.of_metrics(grid.metrics, most_positives=most, n_users=len(units))
        weights = [logger.weights(dataset.log, train=train) for logger in grid.loggers]
        runs = {
            (repetition, at): LoggerRun.prepare(
                dataset, grid.loggers[at], sparsities=grid.sparsities, holdout=grid.holdout, weight=weights[at],
                seed=grid.seed_of(repetition, seed=seed),
            )
            for repetition, at in product(range(grid.repetitions), range(len(grid.loggers)))
        }  # fmt: skip
        units, group = group_users(units, dataset.users.keys()[units], seed=seed)
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
        held_out = sum(map(len, self.users)) - n_evaluated
        unscored, without = int((~self.models.scored).sum()), int((dataset.positive.count == 0).sum())
        remarks = [
            (unscored, f"{unscored:,} users without scores of every model are exposed to items but not evaluated."),
            (without, f"{without:,} users like nothing that is left; they are exposed to items but not evaluated."),
            (held_out, f"{held_out:,} or more users have all that they like held out, and are not evaluated then."),
            (dataset.n_unknown, f"{dataset.n_unknown:,} pairs to exclude are of users or items that the labels lack."),
            (dataset.n_dropped, f"{dataset.n_dropped:,} labels are of excluded pairs and dropped."),
            (dataset.n_missing, f"{dataset.n_missing:,} pairs have no label and are never exposed."),
        ]
        remarks += [
            (n, f"{name} does not know {n:,} of the items; it never recommends them.")
            for name, n in self.models.unknown_items.items()
        ]
        remarks += [
            (
                int(np.ptp(self.runs[0, at].weight) == 0),
                f"the {logger} logger favours no item here: it shows all alike.",
            )
            for at, logger in enumerate(self.grid.loggers)
            if not isinstance(logger, UniformLogger)
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


def _tables(
    plan: StudyPlan, folder: Folder, resampling: Resampling, workers: Workers, progress: Progress | None
) -> dict[str, pl.DataFrame]:
    """The tables of a study by the names of their files; what the folder has of the blocks is not evaluated again."""
    grid, n_loggers = plan.grid, len(plan.grid.loggers)
    counts = _exposure_counts(plan, workers, progress)
    scenarios = {
        key: Scenarios.prepare(run, counts[key], grid=grid, tables=plan.tables, train=plan.shares)
        for key, run in plan.runs.items()
    }
    left = [
        (repetition, number)
        for number, repetition in product(range(len(plan.users)), range(grid.repetitions))
        if not all(
            folder.place(Block(repetition, logger, number), part).is_file()
            for logger, part in product(range(n_loggers), ("", "-sums"))
        )
    ]
    evaluate = partial(_evaluated, plan, scenarios)
    for blocks in map_chunks(workers, evaluate, as_chunks(left), progress=progress, what="evaluating scenarios"):
        for block, compared in blocks.items():
            _write_block(folder, block, compared, grid=grid, first=int(plan.groups[block.number][0]))
    keys = tuple(plan.dataset.users.keys()[units] for units in plan.users)
    n_groups = int(plan.groups[-1][-1]) + 1
    summary = Summary(folder, grid, tuple(plan.models.aligned), keys, plan.tables.scale, n_groups, resampling)
    alike = [np.flatnonzero(plan.tables.table == table).tolist() for table in range(plan.tables.table.max() + 1)]
    cases = as_chunks(list(product(range(n_loggers), alike)))
    near = workers if workers.here else Threads(os.cpu_count() or 1)  # other machines do not have the folder
    frames: dict[tuple[int, int], StudyFrames] = {}
    for of_case in map_chunks(near, partial(_summed, summary), cases, progress=progress, what="summing up"):
        frames |= of_case
    results, means, pairs = (pl.concat(table) for table in zip(*(frames[key] for key in sorted(frames)), strict=True))
    if results["users"].max() == 0:
        raise InputError("no user is left to evaluate: all that users like is held out. Study a larger dataset.")
    logs = _logs(grid, counts, n_users=len(plan.dataset.users))
    return {LOGS: logs, PAIRS: pairs, MEANS: means, RESULTS: results}


def _exposure_counts(plan: StudyPlan, workers: Workers, progress: Progress | None) -> dict[tuple[int, int], Ints]:
    """What each log exposes of each item decides pools and weights, so it is counted over all users first."""
    n_users, n_items = len(plan.dataset.users), len(plan.dataset.items)
    blocks = _parts(np.arange(n_users), max(1, min(BLOCK_USERS, BLOCK_CELLS // n_items)))
    cases = as_chunks(list(product(plan.runs, blocks)))
    counts = dict.fromkeys(plan.runs, np.zeros(1, dtype=np.int64))
    for key, count in map_chunks(workers, partial(_counted, plan), cases, progress=progress, what="counting exposure"):
        counts[key] = counts[key] + count
    return counts


# what workers do: functions of a module travel to other processes


def _counted(plan: StudyPlan, case: tuple[tuple[int, int], Ints]) -> tuple[tuple[int, int], Ints]:
    key, units = case
    return key, plan.runs[key].count(units)


def _evaluated(
    plan: StudyPlan, scenarios: Mapping[tuple[int, int], Scenarios], case: tuple[int, int]
) -> dict[Block, Compared]:
    """All scenarios of a block of users in one repetition; their items are put in order only once."""
    repetition, number = case
    users, group = plan.users[number], plan.groups[number]
    order, finite = plan.models.orders(users)
    return {
        Block(repetition, logger, number): scenarios[repetition, logger].evaluate(users, group, order, finite)
        for logger in range(len(plan.grid.loggers))
    }


def _summed(summary: Summary, case: tuple[int, Sequence[int]]) -> dict[tuple[int, int], StudyFrames]:
    logger, metrics = case
    return {(logger, metric): frames for metric, frames in zip(metrics, summary.frames(logger, metrics), strict=True)}


def _write_block(folder: Folder, block: Block, compared: Compared, *, grid: Grid, first: int) -> None:
    """Rows are (user, sparsity, candidates), a column for each metric and figure; sums of models beside it, with rows
    (group, sparsity, candidates, model).
    """
    n_groups, in_group = len(compared.sums), compared.sums[0, :, :, 0].size
    sums = {str(metric): compared.sums[:, :, :, q].ravel() for q, metric in enumerate(grid.metrics)}
    sums["group"] = np.repeat(np.arange(n_groups) + first, in_group)
    sums["users"] = np.repeat(compared.users, in_group)
    folder.files.write(pl.DataFrame(sums), folder.place(block, "-sums"))
    figures = {
        f"{metric} {figure}": np.ascontiguousarray(compared.figures[:, :, :, q, f]).ravel()
        for q, metric in enumerate(grid.metrics)
        for f, figure in enumerate(FIGURES)
    }
    folder.files.write(pl.DataFrame(figures), folder.place(block))


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
