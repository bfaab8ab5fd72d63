"""What units contribute to an estimate: a few sums for each, and a function of their totals.

Terms add: those of two sets of units, joined, are the terms of both. What is joined is brought into the order of the
population before it is summed, so that neither the order of units in files nor the chunks in which they were measured
change a bit of a value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, sums_by, total, two_sum
from truerank.core.clusters import Clusters, Once
from truerank.core.forms import Form, KnownTotal, Ratio
from truerank.core.ids import Keys
from truerank.core.messages import Message
from truerank.core.record import record
from truerank.core.rows import SampledRows, Weighting

Totals = tuple[Floats, Floats]  # without each group of clusters [groups x columns], and what rounding left of them


class Terms(ABC):
    """What units contribute; all that intervals and comparisons know.

    A new kind is a frozen dataclass whose fields of rows, `clusters` among them, are those that `blanks` names. Two
    terms of one evaluation have the same clusters, so that their influences can be subtracted.
    """

    __slots__ = ()

    blanks: ClassVar[Mapping[str, Any]]  # arrays with an entry per row [rows x ...], and what rows without a value have

    if TYPE_CHECKING:  # fields, or properties

        @property
        def defined(self) -> Bools:
            """Which rows count."""

        @property
        def clusters(self) -> Clusters: ...
        @property
        def whole(self) -> Smooth:
            """Sums of each row, with all rows together."""

    @abstractmethod
    def value(self) -> float:
        """The estimate; the same bits whatever the order of rows."""

    @abstractmethod
    def influence(self) -> Floats:
        """What each cluster adds to the error of the value, to first order; or each group of clusters left out."""

    def values(self, weights: Floats) -> Floats:
        """The value under each row of weights of clusters, [replicates x clusters] -> [replicates]."""
        return np.asarray(self.value() + (weights - 1.0) @ self.influence(), dtype=np.float64)

    def unit_values(self) -> Floats:
        """The value of each row alone."""
        return self.whole.unit_values()

    def values_without(self) -> Floats:
        """The value without each group of clusters, where a model was fitted without them; else nothing."""
        return np.zeros(0)

    def leverage(self) -> Floats:
        """The part of what is divided by that each of the parts of the influence has."""
        return self.whole.leverage()

    @property
    def strata(self) -> Ints | None:
        """The source of fixed size of each of the parts of the influence, where there are several."""
        return self.clusters.stratum

    def has_rows(self) -> bool:
        """Whether single labelled rows are kept."""
        return False

    def n_independent(self) -> int:
        """How many independent parts the influence has that count."""
        return int(np.count_nonzero(self.clusters.has(self.defined)))

    @abstractmethod
    def n_informative(self, other: Self | None = None) -> int:
        """How many clusters tell something about the value, or about its difference to that of other terms."""

    def cluster_sums(self) -> Floats | None:
        """What tells two values apart, [columns x clusters]; None where that is not known by columns."""
        return None

    # ---- what a model adds

    def reach(self) -> float:
        """How far a cluster unlike all of these could move the value; 0 where that is not known."""
        return 0.0

    def correction(self) -> float | None:
        """How much of the value a model adds: the interval allows for bias in proportion to it."""
        return None

    def reasons(self, model: str) -> tuple[Message, ...]:
        """What takes verdicts about a ranker away."""
        return ()

    def cautions(self) -> tuple[Message, ...]:
        """What to report beside the value."""
        return ()

    # ---- rows; with `once`, what terms share that go the same way is made once, and shared again

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """What is known of each row, by name."""
        return {name: getattr(self, name) for name in self.blanks}

    def from_columns(self, columns: Mapping[str, npt.NDArray[Any]], clusters: Clusters) -> Self:
        """The same question of other rows."""
        return replace(self, clusters=clusters, **{name: columns[name] for name in self.columns()})  # type: ignore[type-var]

    def merge(self, others: Sequence[Self]) -> Self:
        """These terms with what is known of all rows together, of theirs and of others."""
        return self

    def restrict(self, kept: Bools) -> Self:
        """The same with the other rows undefined."""
        if (kept | ~self.defined).all():
            return self
        used = self.defined & kept
        columns = {
            name: np.where(used.reshape(-1, *(1 for _ in values.shape[1:])), values, self.blanks[name])
            for name, values in self.columns().items()
        }
        return self.from_columns(columns, self.clusters)

    def join(self, others: Sequence[Self], once: Once | None = None) -> Self:
        """The terms of these units and of others."""
        once = once or Once()
        parts = [self, *others]
        columns = [part.columns() for part in parts]
        joined = {name: once.joined([of_part[name] for of_part in columns]) for name in columns[0]}
        return self.merge(others).from_columns(joined, once.joined_clusters([part.clusters for part in parts]))

    def take(self, order: Ints, clusters: Clusters, once: Once | None = None) -> Self:
        """These rows in this order: all of them, or those of a group of units, with the clusters that they have."""
        once = once or Once()
        return self.from_columns({name: once.taken(values, order) for name, values in self.columns().items()}, clusters)

    def reduce(self, group: Ints, clusters: Clusters, once: Once | None = None) -> Self:
        """Rows of one group, which are of one cluster and defined alike, as one row."""
        once, n = once or Once(), len(clusters.of_row)
        columns = self.columns()
        return self.from_columns(
            {
                name: _sums_by(group, values, n) if values.dtype == np.float64 else once.reduced(values, group, n)
                for name, values in columns.items()
            },
            clusters,
        )


@record(eq=False)
class Smooth(Terms):
    """A smooth function (`form`) of the totals of a few sums per row: `sums` [rows x columns], 0 where not `defined`.

    `exact` says that every label of these units is known; `rows` are the single rows behind the sums, where an
    interval needs them; `weighting` tells how unequal the weights of rows are.

    >>> ratio(np.array([1.0, 2.0]), np.array([2.0, 4.0])).value()
    0.5
    """

    blanks: ClassVar[Mapping[str, Any]] = {"sums": 0.0, "defined": False}

    form: Form
    sums: Floats
    defined: Bools
    clusters: Clusters
    exact: bool = False
    rows: SampledRows | None = None
    weighting: Weighting | None = None
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)  # what was summed once

    @property
    def whole(self) -> Smooth:
        return self

    def unit_values(self) -> Floats:
        return np.where(self.defined, self.form.alone(self.sums), math.nan)

    def totals(self) -> Floats:
        if "totals" not in self.known:
            self.known["totals"] = np.array([total(np.ascontiguousarray(column)) for column in self.sums.T])
        totals: Floats = self.known["totals"]
        return totals

    def value(self) -> float:
        return float(self.form.values(self.totals()[None, :])[0])

    def values(self, weights: Floats) -> Floats:
        by_cluster = np.stack([self.clusters.sums(column) for column in self.sums.T], axis=1)
        return self.form.values(weights @ by_cluster)

    def influence(self) -> Floats:
        """Of each cluster; sums to zero."""
        totals = self.totals()
        if math.isnan(float(self.form.values(totals[None, :])[0])):
            return np.full(len(self.clusters), math.nan)
        return self.clusters.sums(self.form.influence(self.sums, totals))

    def leverage(self) -> Floats:
        """The part of the denominator that each cluster has."""
        return self.clusters.sums(self.form.leverage(self.sums, self.totals()))

    def has_rows(self) -> bool:
        return self.rows is not None

    def cluster_sums(self) -> Floats:
        telling = self.sums[:, :2] if self.form.shares_out else self.sums
        return np.stack([self.clusters.sums(column) for column in telling.T])

    def sizes(self) -> Floats:
        """How much of what is divided by each cluster has; where a form shares out, of what is relevant."""
        return self.clusters.sums(self.sums[:, 1]) if self.form.shares_out else self.leverage()

    def n_informative(self, other: Terms | None = None) -> int:
        """Clusters whose sums differ from the other's; alone those with a denominator, for a mean with a numerator."""
        theirs = None if other is None else other.cluster_sums()
        if theirs is not None:
            return int(np.count_nonzero((self.cluster_sums() != theirs).any(axis=0)))
        unit_denominator = self.sums[:, 1] == 1
        mean = bool(unit_denominator.all() or (unit_denominator | ~self.defined).all())
        return int(np.count_nonzero(self.clusters.has(self.sums[:, 0 if mean else 1] != 0)))

    @property
    def n_defined(self) -> int:
        return int(np.count_nonzero(self.defined))

    def merge(self, others: Sequence[Smooth]) -> Smooth:
        parts = [self, *others]
        return replace(
            self,
            exact=all(part.exact for part in parts),
            rows=SampledRows.concatenate([part.rows for part in parts], [len(part.defined) for part in parts]),
            weighting=Weighting.merge([part.weighting for part in parts]),
        )

    def take(self, order: Ints, clusters: Clusters, once: Once | None = None) -> Smooth:
        # what weights are like was counted over all rows
        weighting = self.weighting if self.weighting is None or len(order) == len(self.sums) else Weighting.unknown()
        rows = None if self.rows is None else self.rows.take(order)
        return replace(Terms.take(self, order, clusters, once), rows=rows, weighting=weighting)

    def reduce(self, group: Ints, clusters: Clusters, once: Once | None = None) -> Smooth:
        return replace(Terms.reduce(self, group, clusters, once), rows=None)


