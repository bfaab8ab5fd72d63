"""What all rows say together, found in one pass over rows that may not fit into memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, exact_parts
from truerank.core.errors import InputError
from truerank.core.ids import Ids, as_ids, joined_ids
from truerank.core.record import record

DENSE = 2**27  # whole numbers below it are collected in a table of flags
WAITING = 2**22  # ids that are kept before repeated ones are removed
BLOCK = 1 << 16  # numbers that stay in cache


@record
class Facts:
    """Of finite numbers: how many, how many are not 0, their exact sum, the smallest and the largest, whether all are 0
    or 1. Facts of two sets of rows add to those of both, in any order.
    """

    n: int = 0
    nonzero: int = 0
    exact: Fraction = Fraction(0)
    minimum: float = math.inf
    maximum: float = -math.inf
    binary: bool = True

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Facts:
        """
        >>> facts = Facts.of(np.array([1e16, 1.0])) + Facts.of(np.array([-1e16, 0.0]))
        >>> facts.total, facts.nonzero, facts.minimum, facts.binary
        (1.0, 3, -1e+16, False)
        """
        if len(values) == 0:
            return cls()
        nonzero, low, high = int(np.count_nonzero(values)), float(values.min()), float(values.max())
        binary = low >= 0 and high <= 1 and nonzero == int(np.count_nonzero(values == 1))
        total = Fraction(nonzero) if binary else exact_total(values.astype(np.float64, copy=False))
        return cls(len(values), nonzero, total, low, high, binary)

    def __add__(self, more: Facts) -> Facts:
        return Facts(
            self.n + more.n,
            self.nonzero + more.nonzero,
            self.exact + more.exact,
            min(self.minimum, more.minimum),
            max(self.maximum, more.maximum),
            self.binary and more.binary,
        )

    @property
    def total(self) -> float:
        """The sum, rounded once."""
        return float(self.exact)


def exact_total(values: Floats) -> Fraction:
    """The sum without any rounding.

    >>> exact_total(np.array([0.5, 0.25, 2.0**60])) == 2**60 + Fraction(3, 4)
    True
    """
    total = Fraction(0)
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        parts = exact_parts(block)
        total += sum(map(Fraction, block.tolist() if parts is None else parts), Fraction(0))
    return total


@dataclass(slots=True)
class Distinct:
    """Distinct ids of a column that comes in batches; memory is that of the ids, not of the rows."""

    where: str
    flags: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    others: list[pl.Series] = field(default_factory=list)
    n_waiting: int = 0

    def add(self, column: pl.Series, before: int) -> None:
        """The ids of some rows; `before` counts the rows before these."""
        ids = as_ids(column, where=self.where, before=before)
        if len(ids) and ids.dtype == pl.Int64:
            values = ids.to_numpy()
            high = int(values.max())
            if int(values.min()) >= 0 and high < DENSE:
                if high >= len(self.flags):
                    self.flags = np.concatenate([self.flags, np.zeros(high + 1 - len(self.flags), dtype=bool)])
                self.flags[values] = True
                return
        if len(ids):
            self.others.append(ids.unique())
            self.n_waiting += len(self.others[-1])
            if self.n_waiting > WAITING + len(self.others[0]):
                self.others = [joined_ids(self.others).unique()]
                self.n_waiting = len(self.others[0])

    def ids(self) -> Ids:
        if len(self.flags):
            self.others.append(pl.Series(np.flatnonzero(self.flags)))
        return Ids.of(joined_ids(self.others), where=self.where)


def located(ids: Ids, column: pl.Series, *, kind: str, where: str, before: int = 0) -> Ints:
    """The position of each row's id in a population that has all of them."""
    positions = ids.locate(as_ids(column, where=where, before=before), where=where)
    if (positions < 0).any():
        row = int(np.argmax(positions < 0))
        raise InputError(f"{where}: row {before + row + 1}, id {column[row]!r} is not among the given {kind}s.")
    return positions
