"""Targets as policies of a log: a column of it, or a table of all the items that a policy would rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Array, Log, Logged
from truerank.core.record import record
from truerank.core.wording import option
from truerank.exposure.policies import POSITION, Policy, TrafficCounts, WholeList, groups_of, rules_of
from truerank.exposure.positions.position_models import Positions
from truerank.io.columns import TableColumns, target_columns


@record
class RankColumn:
    """A column of the log with the rank that a policy gives each row's item; empty where it never shows the item."""

    column: str


@record
class ExposureColumn:
    """A column of the log with a policy's exposure of each row's item, or its probability of choosing it."""

    column: str


Target = RankColumn | ExposureColumn | Any  # or a table session, item and rank or exposure
RANKED = f"{option('temperature 0')} ranks them in order, a larger number at random"
EXPECTED = {"exposure": "a number from 0 to 1", "rank": "whole numbers from 1, or nothing in a column of the log"}
FEW_CELLS = 16  # of a table of sessions and ranks, for each of the ranks given
THE_LOG = (RankColumn("position"), ExposureColumn("propensity"))  # the logging policy as a target


def is_table(target: Target) -> bool:
    """Whether a target is a table beside the log."""
    return not isinstance(target, RankColumn | ExposureColumn)


def column_names(target: Target) -> tuple[str, ...]:
    """The columns of the log that a target needs."""
    return () if is_table(target) else (target.column,)


def target_policy(
    target: Target,
    logging: Policy,
    *,
    name: str,
    positions: Positions | None,
    columns: Mapping[str, str] | None = None,
    only: Mapping[str, str] | None = None,
) -> Policy:
    """The policy of a target, on the log of the logging policy.

    `only` names the surface and the group of all rows where the whole log has no other: that of sessions without a row.
    """
    log = logging.log
    if not is_table(target) and target in THE_LOG:
        # what the logging policy earns: every weight is 1, and as many items are exposed as were viewed
        viewed = np.bincount(log.unit if log.viewed is None else log.unit[log.viewed], minlength=log.n_units)
        return replace(logging, name=name, viewed=viewed.astype(np.float64) if log.logged is Logged.VIEWED else None)
    return policy_of(target, log, name=name, positions=positions, columns=columns, only=only)


def policy_of(
    target: Target,
    log: Log,
    *,
    name: str,
    positions: Positions | None,
    columns: Mapping[str, str] | None = None,
    only: Mapping[str, str] | None = None,
) -> Policy:
    """The policy of a column of the log, or of a table of all the items it would rank."""
    if is_table(target):
        return _from_table(target, log, name=name, positions=positions, columns=columns, only=only or {})
    key, ranked = target.column, isinstance(target, RankColumn)
    where = f"{name}, column {key!r}"
    if ranked and positions is None:
        raise InputError(f"{name}: a column of ranks needs a position model: {POSITION}.")
    logged = (log.position if ranked else log.propensity) if target in THE_LOG else None
    if logged is None and key not in log.columns:
        raise InputError(
            f"{name}: the log was read without column {key!r}; "
            "read it with extra=[...], or give the path or frame itself."
        )
    values = log.columns[key] if logged is None else logged
    if not ranked or positions is None:
        lost = int(np.count_nonzero(np.isnan(values)))
        if lost:
            raise InputError(
                f"{name}: {lost:,} rows have nothing in column {key!r}; expected an exposure in every row, 0 where the "
                "item is never shown."
            )
        _check_numbers(values, (values >= 0) & (values <= 1), "exposure", where=where)
        return Policy(name, log, values=frozen(values))
    if logged is None:
        present = ~np.isnan(values)
        values = np.where(present, values, 0).astype(np.int64)
        valid = ~present | ((log.columns[key] >= 1) & (log.columns[key] == values))
        _check_numbers(log.columns[key], valid, "rank", where=where)
        if log.sessions is not None:  # each rank once in a session, or in each of its surfaces
            rows = np.flatnonzero(values > 0)
            lists = log.unit[rows]
            if log.surface is not None:
                surface = np.unique(log.surface[rows], return_inverse=True)[1]
                lists = lists * (int(surface.max(initial=0)) + 1) + surface
            _check_ranks(lists, values[rows], where=where)
        values = values.astype(np.int32) if values.max(initial=0) < 2**31 else values
    rule, places = rules_of(positions, log), _places(log, values)
    return Policy(name, log, positions=positions, rank=frozen(values), rule=rule, places=places)


