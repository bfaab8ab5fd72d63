"""Policies that are evaluated on an impression log: how much each of them exposes the items of each session (eq. 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, frozen, sums_by
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.data.impressions import Impressions
from truerank.data.read import as_table, column, find_column, finite_numbers
from truerank.exposure.positions.places import Positions

Rows = Ints | slice | None  # which rows of a log, None for all
LONGEST_TABLE = 2**20  # ranks up to here are looked up


@dataclass(frozen=True, slots=True)
class RankColumn:
    """A column of the log with the rank that a policy gives each row's item; empty where it never shows the item."""

    column: str


@dataclass(frozen=True, slots=True)
class ExposureColumn:
    """A column of the log with a policy's exposure of each row's item, or its probability of choosing it."""

    column: str


@dataclass(frozen=True, slots=True)
class WholeList:
    """All items that a policy would rank: session, item (-1 where the log never shows it) and exposure."""

    unit: Ints
    item: Ints
    exposure: Floats
    prediction: Floats | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How a policy exposes the rows of a log: by rank and position model, or as numbers.

    `rank` is 0 where an item is never shown. `known` are the units whose ranking is known, `whole` the list of each
    where it was given, `total` the sum of exposures over each unit's whole list, Σ_a ε(x, a), NaN where it is unknown.
    `unlogged` counts the sessions that it ranks and the log does not have.
    """

    name: str
    log: Impressions
    positions: Positions | None = None
    rank: npt.NDArray[Any] | None = None
    values: Floats | None = None
    known: Bools | None = None
    whole: WholeList | None = None
    total: Floats | None = None
    unlogged: int = 0

    def exposure(self, rows: Rows = None) -> Floats:
        """ε(x, a) of the given rows, or of all."""
        if self.values is not None:
            return self.values if rows is None else self.values[rows]
        if self.rank is None or self.positions is None:
            raise InputError(f"{self.name}: neither ranks nor exposures are known.")
        rank = self.rank if rows is None else self.rank[rows]
        return views(self.positions, rank, self.log, rows=rows)

    def defined(self) -> Bools:
        return np.ones(self.log.n_units, dtype=bool) if self.known is None else self.known


def views(positions: Positions, rank: npt.NDArray[Any], log: Impressions, *, rows: Rows = None) -> Floats:
    """The probability that what stands at each rank is viewed; 0 at rank 0, which means never shown."""
    if len(positions.rules) == 1 and not (positions.by_surface or positions.by_group):
        return lookup(positions, rank)
    shown = np.maximum(rank, 1).astype(np.float64)
    surface, group = (
        None if each is None else (each if rows is None else each[rows]) for each in (log.surface, log.group)
    )
    return np.where(rank > 0, positions.view(shown, surface=surface, group=group), 0.0)


def lookup(positions: Positions, rank: npt.NDArray[Any]) -> Floats:
    """The same for one model everywhere, from a table by rank."""
    last = int(rank.max(initial=0))
    if last > LONGEST_TABLE:
        return np.where(rank > 0, positions.view(np.maximum(rank, 1).astype(np.float64)), 0.0)
    return np.asarray(table_of(positions, last)[rank], dtype=np.float64)


def table_of(positions: Positions, last: int) -> Floats:
    """P(V | R = r) for r = 0 ... last, where rank 0 is never shown."""
    return np.concatenate([[0.0], positions.view(np.arange(1.0, last + 1.0))])


# -------------------------------------------------------------------------------------------------------------- targets


def column_names(target: Any) -> tuple[str, ...]:
    """The columns of the log that a target needs."""
    return (target.column,) if isinstance(target, RankColumn | ExposureColumn) else ()


def policy_of(
    target: Any, log: Impressions, *, name: str, positions: Positions | None, columns: Mapping[str, str] | None = None
) -> Policy:
    """The policy that a target stands for: a column of the log, or a table of all the items it would rank."""
    if isinstance(target, RankColumn):
        return _by_rank(target.column, log, name=name, positions=positions)
    if isinstance(target, ExposureColumn):
        return _by_exposure(target.column, log, name=name)
    return _from_table(target, log, name=name, positions=positions, columns=columns)


def logging_policy(log: Impressions, positions: Positions | None) -> Policy:
    """The policy that made the log: its propensities where the log has them, else its positions."""
    if log.propensity is not None:
        return Policy("log", log, values=log.propensity)
    if positions is None:
        raise InputError(
            f"{log.source}: neither a position model nor a column propensity; expected one of them. "
            "Say how likely each position is viewed: --position log|exp:0.9|yule:1.5|fit:yule|FILE."
        )
    if log.position is None:
        raise InputError(
            f"{log.source}: a position model needs the column position. Name it: --columns position=NAME, "
            "or give the logging exposures in a column propensity."
        )
    return Policy("log", log, positions=positions, rank=log.position)


def _by_rank(key: str, log: Impressions, *, name: str, positions: Positions | None) -> Policy:
    if positions is None:
        raise InputError(
            f"{name}: a column of ranks needs a position model: --position log|exp:0.9|yule:1.5|fit:yule|FILE."
        )
    if key == "position" and log.position is not None:
        rank: npt.NDArray[Any] = log.position
    else:
        values = _extra(log, key, name)
        known = ~np.isnan(values)
        rank = np.where(known, values, 0).astype(np.int64)
        bad = known & ((values < 1) | (values != rank))
        if bad.any():
            value = values[int(np.argmax(bad))]
            raise InputError(
                f"{name}: a rank of {value:g} in column {key!r}; expected whole numbers from 1, or nothing."
            )
        _check_column(log, rank, where=f"{name}, column {key!r}")
        rank = rank.astype(np.int32) if rank.max(initial=0) < 2**31 else rank
    return Policy(name, log, positions=positions, rank=frozen(rank), total=_totals(log, rank, positions))


def _check_column(log: Impressions, rank: Ints, *, where: str) -> None:
    """Each rank once in a session, or in each of its surfaces."""
    if log.sessions is None:
        return
    shown = np.flatnonzero(rank > 0)
    place = log.unit[shown]
    if log.surface is not None:
        surface = np.unique(log.surface[shown], return_inverse=True)[1]
        place = place * (int(surface.max(initial=0)) + 1) + surface
    _check_ranks(place, rank[shown], where=where)


def _totals(log: Impressions, rank: npt.NDArray[Any], positions: Positions) -> Floats | None:
    """Σ_r P(V | r) over the places of each unit, where the log tells how many items compete: `candidates`.

    Logged items without a rank are never shown, so there are as many places less.
    """
    if log.length is None or positions.by_surface or positions.by_group:
        return None
    places, blank = log.length, rank == 0
    if blank.any():
        deepest = np.zeros(log.n_units, dtype=np.int64)
        np.maximum.at(deepest, log.unit, rank)
        places = places - np.bincount(log.unit[blank], minlength=log.n_units)
        places = np.maximum(places, np.minimum(deepest, log.length))
    longest = int(places.max(initial=0))
    return frozen(np.cumsum(table_of(positions, longest))[places])


def _by_exposure(key: str, log: Impressions, *, name: str) -> Policy:
    values = log.propensity if key == "propensity" and log.propensity is not None else _extra(log, key, name)
    lost = int(np.count_nonzero(np.isnan(values)))
    if lost:
        raise InputError(
            f"{name}: {lost:,} rows have nothing in column {key!r}; expected an exposure in every row, 0 where the "
            "item is never shown."
        )
    bad = (values < 0) | (values > 1)
    if bad.any():
        value = values[int(np.argmax(bad))]
        raise InputError(f"{name}: {value:g} in column {key!r}; expected exposures or probabilities from 0 to 1.")
    return Policy(name, log, values=frozen(values))


def _extra(log: Impressions, key: str, name: str) -> Floats:
    if key not in log.columns:
        raise InputError(
            f"{name}: the log was read without column {key!r}; "
            "read it with extra=[...], or give the path or frame itself."
        )
    return log.columns[key]


def _from_table(
    source: Any, log: Impressions, *, name: str, positions: Positions | None, columns: Mapping[str, str] | None
) -> Policy:
    """From a table session, item and rank or exposure, in the order of sessions and items."""
    table, where = as_table(source)
    where, mapping = (name if where in ("frame", "matrix") else where), dict(columns or {})
    session = column(table, "session", mapping, where=where)
    unit = log.unit_of_session(session, where=f"{where}, column 'session'")
    listed = column(table, "item", mapping, where=where)
    item = log.items.locate(listed, where=f"{where}, column 'item'")
    exposure, rank = _exposure_of(table, log, unit, positions, mapping, where=where)
    if not (unit >= 0).any():
        raise InputError(f"{where}: no session in common with {log.source}. Check the session ids.")
    prediction = find_column(table, "prediction", mapping)
    predicted = (
        None if prediction is None else finite_numbers(prediction, where=f"{where}, column 'prediction'").to_numpy()
    )
    kept = _sorted_rows(log, unit, item, listed, where=where)
    unlogged = session.filter(pl.Series(unit < 0)).n_unique()
    unit, item, exposure = unit[kept], item[kept], exposure[kept]
    known = np.zeros(log.n_units, dtype=bool)
    known[unit] = True
    at = _rows_in(log, unit, item)
    total = np.where(known, sums_by(unit, exposure, n=log.n_units), np.nan)
    whole = WholeList(frozen(unit), frozen(item), frozen(exposure), None if predicted is None else predicted[kept])
    missing = at < 0
    shared: dict[str, Any] = {"known": known, "whole": whole, "total": frozen(total), "unlogged": unlogged}
    if rank is None:
        values = np.where(missing, 0.0, exposure[at])
        return Policy(name, log, values=frozen(values), **shared)
    ranks = np.where(missing, 0, rank[kept][at])
    return Policy(name, log, positions=positions, rank=frozen(ranks), **shared)


def _exposure_of(
    table: Any, log: Impressions, unit: Ints, positions: Positions | None, mapping: Mapping[str, str], *, where: str
) -> tuple[Floats, Ints | None]:
    """The exposure of each row of a target's table, and its rank where it has one."""
    given = find_column(table, "exposure", mapping)
    ranks = find_column(table, "rank", mapping)
    if (given is None) == (ranks is None):
        found = "both rank and exposure" if given is not None else "neither rank nor exposure"
        raise InputError(f"{where}: {found} among {', '.join(table.columns)}; expected exactly one of the two.")
    if given is not None:
        values = finite_numbers(given, where=f"{where}, column {given.name!r}").to_numpy()
        bad = (values < 0) | (values > 1)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{where}: row {row + 1}, exposure is {values[row]:g}; expected a number from 0 to 1.")
        return values, None
    if ranks is None or positions is None:
        raise InputError(f"{where}: ranks need a position model: --position log|exp:0.9|yule:1.5|fit:yule|FILE.")
    values = finite_numbers(ranks, where=f"{where}, column {ranks.name!r}").to_numpy()
    rank = values.astype(np.int64)
    bad = (values < 1) | (values != rank)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{where}: row {row + 1}, rank is {values[row]:g}; expected a whole number from 1.")
    _check_ranks(unit[unit >= 0], rank[unit >= 0], where=where)
    if positions.by_surface or positions.by_group:
        kept = np.flatnonzero(unit >= 0)
        surface, group = (
            _of_rows(each, table, log, unit, mapping, kept=kept, what=what, where=where) if needed else None
            for each, what, needed in (
                (log.surface, "surface", positions.by_surface), (log.group, "group", positions.by_group),
            )
        )  # fmt: skip
        exposure = np.zeros(len(rank))
        exposure[kept] = positions.view(rank[kept].astype(np.float64), surface=surface, group=group)
        return exposure, rank
    return lookup(positions, rank), rank


