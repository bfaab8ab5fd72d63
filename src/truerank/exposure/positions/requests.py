"""What `fit:yule` asks for: every model of a log that is still to be fitted, fitted to the sessions it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.errors import InputError
from truerank.exposure.positions.fits import POOLED, Depths, PositionFit, fit_depths
from truerank.exposure.positions.fits_clicks import ClickCells, fit_click_cells, fit_harvest_cells
from truerank.exposure.positions.fits_groups import fit_groups
from truerank.exposure.positions.model import PositionModel
from truerank.exposure.positions.places import FitRequest, Place, Positions

FROM_CLICKS = {"clicks": fit_click_cells, "harvest": fit_harvest_cells}


def fitted(
    position: PositionModel | FitRequest | Positions,
    *,
    depth: npt.ArrayLike,
    censored: npt.ArrayLike | None = None,
    surface: npt.NDArray[Any] | None = None,
    group: npt.NDArray[Any] | None = None,
    per_group: bool = False,
    level: float = 0.95,
) -> tuple[Positions, dict[str, PositionFit]]:
    """The models with every request replaced by its fit, and the fits by place.

    `depth` has one row per session and surface, with its `surface` and user `group`; `per_group` gives each group of a
    requested place its own parameter, with shrinkage.

    >>> models, fits = fitted(FitRequest("exp"), depth=[1, 2, 3])
    >>> str(models), fits["*"].n
    ('exp:0.5', 3)
    """
    models = Positions.everywhere(position)
    depth = np.asarray(depth, dtype=np.float64)
    ended = np.zeros(len(depth), dtype=bool) if censored is None else np.asarray(censored, dtype=bool)
    at = models.at(len(depth), surface=surface, group=group) if models.requests else np.zeros(0)

    def depths_at(number: int, request: FitRequest) -> Depths | None:
        rows = at == number
        names = group[rows] if per_group and group is not None and models.rules[number][0].group is None else None
        if not rows.any():
            return None
        return Depths.of(depth[rows], censored=ended[rows], group=names, cutoff=request.cutoff)

    return fit_requests(models, depths_at, clicks=None, level=level)


def fit_requests(
    models: Positions,
    depths_at: Callable[[int, FitRequest], Depths | None],
    *,
    clicks: ClickCells | None,
    level: float,
) -> tuple[Positions, dict[str, PositionFit]]:
    """Every request replaced by its fit: to the depths at the rule of that number, or to clicks, which hold everywhere.

    Depths of several groups give each group a model of its own.
    """
    rules: list[tuple[Place, PositionModel | FitRequest]] = []
    fits: dict[str, PositionFit] = {}
    for number, (place, model) in enumerate(models.rules):
        if not isinstance(model, FitRequest):
            rules.append((place, model))
            continue
        if model.family in FROM_CLICKS:
            fits[str(place)] = _from_clicks(model, place, clicks)
        else:
            depths = depths_at(number, model)
            if depths is None:
                raise InputError(
                    f"{model} for {place}, but no session is there. Check the surfaces and groups of the log."
                )
            if depths.groups == POOLED:
                fits[str(place)] = fit_depths(model.family, depths, cutoff=model.cutoff, level=level)
            else:
                found = fit_groups(model.family, depths, cutoff=model.cutoff, level=level)
                rules += [rule for rule in found.positions(surface=place.surface).rules if rule[0] != place]
                fits |= {str(Place(place.surface, name)): fit for name, fit in found.groups.items()}
                fits[str(place)] = found.everyone
        rules.append((place, fits[str(place)].model))
    return Positions(tuple(rules)), fits


def _from_clicks(request: FitRequest, place: Place, clicks: ClickCells | None) -> PositionFit:
    if clicks is None or place != Place():
        raise InputError(
            f"{request} for {place}; expected the clicks on all displayed items, for all of them together. "
            "Fit scroll depths (fit:yule) where only viewed items are logged, or where surfaces differ."
        )
    found = FROM_CLICKS[request.family](clicks)
    if request.cutoff is None or not hasattr(found.model, "cutoff"):
        return found
    return replace(found, model=replace(found.model, cutoff=request.cutoff))  # type: ignore[type-var]
