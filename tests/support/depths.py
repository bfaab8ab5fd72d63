"""Scroll depths drawn from each family of position models."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats
from truerank.exposure.positions.depths import FAMILIES, Depths
from truerank.exposure.positions.fits import PositionFit
from truerank.exposure.positions.learner import fit_requests, for_places
from truerank.exposure.positions.position_models import FitRequest, Positions


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


def fitted(
    position: FitRequest | Positions,
    *,
    depth: npt.ArrayLike,
    surface: npt.NDArray[Any] | None = None,
    group: npt.NDArray[Any] | None = None,
) -> tuple[Positions, dict[str, PositionFit]]:
    """Requested models fitted to one depth per session and surface, and the fits by place."""
    surfaces, groups = ([] if values is None else np.unique(values).tolist() for values in (surface, group))
    models = for_places(Positions.everywhere(position), surfaces=surfaces, groups=groups)
    depth = np.asarray(depth)
    rule = models.at(len(depth), surface=surface, group=group)
    places = [place for place, _ in models.rules]
    lists = {places[number]: Depths.from_sessions(depth[rule == number]) for number in np.unique(rule)}
    result = fit_requests(models, lists, clicks=None)
    return result.positions, result.fits
