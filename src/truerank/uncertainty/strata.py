"""Intervals where units come from several sources of fixed size, such as several logging policies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints, exact_sum, sums_by
from truerank.core.terms import Terms
from truerank.uncertainty.intervals import Spread, common, normal


@dataclass(frozen=True, slots=True, eq=False)
class Stratified:
    """For the population, with the number of units of each stratum fixed: variance within strata.

    Var = Σ_h G_h / (G_h - 1) Σ_{g in h} (z_g - z̄_h)², z_g the influence of a cluster; Student's t with Σ (G_h - 1)
    degrees of freedom. A cluster belongs to one stratum. How loggers differ in their means is no chance.

    >>> terms = Terms.ratio(np.array([0.0, 2.0, 10.0, 12.0]), np.ones(4))
    >>> Stratified(np.array([0, 0, 1, 1])).around(terms, level=0.95).stderr
    0.7071067811865476
    """

    stratum: Ints  # of each unit

    name: ClassVar[str] = "population"
    needs_rows: ClassVar[bool] = False

    def around(self, terms: Terms, *, level: float) -> Spread:
        return self._spread(terms.value(), terms.influence(), terms, level=level)

    def between(self, a: Terms, b: Terms, *, level: float) -> Spread:
        a, b = common(a, b)
        return self._spread(a.value() - b.value(), a.influence() - b.influence(), a, level=level)

    def _spread(self, value: float, influence: Floats, terms: Terms, *, level: float) -> Spread:
        n = int(terms.cluster.max(initial=-1)) + 1
        effect = sums_by(terms.cluster, influence, n=n)
        stratum = np.zeros(n, dtype=np.int64)
        stratum[terms.cluster] = self.stratum
        used = np.zeros(n, dtype=bool)
        used[terms.cluster[terms.defined]] = True
        variance, df = 0.0, 0
        for each in np.unique(stratum[used]):
            own = effect[used & (stratum == each)]
            if len(own) < 2:
                return Spread(value, math.nan, math.nan, math.nan, math.nan)
            deviation = own - exact_sum(own) / len(own)
            variance += exact_sum(deviation**2) * len(own) / (len(own) - 1)
            df += len(own) - 1
        return normal(value, math.sqrt(variance), df=df, level=level)


def nested(cluster: Ints, stratum: Ints) -> bool:
    """Whether every cluster lies in one stratum.

    >>> nested(np.array([0, 0, 1]), np.array([1, 1, 0])), nested(np.array([0, 0]), np.array([0, 1]))
    (True, False)
    """
    of = np.zeros(int(cluster.max(initial=-1)) + 1, dtype=np.int64)
    of[cluster] = stratum
    return bool((of[cluster] == stratum).all())
