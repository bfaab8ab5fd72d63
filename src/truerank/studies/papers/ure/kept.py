"""The mean of the URE paper leaves out users without a judged positive: whom it keeps, and what follows from that."""

from __future__ import annotations

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.estimators.judged.weighted import kept_chance


def chance_to_be_kept(positives: Floats | Ints, size: Floats | Ints, *, judged: int) -> Floats:
    """π = 1 - C(N - N⁺, N-bar) / C(N, N-bar), N and N⁺ of each user being known.

    >>> chance_to_be_kept(np.array([1, 0, 3]), np.array([4, 4, 4]), judged=2).round(6).tolist()
    [0.5, 0.0, 1.0]
    """
    n = size.astype(np.float64)
    return kept_chance(positives, n_candidates=n, n_judged=np.full(len(n), float(judged)))


def published_limit(recall: Floats, chance: Floats) -> float:
    """Σ π Recall / Σ π: what the mean of m / n over kept users converges to; users without a positive have π = 0.

    >>> published_limit(np.array([1.0, 0.0]), np.array([1 / 3, 1.0]))
    0.25
    """
    return float(chance @ recall / chance.sum())


def weighted_by_known(share: Floats, chance: Floats) -> float:
    """Σ (m / n) / π over kept users, over the number of users with π > 0: exactly unbiased for their mean recall.

    `share` is m / n, 0 of users who were not kept. Needs N⁺ of every user: for studies.

    >>> weighted_by_known(np.array([1.0, 0.0]), np.array([0.5, 1.0]))
    1.0
    """
    can = chance > 0
    return float(np.sum(share[can] / chance[can]) / np.count_nonzero(can))
