"""Read an impression log from a file or a frame, checked once, here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Ints, frozen
from truerank.core.calls import checked_arguments
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, Keys
from truerank.io.batches import LazyTable
from truerank.io.facts import Facts
from truerank.io.impression_columns import ImpressionColumns, Whole, check_sessions, notes_of, reward_keys
from truerank.io.impressions import Impressions, Logged
from truerank.io.read import VALUE_NAMES, check_columns, column, find_column, located
from truerank.io.recognise import with_users

OTHERS = ("position", "propensity", "viewed", "surface", "group", "logger", "time", "candidates")


@checked_arguments()
def read_impressions(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    rewards: Sequence[str] | None = None,
    extra: Collection[str] = (),
    sessions: Ids | IdColumn | None = None,
    logged: Logged = Logged.VIEWED,
    name: str | None = None,
) -> Impressions:
    """Impressions from a Parquet, CSV or TSV file, a folder of parts, a glob, or a frame.

    Columns: item; session (without it each row is its own unit); position; one or several rewards (by default the one
    called label, reward, rating or value); where known user, propensity (the logging exposure of the item, or the
    probability that it was chosen), viewed, candidates (how many items compete, or a list of them), surface, group,
    logger, time. A column of users is also known by its usual names (`data.recognise`). `sessions` declares all
    sessions: those without a row count as sessions in which nothing was viewed.

    >>> log = read_impressions(pl.DataFrame({"session": [7, 7, 5], "item": [1, 2, 1], "position": [1, 2, 1],
    ...                                      "like": [0, 1, 1]}), rewards=["like"])
    >>> log.n_units, log.unit.tolist(), log.reward("like").tolist()
    (2, [0, 1, 1], [1, 0, 1])
    """
    lazy = LazyTable.of(source, columns=columns)
    table, where = lazy.read(), name or lazy.where

    def made(mapping: Mapping[str, str]) -> Impressions:
        written = lazy.as_written(mapping)  # users may be recognised by the name of their column
        return impressions_of(
            table if written is lazy else written.read(),
            mapping,
            rewards=rewards,
            extra=extra,
            sessions=sessions,
            logged=logged,
            where=where,
            whole=None,
        )

    mapping = check_columns(columns, also=(*(rewards or ()), *extra))
    found, said = with_users(table.columns, mapping, made, taken=[*(rewards or ()), *extra])
    facts = {key: Facts.of(values) for key, values in found.rewards.items()}
    empty = found.n_units - int(np.count_nonzero(found.unit[1:] != found.unit[:-1])) - min(len(found), 1)
    n_users = None if found.users is None else len(found.users)
    return replace(
        found,
        notes=(
            *notes_of(found, facts, n_rows=len(found), n_units=found.n_units, n_users=n_users, n_empty=empty),
            *said,
        ),
    )


def impressions_of(
    table: pl.DataFrame,
    mapping: Mapping[str, str],
    *,
    rewards: Sequence[str] | None,
    extra: Collection[str],
    sessions: Ids | IdColumn | None,
    logged: Logged,
    where: str,
    whole: Whole | None,
) -> Impressions:
    """Impressions of these rows, all or (where `whole` tells about all) whole units of them."""
    if len(table) == 0 and whole is None:
        raise InputError(f"{where}: no rows; expected one row for each item that was viewed.")
    items, item = _items(table, mapping, where=where, whole=whole)
    used = [*OTHERS, *(rewards or VALUE_NAMES), *extra]
    units = _units(table, mapping, sessions, item_key=lambda: items.keys()[item], used=used, where=where)
    order = _order(units.unit, item, len(items)) if units.order is None else units.order
    optional = ImpressionColumns(table, mapping, order, where, whole=whole, kept=True)
    found = Impressions(
        items=items,
        unit=frozen(units.unit[order]),
        item=frozen(item[order]),
        cluster=frozen(units.cluster),
        rewards={key: optional.reward(key) for key in reward_keys(table.columns, mapping, rewards, where=where)},
        position=optional.position(),
        propensity=optional.probability("propensity"),
        viewed=optional.viewed(),
        surface=optional.text("surface"),
        group=optional.text("group"),
        logger=optional.text("logger"),
        time=optional.plain("time"),
        columns={each: optional.number(each) for each in extra},
        sessions=units.sessions,
        session_of_unit=units.session_of_unit,
        users=units.users,
        unit_key=units.key,
        logged=logged,
        source=where,
    )
    check_sessions(found)
    length, candidates = optional.candidates(found)
    return replace(found, length=length, candidates=candidates)


def _items(table: pl.DataFrame, mapping: Mapping[str, str], *, where: str, whole: Whole | None) -> tuple[Ids, Ints]:
    """The items of the rows; with those that only compete, where candidates are listed."""
    shown = column(table, "item", mapping, where=where, strict=True)
    if whole is not None:
        return whole.items, located(whole.items, shown, kind="item", where=f"{where}, column 'item'")
    listed = find_column(table, "candidates", mapping)
    if listed is None or not isinstance(listed.dtype, pl.List | pl.Array):
        return Ids.factorise(shown, where=f"{where}, column 'item'")
    parts = {
        f"{where}, column 'item'": Ids.of(shown, where=f"{where}, column 'item'"),
        f"{where}, candidates": Ids.of(listed.explode().drop_nulls(), where=f"{where}, column {listed.name!r}"),
    }
    items = Ids.union(parts)
    return items, items.locate(shown)


# --------------------------------------------------------------------------------------------------------------- units


@dataclass(frozen=True, slots=True)
class _Units:
    unit: Ints
    cluster: Ints
    sessions: Ids | None
    session_of_unit: Ints | None
    users: Ids | None
    order: Ints | None = None  # of rows that are their own units
    key: Keys | None = None  # of these, in that order


def _units(
    table: pl.DataFrame,
    mapping: Mapping[str, str],
    declared: Any,
    *,
    item_key: Callable[[], Keys],
    used: Sequence[str],
    where: str,
) -> _Units:
    """Units ordered by user, then session, so that results do not depend on the order of rows."""
    session_column = find_column(table, "session", mapping, strict="session" in mapping)
    if session_column is None and "session" in mapping:
        column(table, "session", mapping, where=where, strict=True)
    user_column = find_column(table, "user", mapping, strict="user" in mapping)
    users, user = (None, None) if user_column is None else Ids.factorise(user_column, where=f"{where}, column 'user'")
    if session_column is None:
        if declared is not None:
            raise InputError(
                f"{where}: sessions are declared, but the log has no column session. Name it with columns."
            )
        n = len(table)
        key = _content_keys(table, mapping, item_key(), used)
        order = pl.Series(key).arg_sort().to_numpy().astype(np.int64)
        order = order if user is None else order[np.argsort(user[order], kind="stable")]
        unit = np.empty(n, dtype=np.int64)
        unit[order] = np.arange(n)
        cluster = np.arange(n) if user is None else user[order]
        return _Units(unit, cluster, None, None, users, order, _unit_keys(key[order], cluster if users else None))
    if declared is None:
        sessions, at = Ids.factorise(session_column, where=f"{where}, column 'session'")
    else:
        sessions = declared if isinstance(declared, Ids) else Ids.of(declared, where="sessions")
        at = sessions.locate(session_column, where=f"{where}, column 'session'")
        if (at < 0).any():
            row = int(np.argmax(at < 0))
            raise InputError(
                f"{where}: row {row + 1}, session {session_column[row]!r} is not among the given sessions."
            )
    if user is None or users is None:
        return _Units(at, np.arange(len(sessions)), sessions, np.arange(len(sessions)), None)
    owner = np.full(len(sessions), -1, dtype=np.int64)
    owner[at] = user
    if (owner[at] != user).any():
        row = int(np.argmax(owner[at] != user))
        raise InputError(
            f"{where}: row {row + 1}, session {session_column[row]!r} belongs to two users; expected one user for each "
            "session. Make session ids that differ between users."
        )
    alone = owner < 0  # a session without a row has no known user: a cluster of its own
    owner[alone] = len(users) + np.arange(int(alone.sum()))
    session_of_unit = np.argsort(owner, kind="stable")
    unit_of = np.empty(len(sessions), dtype=np.int64)
    unit_of[session_of_unit] = np.arange(len(sessions))
    return _Units(unit_of[at], owner[session_of_unit], sessions, session_of_unit, users)


def _content_keys(table: pl.DataFrame, mapping: Mapping[str, str], item_key: Keys, used: Sequence[str]) -> Keys:
    """A number of 64 bits of each row without a session, made of all that it says: neither the order of a file nor the
    other rows change it. Rows of the same number say the same, so that they may stand for each other.
    """
    key = item_key
    for name in dict.fromkeys(used):
        found = find_column(table, name, mapping)
        if found is not None and not found.dtype.is_nested():
            key = cell_keys(0, "rows", key, _words(found))
    return key


def _unit_keys(key: Keys, cluster: Ints | None) -> Keys:
    """Keys of rows that are units, in their order: their content and their number among equals (of one user)."""
    new = np.ones(len(key), dtype=bool)
    new[1:] = key[1:] != key[:-1]
    if cluster is not None:
        new[1:] |= cluster[1:] != cluster[:-1]
    first = np.maximum.accumulate(np.where(new, np.arange(len(key)), 0))
    return frozen(cell_keys(0, "equals", key, (np.arange(len(key)) - first).astype(np.uint64)))


def _words(values: pl.Series) -> Keys:
    """A number of 64 bits for each value."""
    if values.dtype.is_float():
        return values.cast(pl.Float64).fill_null(np.nan).to_numpy().view(np.uint64)
    whole = values.cast(pl.Int8) if values.dtype == pl.Boolean else values
    if whole.dtype.is_temporal():
        whole = whole.to_physical()
    if not whole.dtype.is_integer():
        texts, at = Ids.factorise(whole.cast(pl.String).fill_null("\0"))
        return texts.keys()[at]
    return whole.fill_null(-1 if whole.dtype.is_signed_integer() else 0).to_numpy().astype(np.int64).view(np.uint64)


def _order(unit: Ints, item: Ints, n_items: int) -> Ints | slice:
    """Rows by unit, then item: no result depends on how a file was sorted. Rows that stand so are taken as they are."""
    later, same = unit[1:] > unit[:-1], unit[1:] == unit[:-1]
    if (later | (same & (item[1:] >= item[:-1]))).all():
        return slice(None)
    return np.argsort(unit * max(n_items, 1) + item, kind="stable")
