"""Rows of one chunk of a table before they are read: what another process needs to read them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Protocol

import polars as pl

from truerank.io.batches import LazyTable


class RowsOfPart(Protocol):
    """Rows of one chunk of a table; `portable` says that they can be read on any machine, not on this one alone."""

    @property
    def portable(self) -> bool: ...

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame: ...


@dataclass(frozen=True, slots=True)
class RowsHeld:
    """Rows in memory, which go wherever they are sent."""

    rows: pl.DataFrame

    portable: ClassVar[bool] = True

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame:
        return self.rows if columns is None else self.rows.select(columns)


@dataclass(frozen=True, slots=True)
class RowsSliced:
    """A range of rows of the files that hold it."""

    table: LazyTable
    start: int
    n: int
    names: tuple[str, ...]

    @property
    def portable(self) -> bool:
        return self.table.portable

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame:
        return self.table.slice(self.start, self.n, self.names if columns is None else columns)
