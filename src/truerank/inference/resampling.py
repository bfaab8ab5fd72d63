"""The one resampler: every cluster counts a Poisson(1) number of times in every replicate, by its id alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.chance import cell_uniforms
from truerank.core.ids import Keys
from truerank.core.terms import Terms
from truerank.core.threads import one_blas_thread

MOST_REPLICATES = 1_000_000
WEIGHTS_AT_ONCE = 2**24
_POISSON = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(20)])


def weights_of(key: Keys, replicates: Keys, *, seed: int, purpose: str = "bootstrap") -> Floats:
    """How often each cluster counts in each replicate, [replicates x clusters].

    >>> drawn = weights_of(np.arange(2000, dtype=np.uint64), np.arange(5, dtype=np.uint64), seed=1)
    >>> drawn.shape, bool(abs(drawn.mean() - 1) < 0.05), bool(abs(drawn.var() - 1) < 0.1)
    ((5, 2000), True, True)
    """
    chance = cell_uniforms(seed, purpose, key[None, :], replicates[:, None])
    return np.searchsorted(_POISSON, chance, side="right").astype(np.float64)


def replicates_of(terms: Sequence[Terms], *, n: int, seed: int) -> list[Floats]:
    """The value of each of the terms, which have the same clusters, in each of n replicates."""
    if not terms:
        return []
    key = terms[0].clusters.key
    step = max(1, min(100, WEIGHTS_AT_ONCE // max(len(key), 1)))
    parts: list[list[Floats]] = [[] for _ in terms]
    for start in range(0, n, step):
        numbers = np.arange(start, min(start + step, n), dtype=np.uint64)
        weights = weights_of(key, numbers, seed=seed)
        with one_blas_thread():
            for part, each in zip(parts, terms, strict=True):
                part.append(each.values(weights))
    return [np.concatenate(part) for part in parts]
