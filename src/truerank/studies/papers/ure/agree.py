"""How an estimate of models agrees with their true recall at each K, over draws of the sample."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats
from truerank.uncertainty.agreement import correlation, rank_correlation


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
        return int(np.where(np.isnan(self.mean), -np.inf, self.mean).argmax())


def agreement(x: Floats, y: Floats, *, kendall: bool) -> tuple[float, float]:
    """Pearson's r or Kendall's τ with its two-sided p; NaN where a series does not vary.

    >>> x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3])
    >>> [round(agreement(x, y, kendall=kendall)[0], 3) for kendall in (False, True)]
    [0.8, 0.667]
    """
    if kendall:
        order = rank_correlation(x, y)
        return order.tau, order.p
    linear = correlation(x, y)
    return linear.r, linear.p


def curve(estimate: Floats, truth: Floats, *, kendall: bool) -> AgreementCurve:
    """Agreement over models of an estimate [models x draws] with truth at each cutoff [models x K].

    An estimate of its own for each cutoff is [models x draws x K].
    """
    n_draws, n_cutoffs = estimate.shape[1], truth.shape[1]
    value, p = np.empty((n_draws, n_cutoffs)), np.empty((n_draws, n_cutoffs))
    for draw in range(n_draws):
        for at in range(n_cutoffs):
            own = estimate[:, draw, at] if estimate.ndim == 3 else estimate[:, draw]
            value[draw, at], p[draw, at] = agreement(own, truth[:, at], kendall=kendall)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cutoff at which every draw is constant has no number
        low, high = np.nanquantile(value, [0.05, 0.95], axis=0)
        return AgreementCurve(np.nanmean(value, axis=0), low, high, np.nanmax(p, axis=0))
