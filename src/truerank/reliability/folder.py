"""The folder of a study: one process at a time, blocks that are whole or absent, and a note of what is studied."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.errors import InputError
from truerank.io.atomic_write import check_folder, read_marker, seal, unseal
from truerank.io.checkpoint import BLOCK, Blocks
from truerank.io.files import read_table, write_table
from truerank.reliability.draws import CandidateCounts
from truerank.reliability.order_of_means import GroupSums
from truerank.reliability.scenarios import FIGURES, Compared

FORMAT = 4  # of the files in the folder; another one is another study
NOTE = "study.json"
RESULTS, MEANS, PAIRS = "results.parquet", "means.parquet", "pairs.parquet"
LOGS = "logs.parquet"  # what the logs of each logger look like
FILES = (NOTE, LOGS, PAIRS, MEANS, RESULTS)  # of a finished study
KIND = "reliability study"
BLOCK_NAME = re.compile(r"r\d{5,}-l\d{3,}-b\d{7,}(-sums|-counts)?" + re.escape(BLOCK))
EXPECTED = "the folder of a finished `truerank study reliability`; the command that began it goes on with it"
KEPT = "What was done before is kept: make room and start the same study again to go on."


@dataclass(frozen=True, slots=True)
class WorkBlock:
    """A part of the work: a run of users with all scenarios of one logger in one repetition."""

    repetition: int
    logger: int
    number: int

    @property
    def name(self) -> str:
        return f"r{self.repetition:05}-l{self.logger:03}-b{self.number:07}"


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a study keeps what it has done, and how its blocks are told from others; use it inside `working`."""

    path: Path
    kept: Blocks

    @property
    def blocks(self) -> Path:
        return self.path / "blocks"

    @property
    def finished(self) -> bool:
        """Whether all is done; a finished study of which a file is gone is made again, one that was altered refused."""
        marker = read_marker(self.path)
        if marker is None:
            return False
        if not all((self.path / name).is_file() for name in marker.files):
            unseal(self.path)
            return False
        check_folder(self.path, kind=KIND, expected=EXPECTED)
        return True

    def damaged(self) -> list[str]:
        """Remove the blocks that are not as they were written, and name them: they are made again."""
        return self.kept.drop_damaged(self._written())

    def is_done(self, block: WorkBlock) -> bool:
        return all((self.blocks / f"{block.name}{end}{BLOCK}").is_file() for end in ("", "-sums"))

    def write_block(self, block: WorkBlock, compared: Compared, metrics: Sequence[str]) -> None:
        """Rows are (user, sparsity, candidates), a column for each metric and figure; sums of models beside it, with
        rows (group, sparsity, candidates, model).
        """
        n_groups = len(compared.sums)
        in_group = compared.sums[0, :, :, 0].size
        sums = {metric: compared.sums[:, :, :, q].ravel() for q, metric in enumerate(metrics)}
        sums["group"] = np.repeat(np.arange(n_groups) + compared.first, in_group)
        sums["users"] = np.repeat(compared.users, in_group)
        self.kept.write(pl.DataFrame(sums), self.blocks / f"{block.name}-sums{BLOCK}")
        figures = {
            f"{metric} {figure}": np.ascontiguousarray(compared.figures[:, :, :, q, f]).ravel()
            for q, metric in enumerate(metrics)
            for f, figure in enumerate(FIGURES)
        }
        self.kept.write(pl.DataFrame(figures), self.blocks / f"{block.name}{BLOCK}")

    def read_figures(self, block: WorkBlock, metric: str, shape: tuple[int, int]) -> dict[str, Any]:
        """Each figure of one metric, [users x sparsities x candidates]."""
        columns = [f"{metric} {figure}" for figure in FIGURES]
        table = self.kept.read(self.blocks / f"{block.name}{BLOCK}", columns)
        return {
            figure: table[name].to_numpy().reshape(-1, *shape) for figure, name in zip(FIGURES, columns, strict=True)
        }

    def read_sums(self, block: WorkBlock, metric: str, shape: tuple[int, int, int]) -> tuple[int, GroupSums]:
        """Sums of the values of one metric, and the first of the groups that the users of a block are in."""
        table = self.kept.read(self.blocks / f"{block.name}-sums{BLOCK}", [metric, "group", "users"])
        sums = table[metric].to_numpy().reshape(-1, *shape)
        first = table.gather_every(sums[0].size)
        return int(first["group"][0]), GroupSums(sums, first["users"].to_numpy())

    def write_counts(self, block: WorkBlock, counted: CandidateCounts) -> None:
        named = {"held": counted.held}
        named |= {f"rows {s}": row for s, row in enumerate(counted.rows)}
        named |= {f"positives {s}": row for s, row in enumerate(counted.positives)}
        self.kept.write(pl.DataFrame(named), self.blocks / f"{block.name}-counts{BLOCK}")

    def read_counts(self, block: WorkBlock, n_sparsities: int) -> CandidateCounts | None:
        path = self.blocks / f"{block.name}-counts{BLOCK}"
        if not path.is_file():
            return None
        columns = [f"{kind} {s}" for kind in ("rows", "positives") for s in range(n_sparsities)]
        found = self.kept.read(path, ["held", *columns])
        rows, positives = (
            np.stack([found[f"{kind} {s}"].to_numpy() for s in range(n_sparsities)]) for kind in ("rows", "positives")
        )
        return CandidateCounts(rows, positives, found["held"].to_numpy())

    def write_tables(self, results: pl.DataFrame, means: pl.DataFrame, pairs: pl.DataFrame) -> None:
        """The tables of the study, and the marker with which it is finished."""
        for name, table in ((PAIRS, pairs), (MEANS, means), (RESULTS, results)):
            write_table(table, self.path / name, advice=KEPT)
        seal(self.path, kind=KIND, names=FILES, advice=KEPT)

    def write_logs(self, logs: pl.DataFrame) -> None:
        write_table(logs, self.path / LOGS, advice=KEPT)

    def clear(self) -> None:
        """Remove the blocks: their tables are written."""
        for path in (*self._written(), *self.blocks.glob(".truerank-" + "[0-9a-f]" * 16 + ".part")):
            path.unlink()
        with suppress(OSError):  # not empty: what is left there is not ours
            self.blocks.rmdir()

    def _written(self) -> list[Path]:
        """The blocks that are there, by the names that truerank gives them."""
        if self.blocks.is_symlink():
            raise InputError(f"{self.blocks}: is a link; expected a folder of the study. Choose another folder.")
        return sorted(path for path in self.blocks.glob(f"*{BLOCK}") if BLOCK_NAME.fullmatch(path.name))

    def read_table(self, name: str) -> pl.DataFrame:
        """A table of a finished study."""
        return read_table(self.path / name)