def _sums_by(group: Ints, values: Floats, n: int) -> Floats:
    """Sums over the rows of each group, [rows x columns] -> [groups x columns]."""
    columns = values.reshape(len(values), -1).T
    return np.stack([sums_by(group, column, n=n) for column in columns], axis=1).reshape(n, *values.shape[1:])


@record(eq=False)
class Refitted(Terms):
    """Terms whose weights come from a model that was fitted to the same units: the delete-a-group jackknife.

    `without` has, for each pattern, the totals [groups x columns] of the sums over its rows that are not in group g,
    under the model that was fitted without group g; and what rounding left of them. `pattern` is the pattern of each
    row: rows of one pattern are defined for the same models, so that a difference over the units that two models
    share can be made from these totals. With V_(g) the value without group g, the influence of a group is
    (mean V - V_(g)) (G - 1) / G: the usual formula for the variance from influences then gives the jackknife's.
    """

    whole: Smooth
    pattern: Keys
    without: Mapping[int, Totals]

    @property
    def defined(self) -> Bools:
        return self.whole.defined

    @property
    def clusters(self) -> Clusters:
        return self.whole.clusters

    @property
    def strata(self) -> None:
        return None

    def value(self) -> float:
        return self.whole.value()

    def values(self, weights: Floats) -> Floats:
        return self.whole.values(weights)

    def values_without(self) -> Floats:
        """The value without each group, under the model that was fitted without it."""
        parts = [
            part
            for code, both in self.without.items()
            if (self.defined & (self.pattern == code)).any()
            for part in both
        ]
        if not parts:
            return np.full(0, math.nan)
        stacked = np.stack(parts)  # [parts x groups x columns]
        totals = np.array([[math.fsum(column) for column in group.T] for group in stacked.transpose(1, 0, 2)])
        return self.whole.form.values(totals)

    def influence(self) -> Floats:
        values = self.values_without()
        n = self.n_independent()
        if not n or not len(values):
            return np.zeros(0)  # a single cluster has no spread, whatever was refitted
        centre = math.nan if np.isnan(values).any() else math.fsum(values) / n
        return np.asarray((centre - values) * ((n - 1) / n), dtype=np.float64)

    def leverage(self) -> Floats:
        n = self.n_independent()
        return np.full(n, 1.0 / max(n, 1))

    def n_informative(self, other: Terms | None = None) -> int:
        return self.whole.n_informative(None if other is None else other.whole)

    def n_independent(self) -> int:
        groups = next((len(both[0]) for both in self.without.values()), 0)
        return 0 if self.whole.n_independent() < 2 else groups

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        return self.whole.columns() | {"pattern": self.pattern}

    def from_columns(self, columns: Mapping[str, npt.NDArray[Any]], clusters: Clusters) -> Refitted:
        return replace(self, whole=self.whole.from_columns(columns, clusters), pattern=columns["pattern"])

    def merge(self, others: Sequence[Refitted]) -> Refitted:
        without: dict[int, Totals] = {}
        for part in (self, *others):
            for code, (totals, rest) in part.without.items():
                before, lost_before = without.get(code, (np.zeros_like(totals), np.zeros_like(rest)))
                added, lost = two_sum(before, totals)
                without[code] = added, lost_before + rest + lost
        return replace(self, whole=self.whole.merge([part.whole for part in others]), without=without)

    def restrict(self, kept: Bools) -> Refitted:
        return replace(self, whole=self.whole.restrict(kept))

    # clips that take nothing away share their sums, and what follows from these

    def join(self, others: Sequence[Refitted], once: Once | None = None) -> Refitted:
        once = once or Once()
        wholes = [part.whole for part in (self, *others)]
        whole = once.of(wholes, lambda: self.whole.join(wholes[1:], once))
        return replace(self.merge(others), whole=whole, pattern=once.joined([part.pattern for part in (self, *others)]))

    def take(self, order: Ints, clusters: Clusters, once: Once | None = None) -> Refitted:
        once = once or Once()
        # totals without each group of clusters were made over all rows: of some rows alone no interval is known
        without = self.without if len(order) == len(self.pattern) else {}
        whole = once.of([self.whole], lambda: self.whole.take(order, clusters, once))
        return Refitted(whole, once.taken(self.pattern, order), without)

    def reduce(self, group: Ints, clusters: Clusters, once: Once | None = None) -> Refitted:
        once = once or Once()
        whole = once.of([self.whole], lambda: self.whole.reduce(group, clusters, once))
        return replace(self, whole=whole, pattern=once.reduced(self.pattern, group, len(clusters.of_row)))


def ratio(num: Floats, den: Floats, **options: Any) -> Smooth:
    """Terms of Σ num / Σ den; `options` as of `smooth`."""
    return smooth(Ratio(), (num, den), **options)


def known_total(num: Floats, den: Floats, total: Floats, **options: Any) -> Smooth:
    """Terms of Σ num / Σ den times the mean of `total` over the defined rows; `options` as of `smooth`."""
    return smooth(KnownTotal(), (num, den, total, np.ones(len(num))), **options)


def smooth(
    form: Form,
    columns: Sequence[Floats],
    defined: Bools | None = None,
    clusters: Clusters | None = None,
    *,
    exact: bool = False,
    rows: SampledRows | None = None,
    weighting: Weighting | None = None,
) -> Smooth:
    """Terms of a function of the totals of these columns of rows; without clusters each row is its own."""
    sums = np.stack(columns).T  # each column in one piece: totals run over columns
    used = np.ones(len(sums), dtype=bool) if defined is None else defined
    sums = sums if used.all() else np.where(used[:, None], sums, 0.0)
    row_clusters = Clusters.numbered(len(sums)) if clusters is None else clusters
    return Smooth(form, sums, used, row_clusters, exact=exact, rows=rows, weighting=weighting)
