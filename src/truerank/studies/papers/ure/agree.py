"""How two series of models agree: Pearson's r and Kendall's tau-b with their p, over draws of the sample."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats
from truerank.uncertainty.agreement import correlation


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two coefficients with their two-sided p; NaN where a series does not vary."""

    pearson: float
    pearson_p: float
    kendall: float
    kendall_p: float


def agreement(x: Floats, y: Floats) -> Agreement:
    """How two series agree.

    >>> found = agreement(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3]))
    >>> round(found.pearson, 3), round(found.kendall, 3)
    (0.8, 0.667)
    """
    from scipy.stats import kendalltau

    linear = correlation(x, y)
    if math.isnan(linear.r):
        return Agreement(math.nan, math.nan, math.nan, math.nan)
    order = kendalltau(x, y)
    return Agreement(linear.r, linear.p, float(order.statistic), float(order.pvalue))


@dataclass(frozen=True, slots=True)
class AgreementCurve:
    """Over cutoffs K: the mean coefficient of all draws, the range of nine tenths of them, the largest p of any."""

    mean: Floats
    low: Floats
    high: Floats
    p: Floats

    @property
    def best(self) -> int:
        """The place of K_max: where the mean is highest, the first of equals."""
        return int(np.nanargmax(np.where(np.isnan(self.mean), -np.inf, self.mean)))


def curve(estimate: Floats, truth: Floats, *, kendall: bool) -> AgreementCurve:
    """Agreement over models of an estimate [models x draws] with truth at each cutoff [models x K].

    An estimate of its own for each cutoff is [models x draws x K].
    """
    n_draws, n_cutoffs = estimate.shape[1], truth.shape[1]
    value, p = np.empty((n_draws, n_cutoffs)), np.empty((n_draws, n_cutoffs))
    for draw in range(n_draws):
        for at in range(n_cutoffs):
            own = estimate[:, draw, at] if estimate.ndim == 3 else estimate[:, draw]
            found = agreement(own, truth[:, at])
            value[draw, at] = found.kendall if kendall else found.pearson
            p[draw, at] = found.kendall_p if kendall else found.pearson_p
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cutoff at which every draw is constant has no number
        low, high = np.nanquantile(value, [0.05, 0.95], axis=0)
        return AgreementCurve(np.nanmean(value, axis=0), low, high, np.nanmax(p, axis=0))
