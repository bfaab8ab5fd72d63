"""Scroll depths drawn from each family of position models."""

from __future__ import annotations

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.exposure.positions.fits_families import FAMILIES


def draw_depths(family: str, u: Floats, rng: np.random.Generator) -> Floats:
    """One depth for each parameter on the family's scale, by inverting the probability to see rank d."""
    value = FAMILIES[family].value(u)
    uniform = 1.0 - rng.random(len(u))
    if family == "exp":
        return 1.0 + np.floor(np.log(uniform) / np.log(value))
    if family == "yule":  # a geometric depth whose parameter is exp(-W), W exponential with rate ρ
        stop = np.exp(-rng.exponential(size=len(u)) / value)
        with np.errstate(divide="ignore"):
            return np.where(stop >= 1, 1.0, 1.0 + np.floor(np.log(uniform) / np.log1p(-np.minimum(stop, 1 - 1e-16))))
    return 1.0 + np.floor((np.exp(np.minimum(1.0 / uniform, 600.0)) - np.e) / value)


def cut(depth: Floats, end: int) -> tuple[Floats, Bools]:
    """Depths in feeds that end at a rank, and whether the feed ended first."""
    return np.minimum(depth, end), depth >= end
