"""Bring together what was measured of all chunks: in memory up to a budget, beyond it in a temporary file per question.

What is kept of units too many to hold is one row of sums per cluster; `conclude` needs the rows of one question at a
time, and reads them back when it comes to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Ints
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.core.results import Results
from truerank.core.terms import Terms
from truerank.evaluation.conclude import conclude
from truerank.evaluation.measure import Measured, join
from truerank.evaluation.question import Cell, Plan
from truerank.io.spill import scratch

BUDGET = 2**28  # bytes of sums that are held in memory
NO_CLUSTERS = Clusters.numbered(0)


def concluded(plan: Plan[Any], parts: Iterable[Measured]) -> Results:
    """The results of all parts, which must have every row and unit of the plan."""
    with gathered(parts) as measured:
        return conclude(plan, measured, complete=True)


@contextmanager
def gathered(parts: Iterable[Measured], *, budget: int | None = None) -> Iterator[Measured]:
    """All parts as one; what is kept on disk is gone with the context."""
    held: list[Measured] = []
    size = 0
    waiting = iter(parts)
    for part in waiting:
        held.append(part)
        size += _bytes(part)
        if size > (BUDGET if budget is None else budget) and not any(terms.has_rows() for terms in part.terms.values()):
            break
    else:
        if not held:
            raise InputError("no rows; expected rows of users and items.")
        yield join(held)
        return
    with scratch() as aside:
        store = Store(aside.make("sums"))
        for part in held:
            store.add(part)
        held.clear()
        for part in waiting:
            store.add(part)
        yield store.measured()


def _columns(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The columns of values of rows, [columns x rows]."""
    return values[:, None].T if values.ndim == 1 else values.T


def _bytes(part: Measured) -> int:
    """Bytes of what is kept of rows, counted once where several questions share it."""
    columns = {id(values): values for terms in part.terms.values() for values in terms.columns().values()}
    return sum(values.nbytes for values in columns.values())


@dataclass(slots=True)
class Store:
    """Columns of all questions in files, to which every chunk appends; `kinds` are the terms without rows."""

    folder: Path
    place: list[Ints] = field(default_factory=list)
    size: list[Ints] = field(default_factory=list)
    clusters: list[Clusters] = field(default_factory=list)
    kinds: dict[Cell, Terms] = field(default_factory=dict)
    counts: Any = None
    n_rows: int = 0

    def add(self, part: Measured) -> None:
        if not part.terms:
            return
        self.place.append(part.place)
        self.size.append(part.size)
        self.counts = part.counts if self.counts is None else self.counts + part.counts
        self.n_rows += part.n_rows
        self.clusters.append(next(iter(part.terms.values())).clusters)
        try:
            for number, (cell, terms) in enumerate(part.terms.items()):
                for name, values in terms.columns().items():
                    for path, column in zip(self._paths(number, name, values), _columns(values), strict=True):
                        with path.open("ab") as file:
                            np.ascontiguousarray(column).tofile(file)
                kind = terms.from_columns({name: values[:0] for name, values in terms.columns().items()}, NO_CLUSTERS)
                self.kinds[cell] = self.kinds[cell].merge([kind]) if cell in self.kinds else kind
        except OSError as error:
            raise InputError(
                f"{self.folder}: cannot be written ({error.strerror}); what is measured is kept there until the end. "
                "Make room, or name another place with TMPDIR."
            ) from None

    def measured(self) -> Measured:
        place, size = np.concatenate(self.place), np.concatenate(self.size)
        order = None if (np.diff(place) >= 0).all() else np.argsort(place, kind="stable")
        clusters = Clusters.join(self.clusters)
        if order is not None:
            place, size, clusters = place[order], size[order], clusters.take(order)
        terms = StoredTerms(self, order, clusters)
        return Measured(place, size, terms, self.counts, self.n_rows, kept=False)

    def read(self, cell: Cell, order: Ints | None, clusters: Clusters) -> Terms:
        number, kind = list(self.kinds).index(cell), self.kinds[cell]
        columns = {}
        for name, empty in kind.columns().items():
            paths = self._paths(number, name, empty)
            values = np.empty((len(paths), len(clusters.of_row)), empty.dtype)
            for column, path in zip(values, paths, strict=True):
                read = np.fromfile(path, empty.dtype)
                column[:] = read if order is None else read[order]
            columns[name] = values.T.reshape(-1, *empty.shape[1:])
        return kind.from_columns(columns, clusters)

    def _paths(self, number: int, name: str, values: npt.NDArray[Any]) -> list[Path]:
        """The file of each column of values."""
        return [self.folder / f"{number}.{name}{place}" for place in range(len(_columns(values)))]


@record(eq=False)
class StoredTerms(Mapping[Cell, Terms]):
    """The terms of each question, read when they are asked for."""

    store: Store
    order: Ints | None
    clusters: Clusters

    def __getitem__(self, cell: Cell) -> Terms:
        if cell not in self.store.kinds:
            raise KeyError(cell)
        return self.store.read(cell, self.order, self.clusters)

    def __contains__(self, cell: object) -> bool:
        return cell in self.store.kinds

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.store.kinds)

    def __len__(self) -> int:
        return len(self.store.kinds)
