"""What `fit:yule` asks for: every model of a log that is still to be fitted, fitted to the sessions it is for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.errors import InputError, RefusedError
from truerank.exposure.positions.fits import Depths, PositionFit, derivatives, described, fit_depths, solve
from truerank.exposure.positions.fits_clicks import ClickCells, fit_click_cells, fit_harvest_cells
from truerank.exposure.positions.fits_families import FAMILIES, DepthFamily
from truerank.exposure.positions.places import FitRequest, Place, PositionModel, Positions

NARROW, WIDE = 0.01, 5.0  # spreads between groups that are looked at; below the first they count as equal


@dataclass(frozen=True, slots=True)
class GroupFits:
    """The fit for everyone, one for each group, and how far groups differ (a standard deviation on the scale)."""

    everyone: PositionFit
    groups: dict[str, PositionFit]
    between: float


def fit_groups(family: str, depths: Depths, *, cutoff: int | None = None, level: float = 0.95) -> GroupFits:
    """One parameter per group with shrinkage: u_g ~ N(û, τ²) around everyone's û on the family's scale.

    A group's u_g maximises its own log-likelihood minus (u_g - û)² / (2 τ²); τ maximises the marginal likelihood of all
    groups (Laplace's approximation). Intervals are u_g ± z / √(I_g + 1/τ²). A group without stops still gets a value.

    >>> two = Depths.of([1, 1, 2, 2, 1, 9], group=np.array(list("aaaabb")))
    >>> fits = fit_groups("exp", two)
    >>> sorted(fits.groups)
    ['a', 'b']
    """
    if family not in FAMILIES:
        raise RefusedError(
            f"{family!r} has no parameter that groups could share; expected one of {', '.join(FAMILIES)}."
        )
    law, everyone = FAMILIES[family], fit_depths(family, depths, cutoff=cutoff, level=level)
    centre = float(solve(law, depths.pooled()).u[0])
    spread = _spread(law, depths, centre)
    if spread == 0:
        same = {name: _alone(everyone, depths, at) for at, name in enumerate(depths.groups)}
        return GroupFits(everyone, same, 0.0)
    found = solve(law, depths, centre=centre, precision=spread**-2)
    groups = {
        name: described(
            law,
            depths.only(at),
            u=float(found.u[at]),
            information=float(found.information[at]),
            cutoff=cutoff,
            level=level,
        )
        for at, name in enumerate(depths.groups)
    }
    return GroupFits(everyone, groups, spread)


def _alone(everyone: PositionFit, depths: Depths, group: int) -> PositionFit:
    own = depths.only(group)
    return replace(
        everyone,
        n=own.n,
        n_censored=int(own.censored.sum()),
        notes=("no difference between groups was found: these are everyone's value and interval",),
    )


def _spread(law: DepthFamily, depths: Depths, centre: float) -> float:
    """The τ of the largest marginal likelihood, 0 where groups show no difference."""
    from scipy.optimize import minimize_scalar

    def loss(log_spread: float) -> float:
        return -_marginal(law, depths, centre, math.exp(log_spread))

    best = minimize_scalar(loss, bounds=(math.log(NARROW), math.log(WIDE)), method="bounded", options={"xatol": 1e-4})
    spread = math.exp(float(best.x))
    same = float(derivatives(law, depths, np.full(len(depths.groups), centre))[0].sum())
    return spread if spread > 1.02 * NARROW and -float(best.fun) > same else 0.0


def _marginal(law: DepthFamily, depths: Depths, centre: float, spread: float) -> float:
    found = solve(law, depths, centre=centre, precision=spread**-2)
    away = (found.u - centre) / spread
    return float(np.sum(found.log_likelihood - away**2 / 2 - np.log(found.information * spread**2) / 2))


FROM_CLICKS = {"clicks": fit_click_cells, "harvest": fit_harvest_cells}


def fitted(
    position: PositionModel | FitRequest | Positions,
    *,
    depth: npt.ArrayLike,
    censored: npt.ArrayLike | None = None,
    surface: npt.NDArray[Any] | None = None,
    group: npt.NDArray[Any] | None = None,
    level: float = 0.95,
) -> tuple[Positions, dict[str, PositionFit]]:
    """The models with every request replaced by its fit, and the fits by place.

    `depth` has one row per session and surface, with its `surface` and user `group`.

    >>> models, fits = fitted(FitRequest("exp"), depth=[1, 2, 3])
    >>> str(models), fits["*"].n
    ('exp:0.5', 3)
    """
    names = () if group is None else tuple(np.unique(np.asarray(group).astype(str)).tolist())
    models = for_groups(Positions.everywhere(position), names)
    depth = np.asarray(depth, dtype=np.float64)
    ended = np.zeros(len(depth), dtype=bool) if censored is None else np.asarray(censored, dtype=bool)
    at = models.at(len(depth), surface=surface, group=group) if models.requests else np.zeros(0)

    def depths_at(number: int, request: FitRequest) -> Depths | None:
        rows = at == number
        return Depths.of(depth[rows], censored=ended[rows], cutoff=request.cutoff) if rows.any() else None

    return fit_requests(models, depths_at, clicks=None, level=level)


MOST_GROUPS = 200  # that can each have a parameter of their own


def for_groups(models: Positions, groups: Sequence[str]) -> Positions:
    """Every model that is to be fitted per group as a rule for each of the groups, before the one for everyone.

    >>> str(for_groups(Positions.everywhere(FitRequest("exp", per_group=True)), ["a", "b"]).rules[0][0])
    '*/a'
    """
    rules: list[tuple[Place, PositionModel | FitRequest]] = []
    for place, model in models.rules:
        if isinstance(model, FitRequest) and model.per_group:
            if place.group is not None:
                raise InputError(f"{model} for {place}, which is one group. Leave per_group out, or name no group.")
            if model.family not in FAMILIES:
                raise InputError(f"{model}: groups cannot share this; expected one of {', '.join(FAMILIES)}.")
            if not groups:
                raise InputError(f"{model}: the log has no column group. Name it with columns, or leave per_group out.")
            if len(groups) > MOST_GROUPS:
                raise InputError(
                    f"{model}: more than {MOST_GROUPS} groups; expected a few kinds of users. Join small groups."
                )
            own = {named.group for named, _ in models.rules if named.surface == place.surface}
            rules += [(Place(place.surface, name), model) for name in groups if name not in own]
        rules.append((place, model))
    return Positions(tuple(rules))


def fit_requests(
    models: Positions,
    depths_at: Callable[[int, FitRequest], Depths | None],
    *,
    clicks: ClickCells | None,
    level: float,
) -> tuple[Positions, dict[str, PositionFit]]:
    """Every request replaced by its fit: to the depths at the rule of that number, or to clicks, which hold everywhere.

    Rules keep their order, so that their numbers stay what they are.
    """
    fits: dict[str, PositionFit] = {}
    for surface in dict.fromkeys(place.surface for place, model in models.requests if model.per_group):
        fits |= _of_groups(models, surface, depths_at, level=level)
    for number, (place, model) in enumerate(models.rules):
        if not isinstance(model, FitRequest) or model.per_group:
            continue
        if model.family in FROM_CLICKS:
            fits[str(place)] = _from_clicks(model, place, clicks)
            continue
        depths = depths_at(number, model)
        if depths is None:
            raise InputError(f"{model} for {place}, but no session is there. Check the surfaces and groups of the log.")
        fits[str(place)] = fit_depths(model.family, depths, cutoff=model.cutoff, level=level)
    rules = [(place, fits[str(place)].model if str(place) in fits else model) for place, model in models.rules]
    return Positions(tuple(rules)), fits


def _of_groups(
    models: Positions, surface: str | None, depths_at: Callable[[int, FitRequest], Depths | None], *, level: float
) -> dict[str, PositionFit]:
    """The fits of all groups of a surface, and of everyone; a group without a session has everyone's."""
    numbered = [
        (number, place, model)
        for number, (place, model) in enumerate(models.rules)
        if isinstance(model, FitRequest) and model.per_group and place.surface == surface
    ]
    request = numbered[0][2]
    found = {
        place.group: depths
        for number, place, model in numbered
        if place.group is not None and (depths := depths_at(number, model)) is not None
    }
    if not found:
        raise InputError(
            f"{request} for {Place(surface)}, but no session is there. Check the surfaces and groups of the log."
        )
    fitted_groups = fit_groups(request.family, Depths.joined(found), cutoff=request.cutoff, level=level)
    everyone = fitted_groups.everyone
    return {str(place): fitted_groups.groups.get(place.group or "", everyone) for _, place, _ in numbered}


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
