"""Terms whose weights come from a model that was fitted to the same units, and again without groups of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, two_sum
from truerank.core.clusters import Clusters
from truerank.core.ids import Keys
from truerank.core.once import Once
from truerank.core.record import record
from truerank.core.terms import Smooth, Terms


@record(eq=False)
class Refitted:
    """Terms whose weights come from a model that was fitted to the same units: the delete-a-group jackknife.

    `without` has, for each pattern, the totals [groups x columns] of the sums over its rows that are not in group g,
    under the model that was fitted without group g; and what rounding left of them. `pattern` is the pattern of each
    row: rows of one pattern are defined for the same models, so that a difference over the units that two models
    share can be made from these totals. With V_(g) the value without group g, the influence of a group is
    (mean V - V_(g)) (G - 1) / G: the usual formula for the variance from influences then gives the jackknife's.
    """

    whole: Smooth
    pattern: Keys
    without: Mapping[int, tuple[Floats, Floats]]

    @property
    def defined(self) -> Bools:
        return self.whole.defined

    @property
    def clusters(self) -> Clusters:
        return self.whole.clusters

    def unit_values(self) -> Floats:
        return self.whole.unit_values()

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
        return self.whole.n_informative(other.whole if isinstance(other, Refitted) else other)

    def n_independent(self) -> int:
        groups = next((len(both[0]) for both in self.without.values()), 0)
        return 0 if self.whole.n_independent() < 2 else groups

    def restrict(self, kept: Bools) -> Refitted:
        return replace(self, whole=self.whole.restrict(kept))

    def reduce(self, group: Ints, clusters: Clusters, once: Once | None = None) -> Refitted:
        once = once or Once()
        pattern = once.reduced(self.pattern, group, len(clusters.of_row))
        whole = once.of([self.whole], lambda: self.whole.reduce(group, clusters, once))
        return replace(self, whole=whole, pattern=pattern)

    def join(self, others: Sequence[Terms], once: Once | None = None) -> Refitted:
        once = once or Once()
        parts = [self, *(part for part in others if isinstance(part, Refitted))]
        without: dict[int, tuple[Floats, Floats]] = {}
        for part in parts:
            for code, (totals, rest) in part.without.items():
                before, lost_before = without.get(code, (np.zeros_like(totals), np.zeros_like(rest)))
                added, lost = two_sum(before, totals)
                without[code] = added, lost_before + rest + lost
        wholes = [part.whole for part in parts]
        whole = once.of(wholes, lambda: self.whole.join(wholes[1:], once))
        return Refitted(whole, once.joined([part.pattern for part in parts]), without)

    def take(self, order: Ints, clusters: Clusters, once: Once | None = None) -> Refitted:
        once = once or Once()
        # totals without each group of clusters were made over all rows: of some rows alone no interval is known
        without = self.without if len(order) == len(self.pattern) else {}
        whole = once.of([self.whole], lambda: self.whole.take(order, clusters, once))
        return Refitted(whole, once.taken(self.pattern, order), without)
