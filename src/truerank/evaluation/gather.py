"""Bring together what was measured of all chunks: in memory up to a budget, beyond it in a temporary file per question.

What is kept of units too many to hold is one row of sums per cluster; `conclude` needs the rows of one question at a
time, and reads them back when it comes to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, two_sum
from truerank.core.clusters import Clusters
from truerank.core.counted import CountedItems
from truerank.core.errors import InputError
from truerank.core.modelled import ModelledTerms
from truerank.core.refits import Refitted
from truerank.core.results import Results
from truerank.core.rows import Weighting
from truerank.core.terms import Smooth, Terms
from truerank.evaluation.conclude import conclude
from truerank.evaluation.measure import ByPlace, Measured, join
from truerank.evaluation.question import Cell, Plan, Tallies, added
from truerank.io.spill import scratch

BUDGET = 2**28  # bytes of sums that are held in memory


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
        if size > (BUDGET if budget is None else budget) and not _has_rows(part):
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


def _has_rows(part: Measured) -> bool:
    """Whether single rows are kept, for an interval that needs all of them at once."""
    summed = (terms for terms in part.terms.values() if not isinstance(terms, CountedItems | ModelledTerms))
    return any(terms.whole.rows is not None for terms in summed)


def _bytes(part: Measured) -> int:
    """Bytes of sums, counted once where several questions share them."""
    shared = {id(terms.whole) if isinstance(terms, Refitted) else id(terms): terms for terms in part.terms.values()}
    return sum(_size(terms) for terms in shared.values())


def _size(terms: Terms) -> int:
    if isinstance(terms, ModelledTerms):
        return sum(column.nbytes for column in terms.columns().values())
    return terms.item.nbytes if isinstance(terms, CountedItems) else terms.whole.sums.nbytes


@dataclass(slots=True)
class Store:
    """Sums of all questions in files, one for each, to which every chunk appends."""

    folder: Path
    place: list[Ints] = field(default_factory=list)
    size: list[Ints] = field(default_factory=list)
    clusters: list[Clusters] = field(default_factory=list)
    kinds: dict[Cell, Terms] = field(default_factory=dict)
    summed: Tallies = field(default_factory=dict)
    placed: list[Tallies] = field(default_factory=list)  # by unit: joined once, at the end
    n_rows: int = 0

    def add(self, part: Measured) -> None:
        if not part.terms:
            return
        self.place.append(part.place)
        self.size.append(part.size)
        by_place = {key: tally for key, tally in part.tallies.items() if isinstance(tally, ByPlace)}
        self.placed.append(by_place)
        self.summed = added([self.summed, {key: tally for key, tally in part.tallies.items() if key not in by_place}])
        self.n_rows += part.n_rows
        self.clusters.append(next(iter(part.terms.values())).clusters)
        try:
            for number, (cell, terms) in enumerate(part.terms.items()):
                for name, values in _arrays(terms).items():
                    _append(self._path(number, name), values)
                self.kinds[cell] = _together(self.kinds.get(cell), terms)
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
        tallies = added([self.summed, *self.placed])
        return Measured(place, size, terms, tallies, self.n_rows, kept=False)

    def read(self, cell: Cell, order: Ints | None, clusters: Clusters) -> Terms:
        number = list(self.kinds).index(cell)
        kind = self.kinds[cell]
        if isinstance(kind, CountedItems):
            length, item = (_read(self._path(number, name), np.int64, None) for name in ("length", "item"))
            start = np.concatenate([[0], np.cumsum(length)])
            flags = _read(self._path(number, "defined"), np.bool_, None)
            listed = replace(kind, start=start, item=item, defined=flags, clusters=clusters)
            return listed if order is None else listed.take(order, clusters)
        if isinstance(kind, ModelledTerms):
            columns = {
                name: _read(self._path(number, name), values.dtype.type, order)
                for name, values in kind.columns().items()
            }
            return kind.of_columns(columns, clusters)
        whole = kind.whole
        sums: Floats = np.empty((len(whole.form.columns), len(clusters.of_row)))
        for values, column in zip(sums, whole.form.columns, strict=True):
            values[:] = _read(self._path(number, column), np.float64, order)
        defined: Bools = _read(self._path(number, "defined"), np.bool_, order)
        smooth = Smooth(whole.form, sums.T, defined, clusters, exact=whole.exact, weighting=whole.weighting)
        if not isinstance(kind, Refitted):
            return smooth
        pattern = _read(self._path(number, "pattern"), np.uint64, order)
        return Refitted(smooth, pattern, kind.without)

    def _path(self, number: int, what: str) -> Path:
        return self.folder / f"{number}.{what}"


@dataclass(frozen=True, slots=True, eq=False)
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


def _arrays(terms: Terms) -> dict[str, np.ndarray]:
    """What there is of terms for each row, or for each item of its list, by name."""
    if isinstance(terms, CountedItems):
        return {"length": np.diff(terms.start), "item": terms.item.astype(np.int64), "defined": terms.defined}
    if isinstance(terms, ModelledTerms):
        return terms.columns()
    smooth = terms.whole
    arrays: dict[str, np.ndarray] = dict(zip(smooth.form.columns, smooth.sums.T, strict=True))
    arrays["defined"] = smooth.defined
    return arrays | ({"pattern": terms.pattern} if isinstance(terms, Refitted) else {})


def _append(path: Path, values: Floats | Bools | np.ndarray) -> None:
    with path.open("ab") as file:
        np.ascontiguousarray(values).tofile(file)


def _read(path: Path, kind: type[Any], order: Ints | None) -> Any:
    """All that was appended, in the order of the population."""
    values = np.fromfile(path, dtype=kind)
    return values if order is None else values[order]


def _together(before: Terms | None, terms: Terms) -> Terms:
    """What of terms is no row: their form, and what adds up over all rows."""
    none = np.zeros(0, dtype=bool)
    no_clusters = Clusters.numbered(0)
    if isinstance(terms, CountedItems):
        empty = np.zeros(0, dtype=np.int64)
        return replace(terms, start=np.zeros(1, dtype=np.int64), item=empty, defined=none, clusters=no_clusters)
    if isinstance(terms, ModelledTerms):
        return terms.take(np.zeros(0, dtype=np.int64), no_clusters)
    smooth = terms.whole
    nothing = np.zeros((0, len(smooth.form.columns)))
    earlier = None if before is None else before.whole
    bare = Smooth(
        smooth.form,
        nothing,
        none,
        no_clusters,
        exact=smooth.exact and (earlier is None or earlier.exact),
        weighting=smooth.weighting if earlier is None else Weighting.merge([earlier.weighting, smooth.weighting]),
    )
    if not isinstance(terms, Refitted):
        return bare
    without = dict(before.without) if isinstance(before, Refitted) else {}
    for code, (totals, rest) in terms.without.items():
        sums_before, lost_before = without.get(code, (np.zeros_like(totals), np.zeros_like(rest)))
        total, lost = two_sum(sums_before, totals)
        without[code] = total, lost_before + rest + lost
    return Refitted(bare, np.zeros(0, dtype=np.uint64), without)
