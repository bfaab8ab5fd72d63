"""What the rows of a log say together: facts of values and distinct ids, batch by batch; counts and spreads."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids, as_ids, joined_ids
from truerank.core.log import Log, Pairs
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


def summary(log: Log) -> dict[str, Any]:
    """Counts and spreads of a log."""
    per_user = np.bincount(log.user, minlength=len(log.users))
    per_item = np.bincount(log.item, minlength=len(log.items))
    pairs = len(Pairs.of(log.user, log.item, n_units=len(log.users)).item)
    cells = len(log.users) * len(log.items)
    counts: dict[str, Any] = {
        "rows": len(log),
        "users": len(log.users),
        "items": len(log.items),
        "density": pairs / cells if cells else 0.0,
        "repeated pairs": len(log) - pairs,
        "rows per user (min, median, max)": _spread(per_user),
        "rows per item (min, median, max)": _spread(per_item),
        "Gini of rows per item": gini(per_item.astype(np.float64)),
    }
    for name, values in log.rewards.items():
        if name != "label" and len(values):
            counts[f"{name} (min, mean, max)"] = [float(values.min()), float(values.mean()), float(values.max())]
    if "label" in log.rewards:
        positives = np.bincount(log.user, weights=log.label, minlength=len(log.users))
        counts["positives"] = int(log.label.sum())
        counts["share positive"] = float(log.label.mean()) if len(log) else 0.0
        counts["users without a positive"] = int(np.count_nonzero(positives == 0))
    return counts


def gini(counts: Floats) -> float:
    """How unequal counts are: 0 all equal, near 1 all in one place.

    G = Σ (2i - n - 1) x_(i) / (n Σ x), x sorted ascending.

    >>> gini(np.array([1.0, 1.0])), gini(np.array([0.0, 4.0]))
    (0.0, 0.5)
    """
    total, n = counts.sum(), len(counts)
    if total == 0:
        return 0.0
    place = 2 * np.arange(1, n + 1) - n - 1
    return float((place * np.sort(counts)).sum() / (n * total))


def _spread(counts: Any) -> list[float]:
    if len(counts) == 0:
        return [0, 0, 0]
    return [float(counts.min()), float(np.median(counts)), float(counts.max())]
