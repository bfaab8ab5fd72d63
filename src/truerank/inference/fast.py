"""Sums over many clusters in one pass, compiled by numba; the numpy form in `moments` agrees."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.compiled import compiled

BLOCK = 1024  # numbers whose powers are added by themselves


@compiled(boundscheck=False, fastmath={"reassoc", "contract"}, error_model="numpy")
def moment_sums(effect: Any, leverage: Any) -> Any:
    """Of effects L and leverages h: n, Σ L² / (1 - h), Σ L², L³, L⁴, h², h² / (1 - h) and its square, by blocks."""
    sums = np.zeros(8)
    for start in range(0, effect.shape[0], BLOCK):
        n, variance, squares, cubes, fourths, parts, scaled, scaled_squares = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(start, min(start + BLOCK, effect.shape[0])):
            x, h = effect[i], leverage[i]
            square, part, weight = x * x, h * h, 1.0 / (1.0 - h)
            n += 1.0 if x != 0.0 or h != 0.0 else 0.0
            variance += square * weight
            squares += square
            cubes += square * x
            fourths += square * square
            parts += part
            scaled += part * weight
            scaled_squares += part * weight * (part * weight)
        sums += np.array([n, variance, squares, cubes, fourths, parts, scaled, scaled_squares])
    return sums
