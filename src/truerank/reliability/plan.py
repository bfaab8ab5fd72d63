"""What a study does and how it is divided into blocks, and the folder that keeps those that are done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids, Keys
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.sizes import check_size
from truerank.exposure.counts import shares_of_items
from truerank.exposure.logging_policies import UniformLogger
from truerank.io.atomic_write import check_folder, read_marker, seal, unseal
from truerank.io.checkpoint import BLOCK, Blocks
from truerank.io.files import write_table
from truerank.ranking.samplers.draw import ItemCounts, weights_of
from truerank.reliability.dataset import LabelledDataset, Models, digest
from truerank.reliability.grid import Grid
from truerank.reliability.scenarios import LoggerRun, MetricTables
from truerank.reliability.studied import EXPECTED, FILES, FORMAT, KIND

BLOCK_CELLS = 2**23  # items of all models of a block of users
BLOCK_USERS = 256
BLOCK_BYTES, BLOCK_SECONDS = 100.0, 1e-3  # that a block of users takes at least, whatever is in it
VALUE_SECONDS = 1e-8  # that one value of one user and model takes at least
GROUPS = 128  # their sums say how means vary between draws of users, give or take 1 / sqrt(2 * 128) = 6 %
BLOCK_NAME = re.compile(r"r\d{5,}-l\d{3,}-b\d{7,}(-sums)?" + re.escape(BLOCK))
SUMS = "-sums"  # the part of a block with the sums of models
RESUME = "What was done before is kept: make room and start the same study again to go on."


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
        shares = None if train is None else shares_of_items(train, dataset.items)
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
        return cls(grid, dataset, models, runs, tables, train, shares, parts(units, size), parts(group, size), seed)

    @property
    def axes(self) -> tuple[int, int]:
        """How many sparsities and ways to choose candidates there are."""
        return len(self.grid.sparsities), self.grid.n_candidates

    @property
    def n_scenarios(self) -> int:
        """Of one logging policy and metric."""
        return len(self.grid.sparsities) * self.grid.n_candidates

    @property
    def n_groups(self) -> int:
        return int(self.groups[-1][-1]) + 1

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
            (np.ptp(self.runs[0, at].weight) == 0, f"the {logger} logger favours no item here: it shows all alike.")
            for at, logger in enumerate(self.grid.loggers)
            if not isinstance(logger, UniformLogger)
        ]
        return (
            f"{n_evaluated:,} users evaluated, {len(dataset.items):,} items, {len(self.models)} models.",
            *(text for count, text in remarks if count),
        )


def parts(units: Ints, size: int) -> list[Ints]:
    """Runs of that many users."""
    return [units[low : low + size] for low in range(0, len(units), size)]


def group_users(units: Ints, key: Keys, *, seed: int) -> tuple[Ints, Ints]:
    """Users in random order by (seed, user), and the group of each: equal sizes, give or take one.

    >>> units, group = group_users(np.arange(300), np.arange(300, dtype=np.uint64), seed=0)
    >>> int(group[-1]) + 1, sorted(set(np.bincount(group).tolist())), sorted(units.tolist()) == list(range(300))
    (128, [2, 3], True)
    """
    n = len(units)
    place = np.argsort(cell_keys(seed, "groups of users", key, np.zeros(n, dtype=np.uint64)), kind="stable")
    return units[place], np.arange(n) * min(GROUPS, n) // max(n, 1)


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


# --------------------------------------------------------------------------------------------------------------- folder


class Block(NamedTuple):
    """A part of the work: a run of users with all scenarios of one logging policy in one repetition."""

    repetition: int
    logger: int
    number: int


@record
class Folder:
    """Where a study keeps what it has done, in blocks that are whole or absent; use it inside `working`."""

    path: Path
    files: Blocks

    @property
    def blocks(self) -> Path:
        return self.path / "blocks"

    def _place(self, block: Block, part: str) -> Path:
        return self.blocks / f"r{block.repetition:05}-l{block.logger:03}-b{block.number:07}{part}{BLOCK}"

    def has(self, block: Block) -> bool:
        return all(self._place(block, part).is_file() for part in ("", SUMS))

    def write(self, block: Block, columns: Mapping[str, Any], part: str = "") -> None:
        self.files.write(pl.DataFrame(columns), self._place(block, part))

    def read(self, block: Block, column: str, part: str = "") -> Any:
        return self.files.read(self._place(block, part), [column])[column].to_numpy()

    def is_finished(self) -> bool:
        """Whether all is done; a finished study of which a file is gone is made again, one that was altered refused."""
        marker = read_marker(self.path)
        if marker is None:
            return False
        if not all((self.path / name).is_file() for name in marker.files):
            unseal(self.path)
            return False
        check_folder(self.path, kind=KIND, expected=EXPECTED)
        return True

    def finish(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Write the tables of the study, and the marker with which it is finished."""
        for name, table in tables.items():
            write_table(table, self.path / name, advice=RESUME)
        seal(self.path, kind=KIND, names=FILES, advice=RESUME)

    def written(self) -> list[Path]:
        """The blocks that are there, by the names that truerank gives them."""
        if self.blocks.is_symlink():
            raise InputError(f"{self.blocks}: is a link; expected a folder of the study. Choose another folder.")
        return sorted(path for path in self.blocks.glob(f"*{BLOCK}") if BLOCK_NAME.fullmatch(path.name))

    def clear(self) -> None:
        """Remove the blocks: their tables are written."""
        for path in (*self.written(), *self.blocks.glob(".truerank-" + "[0-9a-f]" * 16 + ".part")):
            path.unlink()
        with suppress(OSError):  # no blocks, or a file that is not ours
            self.blocks.rmdir()