def mixed_policy(
    log: Log, loggers: Mapping[str, Target], *, counts: TrafficCounts, positions: Positions | None
) -> Policy:
    """ε0(x, a) = Σ_j α_j(x) ε_j(x, a) (multiple importance sampling, paper 3, section 4).

    `loggers` names, for each value of the log's column `logger`, the column with that policy's rank or exposure of
    every row. α_j is the share of units of logger j; among units of the same `group` where the log has one, since
    traffic may depend on it.
    """
    names = sorted(loggers)
    parts = tuple(policy_of(loggers[name], log, name=f"logger {name}", positions=positions) for name in names)
    group, group_names = groups_of(log)
    share = np.array([[counts.share(name, group_name) for group_name in group_names] for name in names])[:, group]
    return Policy("log", log, parts=parts, share=frozen(share))


def _check_numbers(values: Array, valid: Bools, what: str, *, where: str, in_order: bool = False) -> None:
    """Refuse the first value that is not valid; where rows are in the order of the file, by its row."""
    if not valid.all():
        row = int(np.argmin(valid))
        place = f" in row {row + 1:,}" if in_order else ""
        raise InputError(f"{where}: {what} of {values[row]:g}{place}; expected {EXPECTED[what]}.")


def _check_ranks(lists: Ints, rank: Array, *, where: str) -> None:
    width = int(rank.max(initial=0)) + 1
    cell = lists * width + rank
    n = int(cell.max(initial=-1)) + 1
    if n <= FEW_CELLS * len(cell):  # ticking them off is faster than sorting
        met = np.zeros(n, dtype=bool)
        met[cell] = True
        if int(np.count_nonzero(met)) == len(cell):
            return
    cell.sort()
    again = cell[1:] == cell[:-1]
    if again.any():
        bad = int(cell[int(np.argmax(again))])
        raise InputError(
            f"{where}: two items at rank {bad % width} of one session; expected each rank once. "
            "Break ties in the ranking, or give exposures of a ranker that breaks them at random."
        )


def _places(log: Log, rank: Array) -> Ints | None:
    """How many ranks each unit has, where the log has the number of its `candidates`.

    Logged items without a rank are never displayed, so there are as many places less.
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


# ------------------------------------------------------------------------------------------------------------- tables


def _from_table(
    source: Any,
    log: Log,
    *,
    name: str,
    positions: Positions | None,
    columns: Mapping[str, str] | None,
    only: Mapping[str, str],
) -> Policy:
    """From a table session, item and rank or exposure, in the order of sessions and items."""
    table = target_columns(source, columns, unnamed=name)
    where, session, ids = table.where, table.get("session"), table.get("item")
    unit = log.unit_of_session(session, where=f"{where}, column 'session'")
    item = log.items.locate(ids, where=f"{where}, column 'item'")
    exposure, rank = _exposure_or_rank(table, unit, positions)
    prediction = _numbers(table, "prediction")
    unlogged = session.filter(pl.Series(unit < 0)).n_unique()
    rows = _sorted_rows(log, unit, item, ids, where=where)
    unit, item = unit[rows], item[rows]
    rule = None
    if rank is not None and positions is not None and positions.differ:

        def of_rows(what: str) -> Array | None:
            values = table.find(what)
            if values is None:
                return _of_sessions(what, log, unit, where=where, only=only)
            missing = rows[values.gather(rows).is_null().to_numpy()]
            if len(missing):
                raise InputError(f"{where}: row {missing.min() + 1:,} has no {what}; expected one in every row.")
            return values.gather(rows).cast(pl.String).to_numpy().astype(str)

        surface = of_rows("surface") if positions.by_surface else None
        rule = positions.at(len(rows), surface=surface, group=of_rows("group") if positions.by_group else None)
    columns_of = (None if values is None else frozen(values[rows]) for values in (exposure, rank, prediction))
    exposure, rank, prediction = columns_of
    whole = WholeList(frozen(unit), frozen(item), rank=rank, values=exposure, rule=rule, prediction=prediction)
    ranked_units = np.zeros(log.n_units, dtype=bool)
    ranked_units[unit] = True
    policy = Policy(name, log, ranked_units=ranked_units, whole=whole, unlogged=unlogged)
    place = _rows_in(log, unit, item)
    if rank is None and exposure is not None:
        return replace(policy, values=frozen(_listed_at(exposure, place)))
    rules = None if positions is None else rules_of(positions, log)
    return replace(policy, positions=positions, rank=frozen(_listed_at(rank, place)), rule=rules)


def _listed_at(values: Any, place: Ints) -> Any:
    """The listed value of each row of a log, 0 where it is not listed."""
    return np.where(place < 0, 0, values[place]) if len(values) else np.zeros(len(place), dtype=values.dtype)


def _numbers(table: TableColumns, key: str) -> Floats | None:
    values = table.find(key)
    return None if values is None else table.finite(values).to_numpy()


def _exposure_or_rank(
    table: TableColumns, unit: Ints, positions: Positions | None
) -> tuple[Floats | None, Ints | None]:
    """The exposure or the rank of each row of a target's table."""
    where = table.where
    has_exposure, has_rank, has_score = (table.find(key) is not None for key in ("exposure", "rank", "score"))
    if has_score and not (has_exposure or has_rank):
        raise InputError(f"{where}: scores, and nothing says how they rank: {RANKED}.")
    if has_exposure == has_rank:
        present = "both rank and exposure" if has_rank else "neither rank nor exposure"
        raise InputError(f"{where}: {present} among {', '.join(table.table.columns)}; expected exactly one of the two.")
    exposure, values = (_numbers(table, key) for key in ("exposure", "rank"))
    if exposure is not None:
        _check_numbers(exposure, (exposure >= 0) & (exposure <= 1), "exposure", where=where, in_order=True)
    if values is None:
        return exposure, None
    if positions is None:
        raise InputError(f"{where}: ranks need a position model: {POSITION}.")
    rank = values.astype(np.int64)
    _check_numbers(values, (values >= 1) & (values == rank), "rank", where=where, in_order=True)
    _check_ranks(unit[unit >= 0], rank[unit >= 0], where=where)
    return None, rank


