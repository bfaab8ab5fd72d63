"""Targets as policies of a log: a column of it, or a table of all the items that a policy would rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.wording import option
from truerank.exposure.policies.policies import POSITION, Policy, WholeList, differs, rules_of
from truerank.exposure.positions.position_models import Positions
from truerank.io.columns import TableColumns, table_columns
from truerank.io.impressions import Array, Impressions, Logged


@dataclass(frozen=True, slots=True)
class RankColumn:
    """A column of the log with the rank that a policy gives each row's item; empty where it never shows the item."""

    column: str


@dataclass(frozen=True, slots=True)
class ExposureColumn:
    """A column of the log with a policy's exposure of each row's item, or its probability of choosing it."""

    column: str


Target = RankColumn | ExposureColumn | Any  # or a table session, item and rank or exposure
RANKED = f"{option('temperature 0')} ranks them in order, a larger number at random"
FEW_CELLS = 16  # of a table of sessions and ranks, for each of the ranks given
THE_LOG = (RankColumn("position"), ExposureColumn("propensity"))  # the logging policy as a target


def column_names(target: Target) -> tuple[str, ...]:
    """The columns of the log that a target needs."""
    return (target.column,) if isinstance(target, RankColumn | ExposureColumn) else ()


def is_table(target: Target) -> bool:
    """Whether a target is a table beside the log."""
    return not isinstance(target, RankColumn | ExposureColumn)


def target_policy(
    target: Target,
    logging: Policy,
    *,
    name: str,
    positions: Positions | None,
    columns: Mapping[str, str] | None = None,
    only: Mapping[str, str] | None = None,
) -> Policy:
    """The policy that a target stands for, on the log of the logging policy.

    `only` names the surface and the group of all rows where the whole log has no other: that of sessions without a row.
    """
    log = logging.log
    if isinstance(target, RankColumn | ExposureColumn) and target in THE_LOG:
        # what the logging policy earns: every weight is 1, and as many items are exposed as were viewed
        viewed = np.bincount(log.unit if log.viewed is None else log.unit[log.viewed], minlength=log.n_units)
        return replace(logging, name=name, viewed=viewed.astype(np.float64) if log.logged is Logged.VIEWED else None)
    return policy_of(target, log, name=name, positions=positions, columns=columns, only=only)


def policy_of(
    target: Target,
    log: Impressions,
    *,
    name: str,
    positions: Positions | None,
    columns: Mapping[str, str] | None = None,
    only: Mapping[str, str] | None = None,
) -> Policy:
    """The policy that a target stands for: a column of the log, or a table of all the items it would rank."""
    if isinstance(target, RankColumn):
        return _by_rank(target.column, log, name=name, positions=positions)
    if isinstance(target, ExposureColumn):
        return _by_exposure(target.column, log, name=name)
    return _from_table(target, log, name=name, positions=positions, columns=columns, only=only or {})


def _by_rank(key: str, log: Impressions, *, name: str, positions: Positions | None) -> Policy:
    if positions is None:
        raise InputError(f"{name}: a column of ranks needs a position model: {POSITION}.")
    if key == "position" and log.position is not None:
        rank: Array = log.position
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
    return Policy(
        name, log, positions=positions, rank=frozen(rank), rule=rules_of(positions, log), places=_places(log, rank)
    )


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


def _places(log: Impressions, rank: Array) -> Ints | None:
    """How many ranks each unit has, where the log tells how many items compete: `candidates`.

    Logged items without a rank are never shown, so there are as many places less.
    """
    if log.length is None:
        return None
    blank = rank == 0
    if not blank.any():
        return log.length
    deepest = np.zeros(log.n_units, dtype=np.int64)
    np.maximum.at(deepest, log.unit, rank)
    places = log.length - np.bincount(log.unit[blank], minlength=log.n_units)
    return np.asarray(np.maximum(places, np.minimum(deepest, log.length)), dtype=np.int64)


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
    source: Any,
    log: Impressions,
    *,
    name: str,
    positions: Positions | None,
    columns: Mapping[str, str] | None,
    only: Mapping[str, str],
) -> Policy:
    """From a table session, item and rank or exposure, in the order of sessions and items."""
    rows = table_columns(source, columns, unnamed=name)
    where, session, listed = rows.where, rows.get("session"), rows.get("item")
    unit = log.unit_of_session(session, where=f"{where}, column 'session'")
    item = log.items.locate(listed, where=f"{where}, column 'item'")
    exposure, rank = _exposure_or_rank(rows, unit, positions)
    prediction = rows.find("prediction")
    predicted = None if prediction is None else rows.finite(prediction).to_numpy()
    kept = _sorted_rows(log, unit, item, listed, where=where)
    unlogged = session.filter(pl.Series(unit < 0)).n_unique()
    rule = None
    if rank is not None and positions is not None and differs(positions):
        surface, group = (
            _of_rows(values, rows, log, unit[kept], kept=kept, what=what, only=only.get(what))
            if needed
            else None
            for values, what, needed in (
                (log.surface, "surface", positions.by_surface), (log.group, "group", positions.by_group),
            )
        )  # fmt: skip
        rule = positions.at(len(kept), surface=surface, group=group)
    unit, item = unit[kept], item[kept]
    known = np.zeros(log.n_units, dtype=bool)
    known[unit] = True
    whole = WholeList(
        unit=frozen(unit),
        item=frozen(item),
        rank=None if rank is None else frozen(rank[kept]),
        values=None if exposure is None else frozen(exposure[kept]),
        rule=rule,
        prediction=None if predicted is None else predicted[kept],
    )
    at = _rows_in(log, unit, item)
    shared: dict[str, Any] = {"known": known, "whole": whole, "unlogged": unlogged}
    if whole.rank is None and whole.values is not None:
        return Policy(name, log, values=frozen(_listed_at(whole.values, at)), **shared)
    rules = None if positions is None else rules_of(positions, log)
    return Policy(name, log, positions=positions, rank=frozen(_listed_at(whole.rank, at)), rule=rules, **shared)


