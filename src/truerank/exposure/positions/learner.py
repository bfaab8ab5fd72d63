"""Position models learned from a log in pieces: counts of scroll depths, or of clicks, by group of clusters.

Every model that is still to be fitted (`fit:yule`) is fitted to the sessions of its surface and user group.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Ints
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Groups, Learned, Learner
from truerank.core.log import Log, Logged
from truerank.core.record import record
from truerank.core.wording import columns_option
from truerank.exposure.counts import sum_cells
from truerank.exposure.positions.depths import FAMILIES, Depths, fit_depths, fit_groups, pooled, table_of
from truerank.exposure.positions.fits import ClickCells, Goodness, PositionFit, fit_clicks, fit_harvest
from truerank.exposure.positions.position_models import FitRequest, Place, PositionModel, Positions
from truerank.io.sessions import RankedChunk

REJECTED = 0.01  # a fit with a smaller p does not describe the scroll depths (statistics 11.6)
MOST_GROUPS = 200  # surfaces, or groups, that can each have a fit of their own
DEPTHS = ("depth", "stopped", "censored")
FROM_CLICKS = {"clicks": fit_clicks, "harvest": fit_harvest}


@record
class FittedPositions:
    """Position models of which none is still to be fitted, and the fits by place.

    `depths` are the scroll depths of the lists at each place that has a fitted family; none where models were fitted
    to clicks.
    """

    positions: Positions
    fits: dict[str, PositionFit]
    depths: dict[str, Depths] = field(repr=False)

    def rejected(self) -> dict[str, PositionFit]:
        """The fits that do not describe what they were fitted to, by place; those of no list do not count."""
        used = self.depths or self.fits
        return {place: fit for place, fit in self.fits.items() if place in used and fit.goodness.p < REJECTED}

    def with_tables(self, places: Collection[str]) -> FittedPositions:
        """The same with the table of observed views at these places, as far as there are lists."""
        depths = {place: depths for place, depths in self.depths.items() if place in places}
        rules = [
            (place, table_of(depths[str(place)], cutoff=getattr(model, "cutoff", None)))
            if str(place) in depths
            else (place, model)
            for place, model in self.positions.rules
        ]
        return replace(self, positions=Positions(tuple(rules)))


def from_clicks(positions: Positions) -> bool:
    """Whether some model is to be fitted to clicks."""
    return any(request.family in FROM_CLICKS for _, request in positions.requests)


def for_places(models: Positions, *, surfaces: Sequence[str], groups: Sequence[str]) -> Positions:
    """Every model that is to be fitted per surface or per group as a rule for each, before the one for all others.

    A request stays `per_surface` only where its fit is one of several.

    >>> exp = Positions.everywhere(FitRequest("exp"))
    >>> str(for_places(exp, surfaces=["a", "b"], groups=[])), str(for_places(exp, surfaces=["a"], groups=[]))
    ('a=fit:exp,b=fit:exp,*=fit:exp', 'fit:exp(per_surface=false)')
    >>> str(for_places(Positions.everywhere(FitRequest("exp", per_group=True)), surfaces=[], groups=["x"]).rules[0][0])
    '*/x'
    """
    several = 1 < len(surfaces) <= MOST_GROUPS
    rules: list[tuple[Place, PositionModel | FitRequest]] = []
    for place, model in models.rules:
        if not isinstance(model, FitRequest):
            rules.append((place, model))
            continue
        apart = several and model.per_surface and place.surface is None and model.family not in FROM_CLICKS
        named = {rule.surface for rule, _ in models.rules if rule.group == place.group}
        others = [Place(name, place.group) for name in surfaces if apart and name not in named]
        rules += [(rule, replace(model, per_surface=apart)) for rule in (*others, place)]
    every_rule: list[tuple[Place, PositionModel | FitRequest]] = []
    for place, model in rules:
        if isinstance(model, FitRequest) and model.per_group:
            _check_groups(place, model, groups)
            named = {rule.group for rule, _ in rules if rule.surface == place.surface}
            every_rule += [(Place(place.surface, name), model) for name in groups if name not in named]
        every_rule.append((place, model))
    return Positions(tuple(every_rule))


def _check_groups(place: Place, request: FitRequest, groups: Sequence[str]) -> None:
    problem = None
    if place.group is not None:
        problem = f" for {place}, which is one group. Leave per_group out, or name no group."
    elif request.family not in FAMILIES:
        problem = f": groups cannot share this; expected one of {', '.join(FAMILIES)}."
    elif not groups:
        problem = ": the log has no column group. Name it with columns, or leave per_group out."
    elif len(groups) > MOST_GROUPS:
        problem = f": more than {MOST_GROUPS} groups; expected a few kinds of users. Join small groups."
    if problem is not None:
        raise InputError(f"{request}{problem}")


def fit_requests(models: Positions, lists: Mapping[Place, Depths], *, clicks: ClickCells | None) -> FittedPositions:
    """Every request replaced by its fit: to the scroll depths of its place, or to clicks, which hold everywhere.

    Rules stay in order, so that their numbers stay what they are. Where one request has a fit for each surface, a
    surface whose lists allow none (all have one rank, say) has the fit of all surfaces together.
    """
    requests, ends = dict(models.requests), _list_ends(lists)
    depths = {
        place: lists[place].up_to(min(ends[place.surface], request.cutoff or math.inf))
        for place, request in requests.items()
        if place in lists
    }
    # the places that share a fit: all groups of a surface where they are drawn together, else one
    blocks: dict[tuple[str | None, FitRequest, Place | None], list[Place]] = {}
    for place, request in requests.items():
        blocks.setdefault((place.surface, request, None if request.per_group else place), []).append(place)
    fits: dict[Place, PositionFit] = {}
    without_lists: set[Place] = set()
    for (surface, request, _), places in blocks.items():
        alike = {
            place: [depths[key] for key in depths if requests[key] == request and key.group == place.group]
            for place in places
        }
        everywhere = {place: pooled(parts) for place, parts in alike.items() if parts}
        if request.family in FROM_CLICKS:
            fits |= {place: _from_clicks(request, place, clicks) for place in places}
        elif request.per_surface and surface is None:  # for surfaces without a fit of their own: no list is here
            fits |= _fit_places(request, places, everywhere)
            without_lists.update(places)
        else:
            try:
                fits |= _fit_places(request, places, depths)
            except InputError:
                if not request.per_surface:
                    raise
                shared = _fit_places(request, places, everywhere)
                fits |= {place: _without_goodness(fit, depths.get(place)) for place, fit in shared.items()}
    for place, fit in fits.items():
        end = ends.get(place.surface, math.inf)
        fits[place] = replace(fit, list_end=int(end) if end < (requests[place].cutoff or math.inf) else None)
    return FittedPositions(
        Positions(tuple((place, fits[place].model if place in fits else model) for place, model in models.rules)),
        {str(place): fit for place, fit in fits.items() if place not in without_lists},
        {str(place): depths[place] for place in depths if requests[place].family in FAMILIES},
    )


def _list_ends(lists: Mapping[Place, Depths]) -> dict[str | None, float]:
    """The rank at which the lists of each surface were recognised to end, ∞ where they were not."""
    parts: dict[str | None, list[Depths]] = {}
    for place, depths in lists.items():
        parts.setdefault(place.surface, []).append(depths)
    return {surface: pooled(depths).list_end() or math.inf for surface, depths in parts.items()}


def _fit_places(request: FitRequest, places: list[Place], depths: Mapping[Place, Depths]) -> dict[Place, PositionFit]:
    """The fit of one place; or of all groups of a surface, and of everyone: a group without a list has everyone's."""
    parts = {place: depths[place] for place in places if place in depths}
    if not parts:
        where = places[0] if not request.per_group else Place(places[0].surface)
        raise InputError(f"{request} for {where}, but no session is there. Check the surfaces and groups of the log.")
    if not request.per_group:
        return {place: fit_depths(request.family, parts[place], cutoff=request.cutoff) for place in parts}
    groups = {place.group: lists for place, lists in parts.items() if place.group is not None}
    everyone, fits, _ = fit_groups(request.family, groups, cutoff=request.cutoff)
    return {place: fits.get(place.group or "", everyone) for place in places}


