"""One pass over the rows of a log for all clips, compiled by numba.

Rows ascend by cluster. Nothing is stored per row or per cluster: a first pass gives sums, a second one the spread of
the clusters' influences around them. The plain form is `terms` of the estimators; both agree to rounding.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True, boundscheck=False)
def weight_bins(target: Any, inverse: Any, clips: Any, sums: Any) -> None:
    """Add what every clip needs: rows go to the bin of 1/ε0 among the clips.

    Row 0 of `sums` counts weights above 0, rows 1 and 2 have Σ ε and Σ ε², rows 3 and 4 Σ ε/ε0 and Σ (ε/ε0)².
    """
    n_clips = clips.shape[0]
    for i in range(target.shape[0]):
        e, v = target[i], inverse[i]
        low, high = 0, n_clips
        while low < high:
            middle = (low + high) // 2
            if clips[middle] < v:
                low = middle + 1
            else:
                high = middle
        w = e * v
        if e > 0:
            sums[0, low] += 1.0
        sums[1, low] += e
        sums[2, low] += e * e
        sums[3, low] += w
        sums[4, low] += w * w


@nb.njit(cache=True, nogil=True, boundscheck=False)
def rewards_pass(cluster: Any, gain: Any, inverse: Any, clips: Any, den: Any, ratio: Any, out: Any) -> float:
    """Σ over clusters of N and (N - R D)² for each clip, N = Σ gain · min(m, 1/ε0); gives Σ D² of the clusters met.

    `gain` is reward times target exposure; `den` the known denominator of each cluster.
    """
    n_clips = clips.shape[0]
    y = np.zeros(n_clips)
    squares = 0.0
    n = cluster.shape[0]
    i = 0
    while i < n:
        g = cluster[i]
        y[:] = 0.0
        while i < n and cluster[i] == g:
            e, v = gain[i], inverse[i]
            for k in range(n_clips):
                y[k] += e * min(v, clips[k])
            i += 1
        d = den[g]
        squares += d * d
        for k in range(n_clips):
            out[0, k] += y[k]
            z = y[k] - ratio[k] * d
            out[1, k] += z * z
    return squares


@nb.njit(cache=True, nogil=True, boundscheck=False)
def ratio_pass(
    cluster: Any, reward: Any, target: Any, inverse: Any, clips: Any, known: Any, slope: Any, level: Any, out: Any
) -> None:
    """Σ over clusters of N and D of each target, and of the squared influence, for each clip.

    N = Σ reward · w and D = Σ w of each target (rows of `target`, columns of `known`). The influence of a cluster is
    Σ_t slope[t, 0] N_t + slope[t, 1] D_t + level[t] · known_t, which holds for ratios of two sums times a known mean.
    """
    n_targets, n_clips = target.shape[0], clips.shape[0]
    num, den = np.zeros((n_targets, n_clips)), np.zeros((n_targets, n_clips))
    n = cluster.shape[0]
    i = 0
    while i < n:
        g = cluster[i]
        num[:] = 0.0
        den[:] = 0.0
        while i < n and cluster[i] == g:
            c, v = reward[i], inverse[i]
            for t in range(n_targets):
                e = target[t, i]
                if c != 0:
                    for k in range(n_clips):
                        w = e * min(v, clips[k])
                        den[t, k] += w
                        num[t, k] += c * w
                else:
                    for k in range(n_clips):
                        den[t, k] += e * min(v, clips[k])
            i += 1
        for k in range(n_clips):
            z = 0.0
            for t in range(n_targets):
                z += slope[t, 0, k] * num[t, k] + slope[t, 1, k] * den[t, k] + level[t, k] * known[t, g]
                out[2 * t, k] += num[t, k]
                out[2 * t + 1, k] += den[t, k]
            out[2 * n_targets, k] += z * z
