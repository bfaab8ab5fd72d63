"""What an experiment of a paper is: a value with a name, which is run on real data or on a synthetic world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

import polars as pl

from truerank.core.errors import InputError
from truerank.core.language import Kind
from truerank.core.progress import Progress
from truerank.studies.papers.paper import Cell, Cells, ClaimFinding, Paper, PaperClaim, PaperGraph

SYNTHETIC = "synthetic"


class ReproducedSize(StrEnum):
    """How much of an experiment is done: enough to see that all of it works, or all."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class ReproducedSource:
    """Where data come from: a folder, or a synthetic world of the same shape (None)."""

    folder: Path | None = None

    @classmethod
    def of(cls, given: str | Path) -> ReproducedSource:
        """A folder, or a synthetic world by its name.

        >>> ReproducedSource.of("synthetic").is_synthetic
        True
        """
        if str(given) == SYNTHETIC:
            return cls()
        folder = Path(given)
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; expected one with the data, or {SYNTHETIC}.")
        return cls(folder)

    @property
    def is_synthetic(self) -> bool:
        return self.folder is None

    def place(self, dataset: str) -> Path:
        """The folder of a dataset: one of its name below the given folder, else the given folder itself.

        Names of folders may have `_` where names of datasets have `-`.
        """
        if self.folder is None:
            raise InputError(f"{dataset}: a synthetic world has no folder.")
        below = [self.folder / name for name in (dataset, dataset.replace("-", "_"))]
        return next((each for each in below if each.is_dir()), self.folder)


class WorkPiece(Protocol):
    """A piece of an experiment: its table depends on the value itself alone, and its name tells it from the others."""

    @property
    def name(self) -> str: ...
    def table(self) -> pl.DataFrame: ...


class Keep(Protocol):
    """Makes pieces or finds them made, and gives their tables in the same order.

    With `apart` they may be shared among processes: they are sent to them, and read what they need for themselves.
    """

    def __call__(self, pieces: Sequence[WorkPiece], *, about: str, apart: bool = True) -> list[pl.DataFrame]: ...


def in_memory(pieces: Sequence[WorkPiece], *, about: str, apart: bool = True) -> list[pl.DataFrame]:
    """Pieces made here and now, and kept nowhere."""
    del about, apart
    return [piece.table() for piece in pieces]


@dataclass(frozen=True, slots=True)
class Measurements:
    """What a run of an experiment gives: numbers, pictures, what was done, and how data differ from the paper's."""

    cells: tuple[Cell, ...]
    graphs: tuple[PaperGraph, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    differs: tuple[str, ...] = ()  # sentences: what was not as in the paper


@dataclass(frozen=True, slots=True)
class Obtained:
    """What a verdict is made of: the numbers, and what they were obtained from."""

    cells: Cells
    synthetic: bool
    size: ReproducedSize


class Experiment(Protocol):
    """An experiment of a paper.

    `shows` has the tables and figures by paper, that of the experiment first; `data` the names of the datasets, none
    where it needs none; `minutes` what the full size takes on two cores. `instead` is empty, or says why it cannot be
    run here and what to run.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]]
    data: ClassVar[tuple[str, ...]]
    minutes: ClassVar[float]
    claims: ClassVar[tuple[PaperClaim, ...]]
    instead: ClassVar[str]

    def run(
        self, source: ReproducedSource, *, size: ReproducedSize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        """Obtain the numbers; long work is done in pieces that `keep` keeps."""
        ...

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        """A verdict on every claim, from the numbers alone."""
        ...


EXPERIMENTS: Kind[Experiment] = Kind("experiment", "truerank.studies.papers", Experiment, deep=True)


def paper_of(experiment: type[Experiment]) -> Paper:
    """The paper that an experiment belongs to."""
    return next(iter(experiment.shows))


def catalogued() -> list[type[Experiment]]:
    """Every experiment, in the order of papers and of names."""
    return sorted(EXPERIMENTS.catalogue().values(), key=lambda cls: (paper_of(cls).key, cls.name))
