"""Which rows of terms depend on each other: users with several sessions, groups that were drawn together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.ids import Keys
from truerank.core.record import record

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which rows of terms depend on each other: `of_row` is the cluster of each row, `key` a number of each cluster.

    A key depends on the id of the cluster alone; what is drawn for a cluster follows from it. `stratum` is the
    source of fixed size that a cluster comes from, where there are several.
    """

    of_row: Ints
    key: Keys
    stratum: Ints | None = None

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def alone(cls, key: Keys) -> Clusters:
        """Each row is its own cluster."""
        return cls(np.arange(len(key)), key)

    @classmethod
    def numbered(cls, n: int) -> Clusters:
        """n rows, each its own cluster, known by its number."""
        return cls.alone(np.arange(n, dtype=np.uint64))

    def sums(self, values: Floats) -> Floats:
        """The sum of values of rows over each cluster."""
        return values if self.each_alone else sums_by(self.of_row, values, n=len(self.key))

    @cached_property
    def each_alone(self) -> bool:
        """Whether each row is its own cluster, in order."""
        return bool(np.array_equal(self.of_row, np.arange(len(self.key))))

    def has(self, rows: Bools) -> Bools:
        """Which clusters have one of these rows."""
        if self.each_alone:
            return rows
        met = np.zeros(len(self.key), dtype=bool)
        met[self.of_row[rows]] = True
        return met

    def take(self, order: Ints) -> Clusters:
        """The clusters of these rows in this order, numbered in the order in which they come."""
        of_row = self.of_row[order]
        first = np.full(len(self.key), len(of_row), dtype=np.int64)
        np.minimum.at(first, of_row, np.arange(len(of_row)))
        first_rows = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(of_row))]
        number = np.empty(len(first), dtype=np.int64)
        number[first_rows] = np.arange(len(first_rows))
        return Clusters(
            number[of_row], self.key[first_rows], None if self.stratum is None else self.stratum[first_rows]
        )

    @staticmethod
    def join(parts: Sequence[Clusters]) -> Clusters:
        """The clusters of all parts, which share none."""
        shift = np.cumsum([0, *(len(part) for part in parts)])
        strata = [part.stratum for part in parts if part.stratum is not None]
        return Clusters(
            np.concatenate([part.of_row + s for part, s in zip(parts, shift, strict=False)]),
            np.concatenate([part.key for part in parts]),
            np.concatenate(strata) if strata else None,
        )


@record(eq=False)
class Once:
    """What one step makes of values: once for the very same values, whoever asks.

    >>> once, values = Once(), np.array([3, 1, 2])
    >>> once.taken(values, np.array([0, 2])) is once.taken(values, np.array([0, 2]))
    True
    """

    made: dict[tuple[int, ...], tuple[Any, Any]] = field(default_factory=dict, repr=False)

    def of(self, values: Sequence[Any], make: Callable[[], Made]) -> Made:
        same = tuple(map(id, values))
        if same not in self.made:
            self.made[same] = list(values), make()  # they are held, so that nothing else is known by their ids
        result: Made = self.made[same][1]
        return result

    def joined(self, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The values of all parts."""
        return self.of(parts, lambda: np.concatenate(parts))

    def joined_clusters(self, parts: Sequence[Clusters]) -> Clusters:
        """The clusters of all parts, which share none."""
        return self.of(parts, lambda: Clusters.join(parts))

    def taken(self, values: npt.NDArray[Any], order: Ints) -> npt.NDArray[Any]:
        """The values of these rows."""
        # along the axis that lies together in memory, ten times as fast as an index
        in_rows = values.flags.c_contiguous
        return self.of([values], lambda: values.take(order, axis=0) if in_rows else values.T.take(order, axis=-1).T)

    def reduced(self, values: npt.NDArray[Any], group: Ints, n: int) -> npt.NDArray[Any]:
        """The value of each of n groups of rows that have the same one."""

        def make() -> npt.NDArray[Any]:
            result = np.zeros(n, dtype=values.dtype)
            result[group] = values
            return result

        return self.of([values], make)