def _listed_at(values: Any, at: Ints) -> Any:
    """The listed value of each row of a log, 0 where it is not listed."""
    return np.where(at < 0, 0, values[at]) if len(values) else np.zeros(len(at), dtype=values.dtype)


def _exposure_or_rank(rows: TableColumns, unit: Ints, positions: Positions | None) -> tuple[Floats | None, Ints | None]:
    """The exposure or the rank of each row of a target's table."""
    where, given, ranks = rows.where, rows.find("exposure"), rows.find("rank")
    if given is None and ranks is None and rows.find("score") is not None:
        raise InputError(f"{where}: scores, and nothing says how they rank: {RANKED}.")
    if (given is None) == (ranks is None):
        found = "both rank and exposure" if given is not None else "neither rank nor exposure"
        raise InputError(f"{where}: {found} among {', '.join(rows.table.columns)}; expected exactly one of the two.")
    if given is not None:
        values = rows.finite(given).to_numpy()
        bad = (values < 0) | (values > 1)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{where}: row {row + 1}, exposure is {values[row]:g}; expected a number from 0 to 1.")
        return values, None
    if ranks is None or positions is None:
        raise InputError(f"{where}: ranks need a position model: {POSITION}.")
    values = rows.finite(ranks).to_numpy()
    rank = values.astype(np.int64)
    bad = (values < 1) | (values != rank)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{where}: row {row + 1}, rank is {values[row]:g}; expected a whole number from 1.")
    _check_ranks(unit[unit >= 0], rank[unit >= 0], where=where)
    return None, rank


def _each_once(cell: Ints) -> bool:
    """Whether no cell comes twice, where there are few enough to tick them off: that is faster than to sort."""
    n = int(cell.max(initial=-1)) + 1
    if n > FEW_CELLS * len(cell):
        return False
    met = np.zeros(n, dtype=bool)
    met[cell] = True
    return int(np.count_nonzero(met)) == len(cell)


def _check_ranks(unit: Ints, rank: Array, *, where: str) -> None:
    width = int(rank.max(initial=0)) + 1
    cell = unit * width + rank
    if _each_once(cell):
        return
    cell.sort()
    again = cell[1:] == cell[:-1]
    if again.any():
        bad = int(cell[int(np.argmax(again))])
        raise InputError(
            f"{where}: two items at rank {bad % width} of one session; expected each rank once. "
            "Break ties in the ranking, or give exposures of a ranker that breaks them at random."
        )


def _of_rows(
    values: Array | None,
    rows: TableColumns,
    log: Impressions,
    unit: Ints,
    *,
    kept: Ints,
    what: str,
    only: str | None,
) -> Array | None:
    """The surface or group of each kept row of a target's table: its own, else that of its session, which has one."""
    listed = rows.texts(what)
    if listed is not None:
        return listed.cast(pl.String).to_numpy().astype(str)[kept]
    if values is None:
        return None
    of_unit = np.full(log.n_units, only or "", dtype=values.dtype)
    of_unit[log.unit] = values
    if (of_unit[log.unit] != values).any():
        raise InputError(
            f"{log.source}: a session has rows of several {what}s, so a target's list has no one {what}. "
            f"Make sessions of one {what}, or give {rows.where} a column {what}, or exposures instead of ranks."
        )
    empty = np.ones(log.n_units, dtype=bool)
    empty[log.unit] = False
    if only is None and empty[unit].any():
        raise InputError(
            f"{rows.where}: it ranks {len(np.unique(unit[empty[unit]])):,} sessions without a row in "
            f"{log.source}, whose {what} nothing tells. Give it a column {what}, or exposures instead of ranks."
        )
    return of_unit[unit]


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
