"""What `fit:yule` asks for: every model of a log that is still to be fitted, fitted to the sessions it is for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.errors import InputError
from truerank.exposure.positions.fits import Depths, PositionFit, fit_depths
from truerank.exposure.positions.fits_clicks import Clicks, fit_clicks, fit_harvest
from truerank.exposure.positions.fits_groups import fit_groups
from truerank.exposure.positions.model import PositionModel
from truerank.exposure.positions.places import FitRequest, Place, Positions

FROM_CLICKS = {"clicks": fit_clicks, "harvest": fit_harvest}


def fitted(
    position: PositionModel | FitRequest | Positions,
    *,
    depth: npt.ArrayLike,
    censored: npt.ArrayLike | None = None,
    surface: npt.NDArray[Any] | None = None,
    group: npt.NDArray[Any] | None = None,
    per_group: bool = False,
    clicks: Clicks | None = None,
    level: float = 0.95,
) -> tuple[Positions, dict[str, PositionFit]]:
    """The models with every request replaced by its fit, and the fits by place.

    `depth` has one row per session and surface, with its `surface` and user `group`; `per_group` gives each group of a
    requested place its own parameter, with shrinkage. Fits from clicks need `clicks` and hold everywhere.

    >>> models, fits = fitted(FitRequest("exp"), depth=[1, 2, 3])
    >>> str(models), fits["*"].n
    ('exp:0.5', 3)
    """
    models = Positions.everywhere(position)
    depth = np.asarray(depth, dtype=np.float64)
    ended = np.zeros(len(depth), dtype=bool) if censored is None else np.asarray(censored, dtype=bool)
    at = models.at(len(depth), surface=surface, group=group) if models.requests else np.zeros(0)
    rules: list[tuple[Place, PositionModel | FitRequest]] = []
    fits: dict[str, PositionFit] = {}
    for number, (place, model) in enumerate(models.rules):
        if not isinstance(model, FitRequest):
            rules.append((place, model))
            continue
        rows = at == number
        if not rows.any() and model.family not in FROM_CLICKS:
            raise InputError(f"{model} for {place}, but no session is there. Check the surfaces and groups of the log.")
        if model.family in FROM_CLICKS:
            fits[str(place)] = _from_clicks(model, place, clicks, level=level)
        elif per_group and group is not None and place.group is None:
            data = Depths.of(depth[rows], censored=ended[rows], group=group[rows], cutoff=model.cutoff)
            found = fit_groups(model.family, data, cutoff=model.cutoff, level=level)
            rules += [rule for rule in found.positions(surface=place.surface).rules if rule[0] != place]
            fits |= {str(Place(place.surface, name)): fit for name, fit in found.groups.items()}
            fits[str(place)] = found.everyone
        else:
            data = Depths.of(depth[rows], censored=ended[rows], cutoff=model.cutoff)
            fits[str(place)] = fit_depths(model.family, data, cutoff=model.cutoff, level=level)
        rules.append((place, fits[str(place)].model))
    return Positions(tuple(rules)), fits


def _from_clicks(request: FitRequest, place: Place, clicks: Clicks | None, *, level: float) -> PositionFit:
    if clicks is None or place != Place():
        raise InputError(
            f"{request} for {place}; expected the clicks on all displayed items, for all of them together. "
            "Fit scroll depths (fit:yule) where only viewed items are logged, or where surfaces differ."
        )
    found = FROM_CLICKS[request.family](clicks, level=level)
    if request.cutoff is None or not hasattr(found.model, "cutoff"):
        return found
    return replace(found, model=replace(found.model, cutoff=request.cutoff))  # type: ignore[type-var]
