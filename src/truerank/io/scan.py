"""What all rows say together, found in one pass over rows that may not fit into memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids, as_ids, joined_ids
from truerank.core.record import record

WAITING = 2**22  # ids that are kept before repeated ones are removed


@record
class Facts:
    """Of finite numbers: how many are not 0, their sum, the smallest and the largest, whether all are 0 or 1.

    Facts of two sets of rows add to those of both.
    """

    nonzero: int = 0
    total: float = 0.0
    minimum: float = math.inf
    maximum: float = -math.inf
    binary: bool = True

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Facts:
        """
        >>> Facts.of(np.array([2.0, 1.0])) + Facts.of(np.array([-2.0, 0.0]))
        Facts(nonzero=3, total=1.0, minimum=-2.0, maximum=2.0, binary=False)
        """
        if len(values) == 0:
            return cls()
        nonzero, low, high = int(np.count_nonzero(values)), float(values.min()), float(values.max())
        binary = low >= 0 and high <= 1 and nonzero == int(np.count_nonzero(values == 1))
        return cls(nonzero, float(values.sum(dtype=np.float64)), low, high, binary)

    def __add__(self, more: Facts) -> Facts:
        return Facts(
            self.nonzero + more.nonzero,
            self.total + more.total,
            min(self.minimum, more.minimum),
            max(self.maximum, more.maximum),
            self.binary and more.binary,
        )


@dataclass(slots=True)
class Distinct:
    """Distinct ids of a column that comes in batches; memory is that of the ids, not of the rows."""

    where: str
    parts: list[pl.Series] = field(default_factory=list)

    def add(self, column: pl.Series, before: int = 0) -> None:
        """The ids of some rows; `before` counts the rows before these."""
        ids = as_ids(column, where=self.where, before=before)
        if len(ids):
            self.parts.append(ids.unique())
        if sum(map(len, self.parts[1:])) > WAITING:
            self.parts = [joined_ids(self.parts).unique()]

    def ids(self) -> Ids:
        return Ids.of(joined_ids(self.parts), where=self.where)


def located(ids: Ids, column: pl.Series, *, kind: str, where: str, before: int = 0) -> Ints:
    """The position of each row's id in a population that has all of them."""
    positions = ids.locate(as_ids(column, where=where, before=before), where=where)
    if (positions < 0).any():
        row = int(np.argmax(positions < 0))
        raise InputError(f"{where}: row {before + row + 1}, id {column[row]!r} is not among the given {kind}s.")
    return positions
