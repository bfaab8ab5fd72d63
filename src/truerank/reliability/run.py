"""Run a study: count what is exposed, evaluate block after block, and sum up. It can be stopped at any moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from truerank.core.arrays import Ints
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.progress import Progress, Watching, watching
from truerank.engines.engine import Local, Workers, as_chunks, map_chunks
from truerank.engines.named import as_engine
from truerank.evaluation.label_facts import check_numbers
from truerank.inference.intervals import MOST_REPLICATES
from truerank.io.checkpoint import Blocks, keep_question, working
from truerank.io.files import read_table
from truerank.ranking.candidates import whole_tables
from truerank.ranking.scores.files import as_scores
from truerank.reliability.dataset import LabelledDataset, Models
from truerank.reliability.grid import Grid, default_loggers
from truerank.reliability.plan import BLOCK_CELLS, BLOCK_USERS, RESUME, SUMS, Block, Folder, StudyPlan, parts
from truerank.reliability.scenarios import Compared, Scenarios
from truerank.reliability.studied import FIGURES, LOGS, MEANS, NOTE, PAIRS, RESULTS, profiles_of
from truerank.reliability.tables import Resampling, StudyFrames, Summary


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
        if not all(folder.has(Block(repetition, logger, number)) for logger in range(n_loggers))
    ]
    evaluate = partial(_evaluated, plan, scenarios)
    for blocks in map_chunks(workers, evaluate, as_chunks(left), progress=progress, what="evaluating scenarios"):
        for block, compared in blocks.items():
            _write_block(folder, block, compared, grid=grid)
    alike = [np.flatnonzero(plan.tables.table == table).tolist() for table in range(plan.tables.table.max() + 1)]
    cases = as_chunks(list(product(range(n_loggers), alike)))
    near = workers if workers.here else Local()  # other machines do not have the folder
    sum_up, frames = partial(_summed, Summary(plan, folder, resampling)), dict[tuple[int, int], StudyFrames]()
    for of_case in map_chunks(near, sum_up, cases, progress=progress, what="summing up"):
        frames |= of_case
    results, means, pairs = (pl.concat(table) for table in zip(*(frames[key] for key in sorted(frames)), strict=True))
    if results["users"].max() == 0:
        raise InputError("no user is left to evaluate: all that users like is held out. Study a larger dataset.")
    return {LOGS: _logs(plan, counts), PAIRS: pairs, MEANS: means, RESULTS: results}


def _exposure_counts(plan: StudyPlan, workers: Workers, progress: Progress | None) -> dict[tuple[int, int], Ints]:
    """What each log exposes of each item decides pools and weights, so it is counted over all users first."""
    n_users, n_items = len(plan.dataset.users), len(plan.dataset.items)
    blocks = parts(np.arange(n_users), max(1, min(BLOCK_USERS, BLOCK_CELLS // n_items)))
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


def _write_block(folder: Folder, block: Block, compared: Compared, *, grid: Grid) -> None:
    """A column for each metric: of figures by (figure, user, sparsity, candidates), of sums by (group, sparsity,
    candidates, model).
    """
    figures = np.moveaxis(compared.figures, (3, 4), (0, 1))
    for columns, part in ((np.moveaxis(compared.sums, 3, 0), SUMS), (figures, "")):
        folder.write(
            block, {str(metric): column.ravel() for metric, column in zip(grid.metrics, columns, strict=True)}, part
        )


def _logs(plan: StudyPlan, counts: Mapping[tuple[int, int], Ints]) -> pl.DataFrame:
    """One row for each logging policy and sparsity: the profile of its log, as means over repetitions.

    The catalogue is the items that have a row where everything is exposed: a hold-out of whole items removes them from
    all logs alike. `observed_sparsity` counts held-out pairs as not exposed, as whoever looks at the log does.
    """
    rows = [
        {"logger": str(plan.grid.loggers[logger]), "sparsity": sparsity}
        | {name: float(getattr(profile, name.removeprefix("observed_"))) for name in FIGURES}
        for (_, logger), count in sorted(counts.items(), key=lambda entry: entry[0][1])
        for sparsity, profile in zip(
            plan.grid.sparsities, profiles_of(count, n_users=len(plan.dataset.users)), strict=True
        )
    ]
    means = pl.DataFrame(rows).group_by("logger", "sparsity", maintain_order=True).mean()
    return means.with_columns(repetitions=pl.lit(plan.grid.repetitions, pl.Int64))
