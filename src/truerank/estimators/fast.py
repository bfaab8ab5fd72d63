"""Sums of weighted rewards over units for all clips at once, compiled by numba; the numpy forms beside them agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.compiled import compiled

BLOCK = 1024  # rows that stay in the nearest cache


@compiled(boundscheck=False)
def add_clipped(unit: Any, gain: Any, limited: Any, clips: Any, out: Any) -> None:
    """Add Σ gain · min(m, limited) of each unit to `out` [clips x units]; units ascend.

    `limited` is what the clip m limits, ε/ε0 or 1/ε0. Rows are added one after the other, whatever the blocks that they
    come in.
    """
    n, n_clips = unit.shape[0], clips.shape[0]
    total = np.zeros(n_clips)
    i = 0
    while i < n:
        u = unit[i]
        for k in range(n_clips):
            total[k] = out[k, u]
        while i < n and unit[i] == u:
            g, v = gain[i], limited[i]
            if g != 0:
                for k in range(n_clips):
                    total[k] += g * min(v, clips[k])
            i += 1
        for k in range(n_clips):
            out[k, u] = total[k]


@compiled(boundscheck=False)
def add_cells(cell: Any, value: Any, high: Any, low: Any, count: Any) -> None:
    """Add values to cells, with what rounding loses in `low` (Knuth's two-sum), and count them."""
    for i in range(cell.shape[0]):
        c, x = cell[i], value[i]
        total = high[c] + x
        seen = total - high[c]
        low[c] += (high[c] - (total - seen)) + (x - seen)
        high[c] = total
        count[c] += 1.0


@compiled(boundscheck=False, fastmath={"reassoc"})
def add_bin(scale: Any, limited: Any, low: float, high: float, out: Any) -> None:
    """Add what the rows between two clips have: without a branch, several rows at a time."""
    positive, scales, scale_squares, weights, weight_squares = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(limited.shape[0]):
        v = limited[i]
        e = scale[i] if (low < v) & (v <= high) else 0.0
        w = e * v
        positive += 1.0 if w > 0 else 0.0
        scales += e
        scale_squares += e * e
        weights += w
        weight_squares += w * w
    out[0] += positive
    out[1] += scales
    out[2] += scale_squares
    out[3] += weights
    out[4] += weight_squares


@compiled(boundscheck=False, fastmath={"reassoc"})
def add_unscaled_bin(limited: Any, low: float, high: float, out: Any) -> None:
    """The same where the scale is 1: three of the five sums are then the number of rows, if no weight is 0."""
    rows, weights, weight_squares = 0.0, 0.0, 0.0
    for i in range(limited.shape[0]):
        inside = (low < limited[i]) & (limited[i] <= high)
        w = limited[i] if inside else 0.0
        rows += 1.0 if inside else 0.0
        weights += w
        weight_squares += w * w
    out[:3] += rows
    out[3] += weights
    out[4] += weight_squares


@compiled(boundscheck=False)
def add_bins(scale: Any, limited: Any, clips: Any, sums: Any) -> None:
    """Add what every clip needs: rows of weight scale · limited go to the bin of what is limited among the clips.

    Row 0 of `sums` counts weights above 0, rows 1 and 2 have Σ and Σ² of the scale, rows 3 and 4 of the weight. Without
    a scale it is 1 everywhere.
    """
    for start in range(0, limited.shape[0], BLOCK):
        stop = min(start + BLOCK, limited.shape[0])
        low = -np.inf
        for k in range(sums.shape[1]):
            high = clips[k] if k < clips.shape[0] else np.inf
            if low < high:
                if scale is None:
                    add_unscaled_bin(limited[start:stop], low, high, sums[:, k])
                else:
                    add_bin(scale[start:stop], limited[start:stop], low, high, sums[:, k])
            low = high
    if scale is None:
        nothing = 0
        for i in range(limited.shape[0]):
            nothing += limited[i] == 0.0
        sums[0, 0] -= nothing  # clips are above 0