def _check_ranks(unit: Ints, rank: Ints, *, where: str) -> None:
    width = int(rank.max(initial=0)) + 1
    cell = np.sort(unit * width + rank)
    again = cell[1:] == cell[:-1]
    if again.any():
        bad = int(cell[int(np.argmax(again))])
        raise InputError(
            f"{where}: two items at rank {bad % width} of one session; expected each rank once. "
            "Break ties in the ranking, or give exposures of a ranker that breaks them at random."
        )


def _of_rows(
    values: Any,
    table: Any,
    log: Impressions,
    unit: Ints,
    mapping: Mapping[str, str],
    *,
    kept: Ints,
    what: str,
    where: str,
) -> Any:
    """The surface or group of each kept row of a target's table: its own, else that of its session, which has one."""
    own = find_column(table, what, mapping)
    if own is not None:
        if own.null_count():
            row = int(own.is_null().arg_true()[0])
            raise InputError(f"{where}: row {row + 1} has no {what}; expected one in every row.")
        return own.cast(pl.String).to_numpy().astype(str)[kept]
    if values is None:
        return None
    of_unit = np.full(log.n_units, "", dtype=values.dtype)
    of_unit[log.unit] = values
    if (of_unit[log.unit] != values).any():
        raise InputError(
            f"{log.source}: a session has rows of several {what}s, so a target's list has no one {what}. "
            f"Make sessions of one {what}, or give {where} a column {what}, or exposures instead of ranks."
        )
    empty = np.ones(log.n_units, dtype=bool)
    empty[log.unit] = False
    if empty[unit[kept]].any():
        if (values != values[0]).any():
            raise InputError(
                f"{where}: it ranks {len(np.unique(unit[kept][empty[unit[kept]]])):,} sessions without a row in "
                f"{log.source}, whose {what} nothing tells. Give it a column {what}, or exposures instead of ranks."
            )
        of_unit[empty] = values[0]  # there is no other
    return of_unit[unit[kept]]


