"""What `fit:yule` asks for: every model of a log that is still to be fitted, fitted to the sessions it is for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.errors import InputError, RefusedError
from truerank.exposure.positions.fits import Depths, PositionFit, derivatives, described, fit_depths, solve, table_of
from truerank.exposure.positions.fits_clicks import ClickCells, fit_click_cells, fit_harvest_cells
from truerank.exposure.positions.fits_families import FAMILIES, DepthFamily, Goodness
from truerank.exposure.positions.position_models import FitRequest, Place, PositionModel, Positions

REJECTED = 0.01  # a fit with a smaller p does not describe the scroll depths (statistics 11.6)
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


@dataclass(frozen=True, slots=True)
class FittedPositions:
    """Position models of which none is still to be fitted, and the fits by place.

    `depths` are the scroll depths of the lists at each place that has a fitted family, None where models were fitted to
    clicks.
    """

    positions: Positions
    fits: dict[str, PositionFit]
    depths: dict[str, Depths] | None = field(repr=False)

    def rejected(self) -> dict[str, PositionFit]:
        """The fits that do not describe what they were fitted to, by place; those of no list do not count."""
        used = self.fits if self.depths is None else self.depths
        return {place: fit for place, fit in self.fits.items() if place in used and fit.goodness.p < REJECTED}

    def with_tables(self, places: Collection[str]) -> FittedPositions:
        """The same with the table of observed views at these places, as far as there are lists."""
        depths = {place: depths for place, depths in (self.depths or {}).items() if place in places}
        rules = [
            (place, table_of(depths[str(place)], cutoff=getattr(model, "cutoff", None)))
            if str(place) in depths
            else (place, model)
            for place, model in self.positions.rules
        ]
        return replace(self, positions=Positions(tuple(rules)))


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
    >>> fitted(FitRequest("exp"), depth=[1, 2, 3, 9], surface=np.array(list("aaab")))[1]["a"].n
    3
    """
    surfaces, groups = (
        () if values is None else tuple(np.unique(np.asarray(values).astype(str)).tolist())
        for values in (surface, group)
    )
    models = for_places(Positions.everywhere(position), surfaces=surfaces, groups=groups)
    depth = np.asarray(depth, dtype=np.float64)
    ended = np.zeros(len(depth), dtype=bool) if censored is None else np.asarray(censored, dtype=bool)
    at = models.at(len(depth), surface=surface, group=group) if models.requests else np.zeros(0)

    def depths_at(number: int, cutoff: int | None) -> Depths | None:
        rows = at == number
        return Depths.of(depth[rows], censored=ended[rows], cutoff=cutoff) if rows.any() else None

    result = fit_requests(models, depths_at, clicks=None, level=level)
    return result.positions, result.fits


MOST_GROUPS = 200  # surfaces, or groups, that can each have a fit of their own


def for_places(models: Positions, *, surfaces: Sequence[str], groups: Sequence[str]) -> Positions:
    """Every model that is to be fitted per surface or per group as a rule for each, before the one for all others.

    A request stays `per_surface` only where its fit is one of several.

    >>> exp = Positions.everywhere(FitRequest("exp"))
    >>> str(for_places(exp, surfaces=["a", "b"], groups=[])), str(for_places(exp, surfaces=["a"], groups=[]))
    ('a=fit:exp,b=fit:exp,*=fit:exp', 'fit:exp(per_surface=false)')
    >>> str(for_places(Positions.everywhere(FitRequest("exp", per_group=True)), surfaces=[], groups=["x"]).rules[0][0])
    '*/x'
    """
    return _for_groups(_for_surfaces(models, surfaces), groups)


def _for_surfaces(models: Positions, surfaces: Sequence[str]) -> Positions:
    several = 1 < len(surfaces) <= MOST_GROUPS
    rules: list[tuple[Place, PositionModel | FitRequest]] = []
    for place, model in models.rules:
        if not isinstance(model, FitRequest):
            rules.append((place, model))
            continue
        apart = several and model.per_surface and place.surface is None and model.family not in FROM_CLICKS
        request = replace(model, per_surface=apart)
        named = {other.surface for other, _ in models.rules if other.group == place.group}
        rules += [(Place(name, place.group), request) for name in surfaces if apart and name not in named]
        rules.append((place, request))
    return Positions(tuple(rules))


def _for_groups(models: Positions, groups: Sequence[str]) -> Positions:
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


