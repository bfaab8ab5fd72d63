"""Pooled AUC: how well one score separates positive from negative rows, all users together."""

from __future__ import annotations

import math

import numpy as np

from truerank.core.arrays import Floats


def pooled_auc(score: Floats, label: Floats) -> float:
    """The chance that a positive row scores above a negative one, ties counting half; NaN if a class is missing.

    (Σ mid-ranks of positives - n⁺(n⁺ + 1)/2) / (n⁺ n⁻), the Mann-Whitney statistic with mid-ranks. Rows of all users
    are pooled, so it also rewards telling active users from others; for early stopping, not to compare recommenders.

    >>> pooled_auc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    0.875
    """
    positive = label == 1
    n_positive = int(np.count_nonzero(positive))
    n_negative = len(label) - n_positive
    if n_positive == 0 or n_negative == 0:
        return math.nan
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    # twice the mid-rank of a group of equal scores is a whole number, so the sum is exact
    twice = 2 * last - count + 1
    total = int(twice[place][positive].sum())
    return (total - n_positive * (n_positive + 1)) / (2 * n_positive * n_negative)
