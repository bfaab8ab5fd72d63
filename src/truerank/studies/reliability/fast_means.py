"""The compiled count of pairs of models in every resample."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True, boundscheck=False)
def count_pairs(mean: Any, rounding: Any, out: Any) -> None:
    """Fill out[resample, sparsity, candidates] with (tied pairs, agreement with the same log's Full, with the same
    candidates at sparsity 0, with Full at sparsity 0) of mean[resample, sparsity, candidates, model].
    """
    n_resamples, n_sparsities, n_candidates, n_models = mean.shape
    n_pairs = n_models * (n_models - 1) // 2
    sign = np.empty((n_sparsities, n_candidates, n_pairs), np.int8)
    for r in range(n_resamples):
        limit = rounding[r]
        for s in range(n_sparsities):
            for c in range(n_candidates):
                at, ties, full, first, true = 0, 0, 0, 0, 0
                for a in range(n_models):
                    for b in range(a + 1, n_models):
                        difference = mean[r, s, c, a] - mean[r, s, c, b]
                        here = (difference > limit) - (difference < -limit)
                        sign[s, c, at] = here
                        ties += here == 0
                        full += here * sign[s, 0, at]
                        first += here * sign[0, c, at]
                        true += here * sign[0, 0, at]
                        at += 1
                out[r, s, c, 0] = ties
                out[r, s, c, 1] = full
                out[r, s, c, 2] = first
                out[r, s, c, 3] = true