@dataclass(frozen=True, slots=True)
class _DepthsByRule:
    """The scroll depths of each rule of position models, with the lists of each surface that were recognised to end.

    `given` has the depths at the rule of that number, up to a cut-off, as the log gives them.
    """

    models: Positions
    given: Callable[[int, int | None], Depths | None]
    ends: Mapping[str | None, int | None]

    @classmethod
    def of(cls, models: Positions, given: Callable[[int, int | None], Depths | None]) -> _DepthsByRule:
        ends: dict[str | None, int | None] = {}
        for surface in dict.fromkeys(place.surface for place, _ in models.rules):
            numbers = [number for number, (place, _) in enumerate(models.rules) if place.surface == surface]
            depths = _pooled(given(number, None) for number in numbers)
            ends[surface] = None if depths is None else depths.list_end()
        return cls(models, given, ends)

    def here(self, number: int, request: FitRequest) -> Depths | None:
        """Of the lists at one rule."""
        depths, end = self.given(number, request.cutoff), self.ends[self.models.rules[number][0].surface]
        return depths if depths is None or end is None else depths.ending_at(end)

    def of_all_surfaces(self, number: int, request: FitRequest) -> Depths | None:
        """Of the lists of the same group at all rules of one request."""
        group = self.models.rules[number][0].group
        alike = [at for at, (place, model) in enumerate(self.models.rules) if model == request and place.group == group]
        return _pooled(self.here(at, request) for at in alike)

    def end(self, number: int, request: FitRequest) -> int | None:
        """Where the lists at one rule were recognised to end, before the cut-off."""
        end = self.ends[self.models.rules[number][0].surface]
        return None if end is None or (request.cutoff is not None and request.cutoff <= end) else end

    def of_families(self) -> dict[str, Depths]:
        """Of the lists at each place that has a family fitted to them."""
        return {
            str(place): depths
            for number, (place, model) in enumerate(self.models.rules)
            if isinstance(model, FitRequest) and model.family in FAMILIES
            if (depths := self.here(number, model)) is not None
        }


def _pooled(parts: Iterable[Depths | None]) -> Depths | None:
    given = {str(at): depths for at, depths in enumerate(parts) if depths is not None}
    return Depths.joined(given).pooled() if given else None


def fit_requests(
    models: Positions,
    depths_at: Callable[[int, int | None], Depths | None],
    *,
    clicks: ClickCells | None,
    level: float,
) -> FittedPositions:
    """Every request replaced by its fit: to the depths at the rule of that number, or to clicks, which hold everywhere.

    Rules keep their order, so that their numbers stay what they are. Where one request has a fit for each surface, a
    surface whose lists allow none (all have one place, say) has the fit of all surfaces together.
    """
    depths = _DepthsByRule.of(models, depths_at)
    by_rule: dict[int, PositionFit] = {}
    fits: dict[str, PositionFit] = {}
    for surface, request, numbers in _fitted_together(models):
        together = request.per_surface and surface is None  # for surfaces without a fit of their own: no list is here
        if request.family in FROM_CLICKS:
            own = {number: _from_clicks(request, models.rules[number][0], clicks) for number in numbers}
        else:
            try:
                own = _of_surface(
                    models, request, numbers, depths.of_all_surfaces if together else depths.here, level=level
                )
            except InputError:
                if together or not request.per_surface:
                    raise
                shared = _of_surface(models, request, numbers, depths.of_all_surfaces, level=level)
                own = {number: _without_goodness(fit, depths.here(number, request)) for number, fit in shared.items()}
        by_rule |= {number: replace(fit, list_end=depths.end(number, request)) for number, fit in own.items()}
        fits |= {} if together else {str(models.rules[number][0]): by_rule[number] for number in own}
    rules = [
        (place, by_rule[number].model if number in by_rule else model)
        for number, (place, model) in enumerate(models.rules)
    ]
    return FittedPositions(Positions(tuple(rules)), fits, depths.of_families() if clicks is None else None)


def _fitted_together(models: Positions) -> Iterator[tuple[str | None, FitRequest, list[int]]]:
    """The numbers of the rules that share a fit: all groups of a surface where they are drawn together, else one."""
    blocks: dict[tuple[str | None, FitRequest, int | None], list[int]] = {}
    for number, (place, model) in enumerate(models.rules):
        if isinstance(model, FitRequest):
            blocks.setdefault((place.surface, model, None if model.per_group else number), []).append(number)
    for (surface, request, _), numbers in blocks.items():
        yield surface, request, numbers


def _of_surface(
    models: Positions,
    request: FitRequest,
    numbers: Sequence[int],
    depths_at: Callable[[int, FitRequest], Depths | None],
    *,
    level: float,
) -> dict[int, PositionFit]:
    """The fit of one rule; or of all groups of a surface, and of everyone: a group without a list has everyone's."""
    places = [models.rules[number][0] for number in numbers]
    parts = {
        place.group: data
        for number, place in zip(numbers, places, strict=True)
        if (data := depths_at(number, request)) is not None
    }
    if not parts:
        where = places[0] if not request.per_group else Place(places[0].surface)
        raise InputError(f"{request} for {where}, but no session is there. Check the surfaces and groups of the log.")
    if not request.per_group:
        (data,) = parts.values()
        return {numbers[0]: fit_depths(request.family, data, cutoff=request.cutoff, level=level)}
    named = {group: data for group, data in parts.items() if group is not None}
    of_groups = fit_groups(request.family, Depths.joined(named), cutoff=request.cutoff, level=level)
    return {
        number: of_groups.groups.get(place.group or "", of_groups.everyone)
        for number, place in zip(numbers, places, strict=True)
    }


def _without_goodness(shared: PositionFit, depths: Depths | None) -> PositionFit:
    """The fit of all surfaces together, as that of one surface whose lists do not test it."""
    return replace(
        shared,
        n=0 if depths is None else depths.n,
        n_censored=0 if depths is None else int(depths.censored.sum()),
        goodness=Goodness((), math.nan, 0, math.nan),
        notes=(*shared.notes, "its lists allow no fit of their own: this is the fit of all surfaces together"),
    )


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
