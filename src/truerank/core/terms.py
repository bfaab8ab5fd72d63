"""What units contribute to an estimate: a few sums for each, and a function of their totals.

Almost everything reported is a ratio of two sums over units; the rest are other smooth functions of a few sums. Terms
add: those of two sets of units, joined, are the terms of both. Totals are exact sums, so that neither the order of
units nor the chunks in which they were measured change a bit of a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, compiled_for, exact_sum, sums_by
from truerank.core.clusters import Clusters
from truerank.core.once import Once
from truerank.core.record import record
from truerank.core.rows import SampledRows, Weighting

STEP = 1e-30

# --------------------------------------------------------------------------------------------------------------- forms


@record
class HitMove:
    """How far one more hit among the labelled rows of lists would move a value, and whether predictions changed it."""

    size: float
    assisted: bool


class Form:
    """A smooth function of the totals of a few sums per unit; `columns` names the sums.

    A new form writes `columns` and `function`; its gradient is found by complex numbers.
    """

    __slots__ = ()

    columns: ClassVar[tuple[str, ...]]
    quotient: ClassVar[bool] = False  # it is the first sum over the second, perhaps times a known mean
    # it needs many units: a unit alone has the first sum over the second, and these tell whether units tell two models
    # apart, as shares of strata differ for everybody, and what is found of what is relevant for few
    shares_out: ClassVar[bool] = False
    denominators: ClassVar[tuple[str, ...]] = ()  # the sums that it divides by; the second where none is named

    def function(self, totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The value of each row of totals, [sets x columns] -> [sets]; NaN where it is undefined. Complex ones too."""
        raise NotImplementedError

    def values(self, totals: Floats) -> Floats:
        """The value of each row of totals, as `function`."""
        return np.asarray(self.function(totals).real, dtype=np.float64)

    def alone(self, sums: Floats) -> Floats:
        """The value of each row of sums alone; NaN where it has none."""
        return quotients(sums) if self.shares_out else self.values(sums)

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        """What each row of sums adds to the error of the value at these totals, to first order; they sum to zero."""
        effect = np.zeros(len(sums))  # column by column: the same bits for a row whatever the others
        for column, slope in zip(sums.T, slopes(self.function, totals).tolist(), strict=True):
            effect += slope * column
        return effect

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        """The part of what is divided by that each row of sums has; the largest of several."""
        places = [self.columns.index(name) for name in self.denominators or self.columns[1:2]]
        shares = [sums[:, place] / totals[place] for place in places if totals[place] > 0]
        return np.max(shares, axis=0) if shares else np.zeros(len(sums))

    def one_hit_more(self, totals: Floats) -> HitMove | None:
        """Where residuals do not show how rare hits are, as predictions fit the hits that there are too well."""
        return None


def slopes(function: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], totals: Floats) -> Floats:
    """The gradient of a function of totals [sets x columns] by a complex step (Squire and Trapp 1998): no differences.

    >>> slopes(lambda sums: sums[:, 0] / sums[:, 1], np.array([1.0, 2.0])).tolist()
    [0.5, -0.25]
    """
    stepped = np.tile(totals.astype(np.complex128), (len(totals), 1))
    stepped[np.diag_indices(len(totals))] += 1j * STEP
    return np.asarray(function(stepped).imag / STEP)


@record
class Ratio(Form):
    """Σ numerator / Σ denominator; undefined where Σ denominator is not above 0.

    The influence of a unit is (num - R den) / Σ den.

    >>> Ratio().values(np.array([[1.0, 2.0], [1.0, 0.0]])).tolist()
    [0.5, nan]
    """

    columns: ClassVar[tuple[str, ...]] = ("numerator", "denominator")
    quotient: ClassVar[bool] = True

    def values(self, totals: Floats) -> Floats:
        return quotients(totals)

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        return _line(sums[:, 0], sums[:, 1], -(totals[0] / totals[1]), 1.0 / totals[1])

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        compiled = compiled_for(len(sums))
        shares: Floats = sums[:, 1] / totals[1] if compiled is None else compiled.shares_of(sums[:, 1], totals[1])
        return shares


