"""What units contribute to an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, exact_sum
from truerank.core.errors import InputError
from truerank.core.rows import Reweighted, SampledRows, Weighting


@dataclass(frozen=True, slots=True)
class Terms:
    """What each unit contributes: the value is Σ num / Σ den, times the mean of `total` where that is known.

    Units that are not `defined` contribute nothing. Units of one `cluster` are dependent. Intervals and merging know
    only `value`, `values`, `influence` and `concatenate`; an estimator that is no ratio offers the same four.
    """

    num: Floats
    den: Floats
    defined: Bools
    cluster: Ints
    total: Floats | None = None
    rows: SampledRows | None = None
    exact: bool = False  # every label of these units is known
    reweighted: Reweighted | None = None  # rows whose weights were fitted to these units
    weighting: Weighting | None = None  # how unequal the weights of rows are

    def value(self) -> float:
        """The estimate; the same bits whatever the order of the units. Undefined where Σ den is not above 0.

        >>> Terms.ratio(np.array([1.0, 2.0]), np.array([2.0, 4.0])).value()
        0.5
        """
        den = exact_sum(self.den)
        return math.nan if den <= 0 else exact_sum(self.num) / den * self.mean_total()

    def values(self, weights: Floats) -> Floats:
        """The estimate under each row of unit weights, [replicates x units] -> [replicates]."""
        if self.reweighted is None:
            num, den = weights @ self.num, weights @ self.den
        else:
            num, den = self.reweighted.sums(weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            result = num / den
            if self.total is not None:
                result *= (weights @ self.total) / (weights @ self.defined.astype(np.float64))
        return np.asarray(np.where(den <= 0, math.nan, result), dtype=np.float64)

    def influence(self) -> Floats:
        """What each unit adds to the error of the value, to first order; sums to zero.

        For a ratio R = Σ num / Σ den it is (num - R den) / Σ den; a known mean total adds its own part.
        """
        den = exact_sum(self.den)
        if den <= 0:
            return np.full(len(self.num), math.nan)
        ratio, mean = exact_sum(self.num) / den, self.mean_total()
        effect = (self.num - ratio * self.den) * (mean / den)
        if self.total is not None:
            effect = effect + ratio * np.where(self.defined, self.total - mean, 0.0) / self.n_defined
        return np.asarray(effect, dtype=np.float64)

    def mean_total(self) -> float:
        return 1.0 if self.total is None else exact_sum(self.total) / self.n_defined

    @property
    def n_defined(self) -> int:
        return int(np.count_nonzero(self.defined))

    def restrict(self, kept: Bools) -> Terms:
        """The same with the other units undefined."""
        return replace(
            self,
            num=np.where(kept, self.num, 0.0),
            den=np.where(kept, self.den, 0.0),
            total=None if self.total is None else np.where(kept, self.total, 0.0),
            defined=self.defined & kept,
            reweighted=None if self.reweighted is None else self.reweighted.restrict(kept),
        )

    @classmethod
    def ratio(cls, num: Floats, den: Floats, *, defined: Bools | None = None) -> Terms:
        """Terms of units that are each their own cluster."""
        known = np.ones(len(num), dtype=bool) if defined is None else defined
        return cls(num, den, known, np.arange(len(num)))

    @staticmethod
    def concatenate(parts: Sequence[Terms]) -> Terms:
        """The terms of all parts' units; parts share no cluster and come from one estimator."""
        shift = np.cumsum([0, *(int(part.cluster.max(initial=-1)) + 1 for part in parts)])
        totals = [part.total for part in parts if part.total is not None]
        if totals and len(totals) < len(parts):
            raise InputError("terms with and without known totals cannot be merged: they are of different estimators.")
        if any(part.reweighted is not None for part in parts):
            raise InputError("terms with fitted weights cannot be merged: the fit is over all units at once.")
        return Terms(
            num=np.concatenate([part.num for part in parts]),
            den=np.concatenate([part.den for part in parts]),
            defined=np.concatenate([part.defined for part in parts]),
            cluster=np.concatenate([part.cluster + s for part, s in zip(parts, shift, strict=False)]),
            total=np.concatenate(totals) if totals else None,
            rows=SampledRows.concatenate([part.rows for part in parts], [len(part.num) for part in parts]),
            exact=all(part.exact for part in parts),
            weighting=Weighting.merge([part.weighting for part in parts]),
        )