def _without_goodness(shared: PositionFit, depths: Depths | None) -> PositionFit:
    """The fit of all surfaces together, as that of one surface whose lists do not test it."""
    return replace(
        shared,
        n=0 if depths is None else depths.n,
        n_censored=0 if depths is None else int(depths.censored.sum()),
        goodness=Goodness((), math.nan, math.nan),
        notes=(*shared.notes, "its lists allow no fit of their own: this is the fit of all surfaces together"),
    )


def _from_clicks(request: FitRequest, place: Place, clicks: ClickCells | None) -> PositionFit:
    if clicks is None or place != Place():
        raise InputError(
            f"{request} for {place}; expected the clicks on all displayed items, for all of them together. "
            "Fit scroll depths (fit:yule) where only viewed items are logged, or where surfaces differ."
        )
    fit = FROM_CLICKS[request.family](clicks)
    return replace(fit, model=replace(fit.model, cutoff=request.cutoff))  # type: ignore[type-var]


# ------------------------------------------------------------------------------------------------------------- learner


@record(eq=False)
class CellCounts:
    """Counts of cells, in columns of floats; the other columns tell cells apart, `group` their group of clusters."""

    cells: pl.DataFrame

    def __add__(self, more: CellCounts) -> CellCounts:
        return CellCounts(sum_cells(pl.concat([self.cells, more.cells])))

    def without(self, group: int | None) -> CellCounts:
        rows = self.cells if group is None else self.cells.filter(pl.col("group") != group)
        return CellCounts(sum_cells(rows.drop("group")))


