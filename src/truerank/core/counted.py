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
from dataclasses import field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

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

    def without(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> Floats:
        """The value without the items of each row, none of which has an item twice."""
        ...

    def reach(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> float:
        """How far a row unlike all of these, or one more of a rare kind, moves the value; 0 where that is not known."""
        ...

    def shares(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> tuple[Floats, Floats]:
        """Parts of each row, given the counts of all: Σ of the first over Σ of the second is the value."""
        ...


@record(eq=False)
class Covered:
    """#{items that are listed} / n_items; of `among` alone, where that is given.

    >>> form, count = Covered(4.0), np.array([2, 1, 0])
    >>> form.value(count), form.without(count, np.array([0, 0, 1]), np.array([0, 1, 0]), n_rows=2).tolist()
    (0.5, [0.25, 0.5])
    """

    n_items: float
    among: Bools | None = None

    def value(self, count: Ints) -> float:
        return int(np.count_nonzero(self._counts(count))) / self.n_items if self.n_items else math.nan

    def without(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> Floats:
        covered = np.count_nonzero(self._counts(count))
        alone = self._counts(count)[item] == 1
        return (covered - np.bincount(row[alone], minlength=n_rows)) / self.n_items

    def reach(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> float:
        """A list adds at most what no list holds; and takes away, if it is one of two, what is in these two alone."""
        counts = self._counts(count)
        longest = int(np.bincount(row, minlength=n_rows).max(initial=0))
        twice = int(np.bincount(row[counts[item] == 2], minlength=n_rows).max(initial=0))
        return max(1.0, twice, min(longest, self.n_items - np.count_nonzero(counts))) / self.n_items

    def shares(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> tuple[Floats, Floats]:
        counted = self._counts(count)[item]
        part = np.divide(1.0, counted, out=np.zeros(len(item)), where=counted > 0)
        return sums_by(row, part, n=n_rows), np.full(n_rows, self.n_items / max(n_rows, 1))

    def _counts(self, count: Ints) -> Ints:
        return count if self.among is None else np.where(self.among, count, 0)


@record
class Inequality:
    """Gini's coefficient of the counts: Σ_{i<j} |c_i - c_j| / (n Σ c), 0 if all of n items are listed equally often.

    >>> form, count = Inequality(4.0), np.array([2, 1, 0])  # and an item that nobody knows by name
    >>> form.value(count), form.without(count, np.array([0, 0, 1]), np.array([0, 1, 0]), n_rows=2).tolist()
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

    def without(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> Floats:
        # an item that is listed once less comes nearer to those listed less often, and away from all others;
        # two items of one row stay as far apart as they were
        n, fewer = int(self.n_items), self._fewer(count)
        change = sums_by(row, n - 1.0 - 2.0 * fewer[item], n=n_rows) - 2.0 * _equal_pairs(count[item], row, n_rows)
        total = count.sum() - np.bincount(row, minlength=n_rows)
        apart = self._apart(count) + change
        gini: Floats = np.divide(apart, self.n_items * total, out=np.full(n_rows, math.nan), where=total > 0)
        return gini

    def reach(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> float:
        return 0.0

    def shares(self, count: Ints, row: Ints, item: Ints, *, n_rows: int) -> tuple[Floats, Floats]:
        ordered, n = np.sort(count), int(self.n_items)
        fewer, hidden = self._fewer(count), n - len(count)
        upto = np.searchsorted(ordered, count, side="right") + hidden
        place = (fewer + upto - n) / n  # the middle of those listed as often
        return sums_by(row, place[item], n=n_rows), np.bincount(row, minlength=n_rows).astype(np.float64)


def _equal_pairs(values: Ints, row: Ints, n_rows: int) -> Floats:
    """How many pairs of equal values each row has.

    >>> _equal_pairs(np.array([3, 1, 3, 3]), np.array([0, 0, 0, 1]), 2).tolist()
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


@record(eq=False)
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
    known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # what was counted once

    def _cells(self) -> tuple[Ints, Ints]:
        """The row and the item of each place of a list."""
        row, place = np.nonzero(self.listed >= 0)
        return row, self.listed[row, place]

    def count(self) -> Ints:
        """How many lists each item is in."""
        if "count" not in self.known:
            self.known["count"] = np.bincount(self._cells()[1], minlength=self.n_known)
        result: Ints = self.known["count"]
        return result

    def value(self) -> float:
        return self.form.value(self.count()) if self.defined.any() else math.nan

    def influence(self) -> Floats:
        if "influence" not in self.known:
            self.known["influence"] = self._influence()
        result: Floats = self.known["influence"]
        return result

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
        (row, item), n, count = self._cells(), len(self.clusters), self.count()
        cluster_of = self.clusters.of_row[row]
        cell = np.sort(cluster_of * self.n_known + item)
        twice = np.unique(cell[1:][cell[1:] == cell[:-1]] // max(self.n_known, 1))
        alone = self.form.without(count, cluster_of, item, n_rows=n)
        for cluster in twice.tolist():  # several units that list the same item
            listed = np.bincount(item[cluster_of == cluster], minlength=self.n_known)
            alone[cluster] = self.form.value(count - listed)
        return alone

    def reach(self) -> float:
        """How far a user unlike all of these could move the value."""
        row, item = self._cells()
        return float(self.form.reach(self.count(), self.clusters.of_row[row], item, n_rows=len(self.clusters)))

    def leverage(self) -> Floats:
        there = self.clusters.has(self.defined)
        return there.astype(np.float64) / max(1, int(np.count_nonzero(there)))

    def n_informative(self, other: CountedItems | None = None) -> int:
        """Clusters with lists; of two, those whose lists hold other items."""
        if other is None:
            return self.n_independent()
        mine, theirs = (
            part.clusters.of_row[row] * self.n_known + item for part in (self, other) for row, item in [part._cells()]
        )
        apart = np.setxor1d(mine, theirs) // max(self.n_known, 1)
        return len(np.unique(apart))

    @property
    def whole(self) -> Smooth:
        """What each row has of the value, given the counts of all rows: a ratio of sums, for tables of units."""
        if "whole" not in self.known:
            rows, (row, item) = np.flatnonzero(self.defined), self._cells()
            place = np.cumsum(self.defined) - 1
            above, below = np.zeros(len(self.defined)), np.zeros(len(self.defined))
            above[rows], below[rows] = self.form.shares(self.count(), place[row], item, n_rows=len(rows))
            self.known["whole"] = ratio(above, below, defined=self.defined, clusters=self.clusters, exact=True)
        result: Smooth = self.known["whole"]
        return result

    def unit_values(self) -> Floats:
        """A unit alone has none."""
        return np.full(len(self.defined), math.nan)

    def reduce(self, group: Ints, clusters: Clusters, once: Once | None = None) -> CountedItems:
        defined = (once or Once()).reduced(self.defined, group, len(clusters.of_row))
        row, item = self._cells()
        return replace(self, listed=side_by_side(group[row], item, n=len(defined)), defined=defined, clusters=clusters)


def side_by_side(row: Ints, item: Ints, *, n: int, width: int = 0) -> Ints:
    """The items of n rows, [rows x the most that a row has, or the width], -1 where there are no more.

    >>> side_by_side(np.array([1, 0, 1]), np.array([5, 6, 7]), n=2).tolist()
    [[6, -1], [5, 7]]
    """
    place = places(row, (np.arange(len(row)),)) if len(row) else row
    listed = np.full((n, max(width, int(place.max(initial=-1)) + 1)), -1)
    listed[row, place] = item
    return listed
