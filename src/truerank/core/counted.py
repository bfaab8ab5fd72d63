"""What lists say together: how often each item is recommended, and how that would be without each of the units.

Coverage and inequality are functions of the counts of items over all lists, not ratios of sums: more users cover more.
What is estimated is therefore the value that as many users drawn alike would have. That a value of n users is around
its own mean is known from the values without each user, the jackknife: the sum of squares of what each user adds is on
average at least the variance (Efron and Stein 1981), so that intervals hold at least as often as they say. Where no
user adds anything alone, users of a kind that was not drawn are all that could move coverage (the rule of three).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, places, sums_by
from truerank.core.clusters import Clusters, Once
from truerank.core.record import record
from truerank.core.terms import Smooth, Terms, ratio

# --------------------------------------------------------------------------------------------------------------- forms


class CountForm(Protocol):
    """A function of how often each item is listed; rows are sets of items."""

    def value(self, count: Ints) -> float:
        """NaN where it is undefined."""
        ...

    def without(self, listed: Listed) -> Floats:
        """The value without the items of each row, none of which has an item twice."""
        ...

    def reach(self, listed: Listed) -> float:
        """How far a row unlike all of these, or one more of a rare kind, moves the value; 0 where that is not known."""
        ...

    def shares(self, listed: Listed) -> tuple[Floats, Floats]:
        """Parts of each row, given the counts of all: Σ of the first over Σ of the second is the value."""
        ...


@record(eq=False)
class Listed:
    """How often each item is listed by all, and the items that each of n rows lists: a row and an item for each."""

    count: Ints
    row: Ints
    item: Ints
    n_rows: int

    def per_row(self, of: Bools | None = None) -> Ints:
        """How many items each row lists, or how many of some."""
        return np.bincount(self.row if of is None else self.row[of], minlength=self.n_rows)

    def sums(self, values: npt.NDArray[Any]) -> Floats:
        """Sums over the items of each row."""
        return sums_by(self.row, values, n=self.n_rows)


@record(eq=False)
class Covered:
    """#{items that are listed} / n_items; of `among` alone, where that is given.

    >>> form, count = Covered(4.0), np.array([2, 1, 0])
    >>> form.value(count), form.without(Listed(count, np.array([0, 0, 1]), np.array([0, 1, 0]), 2)).tolist()
    (0.5, [0.25, 0.5])
    """

    n_items: float
    among: Bools | None = None

    def value(self, count: Ints) -> float:
        return int(np.count_nonzero(self._counts(count))) / self.n_items if self.n_items else math.nan

    def without(self, listed: Listed) -> Floats:
        counts = self._counts(listed.count)
        return (np.count_nonzero(counts) - listed.per_row(counts[listed.item] == 1)) / self.n_items

    def reach(self, listed: Listed) -> float:
        """A list adds at most what no list holds; and takes away, if it is one of two, what is in these two alone."""
        counts = self._counts(listed.count)
        longest, twice = (int(listed.per_row(of).max(initial=0)) for of in (None, counts[listed.item] == 2))
        return max(1.0, twice, min(longest, self.n_items - np.count_nonzero(counts))) / self.n_items

    def shares(self, listed: Listed) -> tuple[Floats, Floats]:
        counted = self._counts(listed.count)[listed.item]
        part = np.divide(1.0, counted, out=np.zeros(len(counted)), where=counted > 0)
        return listed.sums(part), np.full(listed.n_rows, self.n_items / max(listed.n_rows, 1))

    def _counts(self, count: Ints) -> Ints:
        return count if self.among is None else np.where(self.among, count, 0)


@record
class Inequality:
    """Gini's coefficient of the counts: Σ_{i<j} |c_i - c_j| / (n Σ c), 0 if all of n items are listed equally often.

    >>> form, count = Inequality(4.0), np.array([2, 1, 0])  # and an item that nobody knows by name
    >>> form.value(count), form.without(Listed(count, np.array([0, 0, 1]), np.array([0, 1, 0]), 2)).tolist()
    (0.5833333333333334, [0.75, 0.5])
    """

    n_items: float

    def value(self, count: Ints) -> float:
        total = int(count.sum())
        return self._apart(count) / (self.n_items * total) if total else math.nan

    def _apart(self, count: Ints) -> int:
        """Σ_{i<j} |c_i - c_j| = Σ_j (2j - n - 1) c_(j), in whole numbers."""
        ordered = np.sort(count)
        n = int(self.n_items)
        place = np.arange(n - len(ordered) + 1, n + 1)  # after those that are not known by name
        return int(((2 * place - n - 1) * ordered).sum())

    def _fewer(self, count: Ints) -> Ints:
        """How many items are listed less often than each."""
        ordered = np.sort(count)
        return np.searchsorted(ordered, count, side="left") + np.where(count > 0, int(self.n_items) - len(count), 0)

    def without(self, listed: Listed) -> Floats:
        # an item that is listed once less comes nearer to those listed less often, and away from all others;
        # two items of one row stay as far apart as they were
        count, item = listed.count, listed.item
        equal = equal_pairs(count[item], listed.row, listed.n_rows)
        change = listed.sums(int(self.n_items) - 1.0 - 2.0 * self._fewer(count)[item]) - 2.0 * equal
        total = count.sum() - listed.per_row()
        gini = np.full(listed.n_rows, math.nan)
        np.divide(self._apart(count) + change, self.n_items * total, out=gini, where=total > 0)
        return gini

    def reach(self, listed: Listed) -> float:
        return 0.0

    def shares(self, listed: Listed) -> tuple[Floats, Floats]:
        count, n = listed.count, int(self.n_items)
        upto = np.searchsorted(np.sort(count), count, side="right") + n - len(count)
        place = (self._fewer(count) + upto - n) / n  # the middle of those listed as often
        return listed.sums(place[listed.item]), listed.per_row().astype(np.float64)


def equal_pairs(values: npt.NDArray[Any], row: Ints, n_rows: int) -> Floats:
    """How many pairs of equal values each row has.

    >>> equal_pairs(np.array([3, 1, 3, 3]), np.array([0, 0, 0, 1]), 2).tolist()
    [1.0, 0.0]
    """
    if not len(values):
        return np.zeros(n_rows)
    order = np.lexsort((values, row))
    row_of, value = row[order], values[order]
    first = np.flatnonzero(np.append(True, (np.diff(row_of) != 0) | (np.diff(value) != 0)))
    size = np.diff(np.append(first, len(value))).astype(np.float64)
    return sums_by(row_of[first], size * (size - 1) / 2, n=n_rows)


# --------------------------------------------------------------------------------------------------------------- terms


@dataclass(frozen=True, eq=False)
class CountedItems(Terms):
    """Terms of a function of item counts: row u lists the items `listed[u]`, -1 where there are no more.

    `n_known` items have a name, and so a position. With V_(u) the value without cluster u, its influence is
    (mean V - V_(u)) (n - 1) / n. Redrawn users are often the same, and show nothing new; so under weights the value
    moves by its influences, Σ (w - 1) L.

    >>> both = CountedItems(Covered(4.0), np.array([[0, 1], [0, -1]]), np.ones(2, bool), 3, Clusters.numbered(2))
    >>> both.value(), both.influence().tolist()
    (0.5, [0.0625, -0.0625])
    """

    blanks: ClassVar[Mapping[str, Any]] = {"listed": -1, "defined": False}

    form: CountForm
    listed: Ints
    defined: Bools
    n_known: int
    clusters: Clusters

    @cached_property
    def _rows(self) -> Listed:
        """The row and the item of each place of a list."""
        row, place = np.nonzero(self.listed >= 0)
        item = self.listed[row, place]
        return Listed(np.bincount(item, minlength=self.n_known), row, item, len(self.listed))

    @property
    def _of_clusters(self) -> Listed:
        """The same of clusters, some of which may list an item several times."""
        return replace(self._rows, row=self.clusters.of_row[self._rows.row], n_rows=len(self.clusters))

    def value(self) -> float:
        return self.form.value(self._rows.count) if self.defined.any() else math.nan

    def influence(self) -> Floats:
        return self._influence

    @cached_property
    def _influence(self) -> Floats:
        there = self.clusters.has(self.defined)
        n = np.count_nonzero(there)
        if n < 2:
            return np.full(len(there), math.nan if n == 0 else 0.0)
        without = self._without()
        centre = math.fsum(without[there]) / n
        return np.where(there, (centre - without) * ((n - 1) / n), 0.0)

    def _without(self) -> Floats:
        """The value without each cluster."""
        listed = self._of_clusters
        cell = np.sort(listed.row * self.n_known + listed.item)
        twice = np.unique(cell[1:][cell[1:] == cell[:-1]] // max(self.n_known, 1))
        alone = self.form.without(listed)
        for cluster in twice.tolist():  # several units that list the same item
            own = np.bincount(listed.item[listed.row == cluster], minlength=self.n_known)
            alone[cluster] = self.form.value(listed.count - own)
        return alone

    def reach(self) -> float:
        """How far a user unlike all of these could move the value."""
        return float(self.form.reach(self._of_clusters))

    def leverage(self) -> Floats:
        there = self.clusters.has(self.defined)
        return there.astype(np.float64) / max(1, int(np.count_nonzero(there)))

    def n_informative(self, other: CountedItems | None = None) -> int:
        """Clusters with lists; of two, those whose lists hold other items."""
        if other is None:
            return self.n_independent()
        mine, theirs = (part.row * self.n_known + part.item for part in (self._of_clusters, other._of_clusters))
        apart = np.setxor1d(mine, theirs) // max(self.n_known, 1)
        return len(np.unique(apart))

    @cached_property
    def whole(self) -> Smooth:
        """What each row has of the value, given the counts of all rows: a ratio of sums, for tables of units."""
        rows, place = np.flatnonzero(self.defined), np.cumsum(self.defined) - 1
        above, below = np.zeros((2, len(self.defined)))
        above[rows], below[rows] = self.form.shares(replace(self._rows, row=place[self._rows.row], n_rows=len(rows)))
        return ratio(above, below, defined=self.defined, clusters=self.clusters, exact=True)

    def unit_values(self) -> Floats:
        """A unit alone has none."""
        return np.full(len(self.defined), math.nan)

    def reduce(self, group: Ints, clusters: Clusters, once: Once | None = None) -> CountedItems:
        defined = (once or Once()).reduced(self.defined, group, len(clusters.of_row))
        listed = side_by_side(group[self._rows.row], self._rows.item, n=len(defined))
        return replace(self, listed=listed, defined=defined, clusters=clusters)


def side_by_side(row: Ints, item: Ints, *, n: int, width: int = 0) -> Ints:
    """The items of n rows, [rows x the most that a row has, or the width], -1 where there are no more.

    >>> side_by_side(np.array([1, 0, 1]), np.array([5, 6, 7]), n=2).tolist()
    [[6, -1], [5, 7]]
    """
    place = places(row, (np.arange(len(row)),)) if len(row) else row
    listed = np.full((n, max(width, int(place.max(initial=-1)) + 1)), -1)
    listed[row, place] = item
    return listed