@record
class KnownTotal(Form):
    """Σ numerator / Σ denominator times the mean of a known total: Hájek's estimate, self-normalised weights.

    The total T of each unit is known and varies between units: its part of the influence is R (T - mean T) / units.

    >>> KnownTotal().values(np.array([[1.0, 2.0, 6.0, 3.0]])).tolist()
    [1.0]
    """

    columns: ClassVar[tuple[str, ...]] = ("numerator", "denominator", "total", "units")
    quotient: ClassVar[bool] = True
    leverage = Ratio.leverage

    def values(self, totals: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(quotients(totals) * (totals[:, 2] / totals[:, 3]), dtype=np.float64)

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        ratio, mean = totals[0] / totals[1], totals[2] / totals[3]
        effect = _line(sums[:, 0], sums[:, 1], -ratio, mean / totals[1])
        effect += (sums[:, 2] - mean * sums[:, 3]) * (ratio / totals[3])
        return effect


def _line(x: Floats, y: Floats, slope: float, scale: float) -> Floats:
    """(x + slope y) scale."""
    compiled = compiled_for(len(x))
    if compiled is not None:
        line: Floats = compiled.line(x, y, slope, scale)
        return line
    line = y * slope
    line += x
    line *= scale
    return line


def quotients(totals: Floats) -> Floats:
    """The first column over the second, NaN where that is not above 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(totals[:, 1] > 0, totals[:, 0] / totals[:, 1], math.nan), dtype=np.float64)


# --------------------------------------------------------------------------------------------------------------- Terms


class Terms(Protocol):
    """What units contribute; all that intervals and comparisons know.

    `defined` tells which rows count, `whole` their sums with all rows together, `unit_values` the value of each alone.
    `influence` is by cluster, or by group of clusters where a fit was made without each group in turn; two terms of one
    evaluation have the same clusters, so that their influences can be subtracted.
    """

    @property
    def defined(self) -> Bools: ...
    @property
    def clusters(self) -> Clusters: ...
    @property
    def whole(self) -> Smooth: ...
    def unit_values(self) -> Floats: ...
    def value(self) -> float: ...
    def values(self, weights: Floats) -> Floats:
        """The value under each row of weights of clusters, [replicates x clusters] -> [replicates]."""
        ...

    def influence(self) -> Floats: ...
    def leverage(self) -> Floats:
        """The part of what is divided by that each of the parts of the influence has."""
        ...

    def n_independent(self) -> int:
        """How many independent parts the influence has that count."""
        ...

    def n_informative(self, other: Terms | None = None) -> int:
        """How many clusters tell something about the value, or about its difference to that of other terms."""
        ...

    def restrict(self, kept: Bools) -> Terms:
        """The same with the other rows undefined."""
        ...

    # with `once`, what terms share that go the same way is made once, and shared again
    def reduce(self, group: Ints, clusters: Clusters, once: Once | None = None) -> Terms:
        """Rows of one group, which are of one cluster and defined alike, as one row."""
        ...

    def join(self, others: Sequence[Terms], once: Once | None = None) -> Terms:
        """The terms of these units and of others."""
        ...

    def take(self, order: Ints, clusters: Clusters, once: Once | None = None) -> Terms:
        """These rows in this order: all of them, or those of a group of units, with the clusters that they have."""
        ...


@record(eq=False)
class Smooth:
    """A smooth function (`form`) of the totals of a few sums per row: `sums` [rows x columns], 0 where not `defined`.

    `exact` says that every label of these units is known; `rows` are the single rows behind the sums, where an
    interval needs them; `weighting` tells how unequal the weights of rows are.

    >>> ratio(np.array([1.0, 2.0]), np.array([2.0, 4.0])).value()
    0.5
    """

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
            self.known["totals"] = np.array([exact_sum(np.ascontiguousarray(column)) for column in self.sums.T])
        totals: Floats = self.known["totals"]
        return totals

    def value(self) -> float:
        """The estimate; the same bits whatever the order of rows."""
        return float(self.form.values(self.totals()[None, :])[0])

    def values(self, weights: Floats) -> Floats:
        by_cluster = np.stack([self.clusters.sums(column) for column in self.sums.T], axis=1)
        return self.form.values(weights @ by_cluster)

    def influence(self) -> Floats:
        """What each cluster adds to the error of the value, to first order; sums to zero."""
        totals = self.totals()
        if math.isnan(float(self.form.values(totals[None, :])[0])):
            return np.full(len(self.clusters), math.nan)
        return self.clusters.sums(self.form.influence(self.sums, totals))

    def leverage(self) -> Floats:
        """The part of the denominator that each cluster has."""
        return self.clusters.sums(self.form.leverage(self.sums, self.totals()))

    @property
    def telling(self) -> Floats:
        """The sums in which units differ that tell two values apart, [rows x columns]."""
        return self.sums[:, :2] if self.form.shares_out else self.sums

    def sizes(self) -> Floats:
        """How much of what is divided by each cluster has; where a form shares out, of what is relevant."""
        return self.clusters.sums(self.telling[:, 1]) if self.form.shares_out else self.leverage()

    def n_independent(self) -> int:
        return int(np.count_nonzero(self.clusters.has(self.defined)))

    def n_informative(self, other: Terms | None = None) -> int:
        """Clusters whose sums differ from the other's; alone those with a denominator, for a mean with a numerator."""
        if isinstance(other, Smooth):
            differ = np.zeros(len(self.clusters), dtype=bool)
            for mine, theirs in zip(self.telling.T, other.telling.T, strict=True):
                differ |= self.clusters.sums(mine) != self.clusters.sums(theirs)
            return int(np.count_nonzero(differ))
        unit_denominator = self.sums[:, 1] == 1
        mean = bool(unit_denominator.all() or (unit_denominator | ~self.defined).all())
        return int(np.count_nonzero(self.clusters.has(self.sums[:, 0 if mean else 1] != 0)))

    @property
    def n_defined(self) -> int:
        return int(np.count_nonzero(self.defined))

    def column(self, name: str) -> Floats | None:
        """One of the sums by name, None where the form has none of that name."""
        return self.sums[:, self.form.columns.index(name)] if name in self.form.columns else None

    def contributions(self) -> tuple[Floats, Floats, Floats | None]:
        """Numerators, denominators and known totals of rows: the value is Σ / Σ, times the mean of the totals.

        Of a form that is no such quotient the numerator is value + rows x influence, over 1: what a row adds, to first
        order.
        """
        if self.form.quotient:
            return self.sums[:, 0], self.sums[:, 1], self.column("total")
        value = self.value()
        if math.isnan(value):
            return np.zeros(len(self.sums)), np.zeros(len(self.sums)), None
        effect = self.form.influence(self.sums, self.totals())
        return np.where(self.defined, value + self.n_defined * effect, 0.0), self.defined.astype(np.float64), None

    def restrict(self, kept: Bools) -> Smooth:
        if (kept | ~self.defined).all():
            return self
        defined = self.defined & kept
        return replace(self, sums=np.where(defined[:, None], self.sums, 0.0), defined=defined)

    def reduce(self, group: Ints, clusters: Clusters, once: Once | None = None) -> Smooth:
        n = len(clusters.of_row)
        defined = (once or Once()).reduced(self.defined, group, n)
        sums = np.stack([sums_by(group, column, n=n) for column in self.sums.T], axis=1)
        return replace(self, sums=sums, defined=defined, clusters=clusters, rows=None)

    def join(self, others: Sequence[Terms], once: Once | None = None) -> Smooth:
        once = once or Once()
        parts = [self, *(part for part in others if isinstance(part, Smooth))]
        return replace(
            self,
            sums=np.concatenate([part.sums for part in parts]),
            defined=once.joined([part.defined for part in parts]),
            clusters=joined_clusters(parts, once),
            exact=all(part.exact for part in parts),
            rows=SampledRows.concatenate([part.rows for part in parts], [len(part.defined) for part in parts]),
            weighting=Weighting.merge([part.weighting for part in parts]),
        )

    def take(self, order: Ints, clusters: Clusters, once: Once | None = None) -> Smooth:
        rows = None if self.rows is None else self.rows.take(order)
        # what weights are like was counted over all rows
        weighting = self.weighting if self.weighting is None or len(order) == len(self.sums) else Weighting.unknown()
        # along the axis that lies together in memory, ten times as fast as an index
        sums = self.sums.take(order, axis=0) if self.sums.flags.c_contiguous else self.sums.T.take(order, axis=1).T
        defined = (once or Once()).taken(self.defined, order)
        return replace(self, sums=sums, defined=defined, clusters=clusters, rows=rows, weighting=weighting)


def joined_clusters(parts: Sequence[Terms], once: Once) -> Clusters:
    """The clusters of all parts, which share none."""
    clusters = [part.clusters for part in parts]
    return once.of(clusters, lambda: Clusters.join(clusters))


def ratio(num: Floats, den: Floats, **options: Any) -> Smooth:
    """Terms of Σ num / Σ den; `options` as of `smooth`."""
    return smooth(Ratio(), (num, den), **options)


def ratios(sums: Floats, *, defined: Bools | None = None, clusters: Clusters | None = None) -> list[Smooth]:
    """Terms of several ratios with one denominator, [numerators and the denominator x rows], without copies.

    >>> [terms.value() for terms in ratios(np.array([[1.0, 2.0], [3.0, 0.0], [2.0, 4.0]]))]
    [0.5, 0.5]
    """
    used = np.ones(sums.shape[1], dtype=bool) if defined is None else defined
    sums = sums if used.all() else np.where(used, sums, 0.0)
    row_clusters = Clusters.numbered(sums.shape[1]) if clusters is None else clusters
    last = len(sums) - 1
    return [Smooth(Ratio(), sums[number :: last - number].T, used, row_clusters) for number in range(last)]


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