@record
class PositionLearner:
    """Fits the position models that are requested to the scroll depths, or to the clicks, of a log.

    `clicks` is the reward that represents a click. A fit is made again without each group of clusters, so that its
    error is part of the error of what is estimated with it.
    """

    positions: Positions
    clicks: str | None = None
    source: str = "log"
    needs: tuple[Learner, ...] = ()
    refitted: bool = True

    def tally(self, chunk: RankedChunk, *, groups: Groups, learned: Learned) -> CellCounts:
        """Clicks by item and rank; or lists by rule of the positions and depth, and whether they ended there."""
        log = chunk.log
        if log.position is None:
            raise InputError(f"{log.source}: fitting a position model needs the column position.")
        clusters = chunk.clusters()
        group = groups.at(clusters.key)[clusters.of_row]  # of each unit
        if from_clicks(self.positions):
            if log.logged is Logged.VIEWED:
                raise RefusedError(
                    "only viewed items are logged, and given a view a click says nothing of the rank (assumption 4). "
                    "Fit the scroll depths instead (fit:yule, fit:exp), or log every displayed item."
                )
            if self.clicks is None:
                raise InputError(f"{log.source}: fitting clicks needs a reward of 0 and 1.")
            clicked, rows = log.reward(self.clicks).astype(np.float64), np.arange(len(log))
            counts = {"rank": log.position - 1, "clicks": clicked, "others": 1.0 - clicked}
            keys: dict[str, Any] = {"item": log.items.keys()[log.item]}
        else:
            _check_depths(log)
            rows, ended = _lists(log, log.position)
            surface, group_of_user = (None if column is None else column[rows] for column in (log.surface, log.group))
            keys = {"rule": self.positions.at(len(rows), surface=surface, group=group_of_user)}
            counts = {
                "depth": log.position[rows],
                "stopped": np.where(ended, 0.0, 1.0),
                "censored": ended.astype(float),
            }
        return CellCounts(sum_cells(pl.DataFrame({"group": group[log.unit[rows]], **keys, **counts})))

    def fit(self, tally: CellCounts) -> FittedPositions:
        if from_clicks(self.positions):
            return fit_requests(self.positions, {}, clicks=ClickCells.from_table(tally.cells))
        if not len(tally.cells):
            raise InputError(
                f"{self.source}: no row was viewed, so there are no scroll depths. Check the column viewed, or give "
                "the position model itself (exp:0.9, yule:1.5, FILE)."
            )
        lists = {
            self.positions.rules[rule][0]: Depths(*(part[name].to_numpy().astype(np.float64) for name in DEPTHS))
            for (rule,), part in tally.cells.partition_by("rule", as_dict=True).items()
        }
        return fit_requests(self.positions, lists, clicks=None)


def _check_depths(log: Log) -> None:
    """Scroll depths are those of sessions, of items that are known to be viewed."""
    if log.logged is not Logged.VIEWED:
        raise InputError(
            f"{log.source}: every displayed item is logged and nothing says which were viewed, so there are no scroll "
            "depths. Fit clicks (fit:clicks, fit:harvest), or add a column viewed."
        )
    if log.sessions is None:
        raise InputError(
            f"{log.source}: scroll depths are those of sessions, and the log has no column session. Name it: "
            f"{columns_option('session', by='truerank.read_impressions')}, or give the position model "
            "itself (exp:0.9, yule:1.5, FILE)."
        )


def _lists(log: Log, position: Ints) -> tuple[Ints, Bools]:
    """The row of the deepest view of each session and surface, and whether its list ended there.

    A list ends with the deepest displayed position where a column says which of the displayed items were viewed, and
    after the number of candidates where that is known.
    """
    lists, n_lists = log.unit, log.n_units
    if log.surface is not None:
        names, surface = np.unique(log.surface, return_inverse=True)
        lists, n_lists = log.unit * len(names) + surface.reshape(-1), log.n_units * len(names)

    def deepest(rows: Ints) -> Ints:
        depth = np.zeros(n_lists, dtype=np.int64)
        np.maximum.at(depth, lists[rows], position[rows].astype(np.int64))
        return depth[lists]

    everything = np.arange(len(log))
    viewed = everything if log.viewed is None else np.flatnonzero(log.viewed)
    rows = viewed[position[viewed] == deepest(viewed)[viewed]]
    ended = np.zeros(len(rows), dtype=bool)
    if log.viewed is not None:
        ended |= position[rows] >= deepest(everything)[rows]
    if log.length is not None:
        ended |= position[rows] >= log.length[log.unit[rows]]
    return rows, ended