def _sorted_rows(log: Impressions, unit: Ints, item: Ints, listed: pl.Series, *, where: str) -> Ints:
    """The rows of a target's table whose session the log has, by session, then item; no item twice in a session."""
    kept = np.flatnonzero(unit >= 0)
    code = item[kept].copy()
    strange = np.flatnonzero(code < 0)
    width = len(log.items)
    if len(strange):  # items that the log never shows come after all others, by their ids
        ids, found = Ids.factorise(listed.gather(kept[strange]), where=f"{where}, column 'item'")
        code[strange] = width + found
        width += len(ids)
    cell = unit[kept] * max(width, 1) + code
    if not (cell[1:] > cell[:-1]).all():
        order = np.argsort(cell, kind="stable")
        kept, cell = kept[order], cell[order]
        again = cell[1:] == cell[:-1]
        if again.any():
            bad = listed[int(kept[int(np.argmax(again))])]
            raise InputError(f"{where}: item {bad} is twice in one session; expected it once.")
    return kept


def _rows_in(log: Impressions, unit: Ints, item: Ints) -> Ints:
    """For each row of the log, where its (session, item) stands in a target's sorted table, -1 where it does not."""
    width = len(log.items) + 1
    order = np.flatnonzero(item >= 0)
    ordered = unit[order] * width + item[order]
    wanted = log.unit * width + log.item
    if not len(ordered):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[place] == wanted, order[place], -1)
