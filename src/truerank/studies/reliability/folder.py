"""The folder of a study: one process at a time, blocks that are whole or absent, and a note of what is studied."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from truerank.core.errors import InputError
from truerank.data.files import whole_file
from truerank.studies.reliability.draws import CandidateCounts
from truerank.studies.reliability.order_of_means import GroupSums
from truerank.studies.reliability.scenarios import FIGURES, Compared

FORMAT = 3  # of the files in the folder; another one is another study
NOTE = "study.json"
LOCK = ".lock"
RESULTS, MEANS, PAIRS = "results.parquet", "means.parquet", "pairs.parquet"
LOGS = "logs.parquet"  # what the logs of each logger look like
FILES = (NOTE, LOGS, PAIRS, MEANS, RESULTS)  # of a finished study


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
    """Where a study keeps what it has done; use it inside `working`."""

    path: Path

    @property
    def blocks(self) -> Path:
        return self.path / "blocks"

    @property
    def finished(self) -> bool:
        return all((self.path / name).is_file() for name in FILES)

    def is_done(self, block: WorkBlock) -> bool:
        return (self.blocks / f"{block.name}.parquet").is_file()

    def write_block(self, block: WorkBlock, compared: Compared, metrics: Sequence[str]) -> None:
        """Rows are (user, sparsity, candidates), a column for each metric and figure; sums of models beside it, with
        rows (group, sparsity, candidates, model).
        """
        n_groups = len(compared.sums)
        in_group = compared.sums[0, :, :, 0].size
        sums = {metric: compared.sums[:, :, :, q].ravel() for q, metric in enumerate(metrics)}
        sums["group"] = np.repeat(np.arange(n_groups) + compared.first, in_group)
        sums["users"] = np.repeat(compared.users, in_group)
        self._write(pl.DataFrame(sums), self.blocks / f"{block.name}-sums.parquet")
        figures = {
            f"{metric} {figure}": np.ascontiguousarray(compared.figures[:, :, :, q, f]).ravel()
            for q, metric in enumerate(metrics)
            for f, figure in enumerate(FIGURES)
        }
        self._write(pl.DataFrame(figures), self.blocks / f"{block.name}.parquet")

    def read_figures(self, block: WorkBlock, metric: str, shape: tuple[int, int]) -> dict[str, Any]:
        """Each figure of one metric, [users x sparsities x candidates]."""
        columns = [f"{metric} {figure}" for figure in FIGURES]
        table = self._read(self.blocks / f"{block.name}.parquet", columns)
        return {
            figure: table[name].to_numpy().reshape(-1, *shape) for figure, name in zip(FIGURES, columns, strict=True)
        }

    def read_sums(self, block: WorkBlock, metric: str, shape: tuple[int, int, int]) -> tuple[int, GroupSums]:
        """Sums of the values of one metric, and the first of the groups that the users of a block are in."""
        table = self._read(self.blocks / f"{block.name}-sums.parquet", [metric, "group", "users"])
        sums = table[metric].to_numpy().reshape(-1, *shape)
        first = table.gather_every(sums[0].size)
        return int(first["group"][0]), GroupSums(sums, first["users"].to_numpy())

    def write_counts(self, block: WorkBlock, counted: CandidateCounts) -> None:
        named = {"held": counted.held}
        named |= {f"rows {s}": row for s, row in enumerate(counted.rows)}
        named |= {f"positives {s}": row for s, row in enumerate(counted.positives)}
        self._write(pl.DataFrame(named), self.blocks / f"{block.name}-counts.parquet")

    def read_counts(self, block: WorkBlock, n_sparsities: int) -> CandidateCounts | None:
        path = self.blocks / f"{block.name}-counts.parquet"
        if not path.is_file():
            return None
        columns = [f"{kind} {s}" for kind in ("rows", "positives") for s in range(n_sparsities)]
        found = self._read(path, ["held", *columns])
        rows, positives = (
            np.stack([found[f"{kind} {s}"].to_numpy() for s in range(n_sparsities)]) for kind in ("rows", "positives")
        )
        return CandidateCounts(rows, positives, found["held"].to_numpy())

    def write_tables(self, results: pl.DataFrame, means: pl.DataFrame, pairs: pl.DataFrame) -> None:
        self._write(pairs, self.path / PAIRS)
        self._write(means, self.path / MEANS)
        self._write(results, self.path / RESULTS)  # the last one: with it the study is finished

    def write_logs(self, logs: pl.DataFrame) -> None:
        self._write(logs, self.path / LOGS)

    def clear(self) -> None:
        """Remove the blocks: their tables are written."""
        for each in self.blocks.glob("*"):
            each.unlink()
        self.blocks.rmdir()

    def note(self, settings: Mapping[str, Any]) -> None:
        """Write down what is studied, or refuse where something else was."""
        path = self.path / NOTE
        wanted = msgspec.json.format(msgspec.json.encode(settings), indent=1)
        if not path.is_file():
            if any(not each.name.startswith(".") for each in self.path.iterdir()):
                raise InputError(f"{self.path}: holds files of something else. Choose an empty or a new folder.")
            with self._guarded(path), whole_file(path) as temporary:
                temporary.write_bytes(wanted)
            self.blocks.mkdir(exist_ok=True)
            return
        try:
            known = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise InputError(f"{path}: cannot be read ({error}). Choose a new folder.") from None
        asked = msgspec.json.decode(wanted, type=dict[str, Any])
        changed = [
            key for key in (*known, *(key for key in asked if key not in known)) if known.get(key) != asked.get(key)
        ]
        if changed:
            what = "; ".join(_change(key, known.get(key), asked.get(key)) for key in changed[:3])
            raise InputError(
                f"{self.path}: holds a study of something else ({what}). Use the same inputs and settings to go on "
                "with it, or choose a new folder."
            )
        if not self.finished:
            self.blocks.mkdir(exist_ok=True)

    def _write(self, table: pl.DataFrame, path: Path) -> None:
        content = io.BytesIO()
        table.write_parquet(content, compression="zstd")
        # the view is given back at once, also where writing fails
        with self._guarded(path), whole_file(path) as temporary, content.getbuffer() as view:
            temporary.write_bytes(view)

    def read_table(self, name: str) -> pl.DataFrame:
        """A table of a finished study."""
        return self._read(self.path / name)

    def _read(self, path: Path, columns: list[str] | None = None) -> pl.DataFrame:
        try:
            return pl.read_parquet(path, columns=columns, glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).strip().split("\n")[0]
            raise InputError(f"{path}: cannot be read ({reason}). Remove this file and start again.") from None

    @contextmanager
    def _guarded(self, path: Path) -> Iterator[None]:
        """A full disk is said as such; the temporary file is gone, and what was done before stays."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written ({error.strerror}). What was done before is kept: make room and start the "
                "same study again to go on."
            ) from None


@contextmanager
def working(path: Path) -> Iterator[Folder]:
    """The folder, made where it is missing, for this process alone; free again when the process ends."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
    try:
        _take(handle, path)
        for place in (path, path / "blocks"):
            for left in place.glob(".*.part"):  # of a process that was killed while writing
                left.unlink(missing_ok=True)
        yield Folder(path)
    finally:
        os.close(handle)


def _take(handle: int, path: Path) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(
            f"{path}: another process is working in this folder. Wait for it, or choose another."
        ) from None


def _change(key: str, known: Any, asked: Any) -> str:
    """What is different, in words; of several things by name, which of them."""
    if isinstance(known, dict) and isinstance(asked, dict):
        names = [name for name in {**known, **asked} if known.get(name) != asked.get(name)]
        return f"{key}: {_short(names)} changed"
    return f"{key}: {_short(known)}, now {_short(asked)}"


def _short(value: Any) -> str:
    text = "absent" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
