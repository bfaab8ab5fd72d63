"""What every study and every experiment of a paper is given: how much to do, where data are, and who keeps pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import polars as pl

from truerank.core.errors import InputError

SYNTHETIC = "synthetic"


class StudySize(StrEnum):
    """How much is done: enough to see that all of it works, or all."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class StudySource:
    """Where data come from: a folder, or a synthetic world of the same shape (None)."""

    folder: Path | None = None

    @classmethod
    def of(cls, given: str | Path) -> StudySource:
        """A folder, or a synthetic world by its name.

        >>> StudySource.of("synthetic").is_synthetic
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
    """A piece of long work: its table depends on the value itself alone, and its name tells it from the others."""

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