def _of_sessions(what: str, log: Log, unit: Ints, *, where: str, only: Mapping[str, str]) -> Array | None:
    """The surface or group of each row of a target's table: that of its session, which has one."""
    values: Array | None = log.surface if what == "surface" else log.group
    if values is None:
        return None
    of_unit, empty = np.full(log.n_units, only.get(what, ""), dtype=values.dtype), np.ones(log.n_units, dtype=bool)
    of_unit[log.unit], empty[log.unit] = values, False
    if (of_unit[log.unit] != values).any():
        raise InputError(
            f"{log.source}: a session has rows of several {what}s, so a target's list has no one {what}. "
            f"Make sessions of one {what}, or give {where} a column {what}, or exposures instead of ranks."
        )
    if what not in only and empty[unit].any():
        raise InputError(
            f"{where}: it ranks {len(np.unique(unit[empty[unit]])):,} sessions without a row in "
            f"{log.source}, whose {what} nothing tells. Give it a column {what}, or exposures instead of ranks."
        )
    return of_unit[unit]


def _sorted_rows(log: Log, unit: Ints, item: Ints, ids: pl.Series, *, where: str) -> Ints:
    """The rows of a target's table whose session the log has, by session, then item; no item twice in a session."""
    rows = np.flatnonzero(unit >= 0)
    code = item[rows].copy()
    strange = np.flatnonzero(code < 0)
    width = len(log.items)
    if len(strange):  # items that the log never shows come after all others, by their ids
        more, number = Ids.factorise(ids.gather(rows[strange]), where=f"{where}, column 'item'")
        code[strange] = width + number
        width += len(more)
    cell = unit[rows] * max(width, 1) + code
    if not (cell[1:] > cell[:-1]).all():
        order = np.argsort(cell, kind="stable")
        rows, cell = rows[order], cell[order]
        again = cell[1:] == cell[:-1]
        if again.any():
            bad = ids[int(rows[int(np.argmax(again))])]
            raise InputError(f"{where}: item {bad} is twice in one session; expected it once.")
    return rows


def _rows_in(log: Log, unit: Ints, item: Ints) -> Ints:
    """For each row of the log, where its (session, item) stands in a target's sorted table, -1 where it does not."""
    width = len(log.items) + 1
    order = np.flatnonzero(item >= 0)
    ordered = unit[order] * width + item[order]
    wanted = log.unit * width + log.item
    if not len(ordered):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[place] == wanted, order[place], -1)
