"""Read a log from a file or a frame, all at once or in chunks of whole units, checked once, here."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.errors import InputError, some
from truerank.core.ids import IdColumn, Ids
from truerank.core.log import Log, Logged, has_user_units
from truerank.core.progress import Watching, watching
from truerank.core.validation import Wanted, checked_arguments
from truerank.core.wording import columns_option, either
from truerank.io.batches import MATRIX, LazyTable
from truerank.io.columns import (
    ALL,
    DISPLAYED,
    LABELLED,
    PAIR,
    RULE,
    SHOWN,
    VALUE_NAMES,
    PositiveRule,
    TableColumns,
    check_columns,
    header,
    recognition,
    with_users,
    with_usual,
)
from truerank.io.facts import Distinct, Facts, located
from truerank.io.frames import by_user, is_sparse, population, rows_of, stored
from truerank.io.log_schema import OF_IMPRESSIONS, OF_LABELS, LogSchema, is_list
from truerank.io.sessions import notes_of
from truerank.io.times import time_array


@checked_arguments(positive=RULE)
def read(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    positive: str | PositiveRule | None = None,
    users: Ids | IdColumn | None = None,
    items: Ids | IdColumn | None = None,
    values: bool = True,
    name: str | None = None,
) -> Log:
    """Read a Log from a file, a frame, a dict or a sparse matrix.

    A folder of part files and a glob are read as one file. Text files may be gzipped. A relevance below 0 in qrels is
    read as 0.

    Parameters
    ----------
    source
        A Parquet, CSV, TSV or TREC qrels file, a polars, pandas or arrow frame, {user: [items]} or {user: {item:
        rating}}, or a scipy.sparse matrix, of which every stored entry is a row, explicit zeros too.
    columns
        Column names of the table by the names of this library, as {"user": "user_id"}; usual names are recognised.
    positive
        Which values are positive, as ">3"; not needed for 0/1. The value column is label, reward, rating or value.
    users
        All users, where there are more than the rows have; of a matrix the names of its rows.
    items
        All items, where there are more than the rows have; of a matrix the names of its columns.
    values
        False reads pairs alone.
    name
        Name of the source in messages.

    Returns
    -------
    Log
        Users, items, labels or values, and what else the columns have.

    Examples
    --------
    >>> log = read(pl.DataFrame({"user": ["b", "a"], "item": [7, 7], "rating": [5, 2]}), positive=">3")
    >>> log.users.texts(), log.label.tolist()
    (['a', 'b'], [0.0, 1.0])
    """
    if is_sparse(source):
        name, columns = name or MATRIX, None
        entries = stored(source, name=name)
        source = rows_of(entries, users=users, items=items, name=name)
        users = population(users, entries.shape[0], where=f"{name}, users")
        items = population(items, entries.shape[1], where=f"{name}, items")
    rows = by_user(source, value="rating") if isinstance(source, Mapping) else source
    schema = label_schema(rows, columns=columns, positive=positive, values=values, name=name)
    log = schema.log(schema.table.read(schema.needed), declared(users, "user"), declared(items, "item"))
    return replace(log, notes=schema.notes)


def declared(ids: Ids | IdColumn | None, kind: str) -> Ids | None:
    """The population that a caller gives."""
    return ids if ids is None or isinstance(ids, Ids) else Ids.of(ids, where=f"{kind}s")


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
) -> Log:
    """Impressions from a Parquet, CSV or TSV file, a folder of parts, a glob, or a frame.

    Columns: item; session (without it each row is its own unit); position; one or several rewards (by default the one
    called label, reward, rating or value); where known user, propensity (the logging exposure of the item, or the
    probability that it was chosen), viewed, candidates (how many items compete, or a list of them), surface, group,
    logger, time. Users, sessions, items, positions and propensities are also known by their usual names
    (`columns.USUAL`). `sessions` declares all
    sessions: those without a row count as sessions in which nothing was viewed.

    >>> log = read_impressions(pl.DataFrame({"session": [7, 7, 5], "item": [1, 2, 1], "position": [1, 2, 1],
    ...                                      "like": [0, 1, 1]}), rewards=["like"])
    >>> log.n_units, log.unit.tolist(), log.reward("like").tolist()
    (2, [0, 1, 1], [1, 0, 1])
    """
    table = LazyTable.of(source, columns=columns, name=name)

    def make(mapping: Mapping[str, str]) -> Log:
        schema = impression_schema(table, columns=mapping, rewards=rewards, extra=extra, logged=logged)
        log = schema.log(schema.table.read(schema.needed), declared(sessions, "session"), None)
        return replace(log, notes=schema.notes)

    log, notes = with_users(table.columns, dict(columns or {}), make, taken=[*(rewards or ()), *extra])
    facts = {key: Facts.of(values) for key, values in log.rewards.items()}
    n_empty = log.n_units - int(np.count_nonzero(np.diff(log.unit, prepend=-1)))
    n_users = len(log.users) if log.has_users else None
    counts = notes_of(log, facts, n_rows=len(log), n_units=log.n_units, n_users=n_users, n_empty=n_empty)
    return replace(log, notes=(*counts, *log.notes, *notes, *table.notes))


@checked_arguments(positive=RULE)
def scan(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    positive: str | PositiveRule | None = None,
    users: Ids | IdColumn | None = None,
    items: Ids | IdColumn | None = None,
    values: bool = True,
    name: str | None = None,
    progress: Watching = None,
) -> LogSchema:
    """What a file holds, found in one pass over what `read` would read; its rows are read when it is evaluated.

    `evaluate` takes it for labels, `exclude` and `candidates`: small files are held in memory, large ones read in
    chunks of whole users, so that they need not fit. Arguments are those of `read`.

    >>> rows = pl.DataFrame({"user": ["b", "a", "b"], "item": [7, 7, 8], "rating": [5, 0, 1]})
    >>> schema = scan(rows, positive=">3")
    >>> schema.users.texts(), schema.value_facts.maximum, schema.read(rows[1:2]).rewards["rating"].tolist()
    (['a', 'b'], 5.0, [0.0])
    """
    schema = label_schema(source, columns=columns, positive=positive, values=values, name=name)
    return scanned(schema, declared(users, "user"), declared(items, "item"), progress=progress)


def scan_impressions(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    rewards: Sequence[str] | None = None,
    extra: Collection[str] = (),
    logged: Logged = Logged.VIEWED,
    progress: Watching = None,
) -> LogSchema:
    """One pass over what `read_impressions` would read."""
    schema = impression_schema(source, columns=columns, rewards=rewards, extra=extra, logged=logged)
    return scanned(schema, progress=progress)


def scanned(
    schema: LogSchema, users: Ids | None = None, items: Ids | None = None, *, progress: Watching = None
) -> LogSchema:
    """The schema with the ids of all rows (or the declared ones, which must have all) and facts of all values."""
    table, where = schema.table, schema.table.where
    populations, names = {"item": items, "user": users}, {"item": schema.item, "user": schema.user}
    distinct = {kind: Distinct(f"{where}, column {kind!r}") for kind, name in names.items() if name}
    competing = Distinct(f"{where}, candidates")
    facts, before, all_viewed = {key: Facts() for key in schema.values}, 0, True
    with watching(progress) as report:
        for batch in table.batches(schema.needed):
            for kind, part in distinct.items():
                given = populations[kind]
                if given is None:
                    part.add(batch[names[kind]], before)
                else:
                    located(given, batch[names[kind]], kind=kind, where=part.where, before=before)
            columns = TableColumns(batch, schema.mapping, where, before)
            facts = {key: total + Facts.of(columns.values(key).to_numpy()) for key, total in facts.items()}
            for key, values in schema.checked(columns):
                all_viewed &= key != "viewed" or bool(values.all())
            for key in schema.extra:
                columns.any_numbers(key)
            listed = columns.find("candidates")
            if listed is not None and is_list(listed):
                competing.add(listed.explode().drop_nulls())
            before += len(batch)
            if report is not None:
                report(f"looking through {where}", before, table.n_rows)
    ids = {kind: given if (given := populations[kind]) is not None else part.ids() for kind, part in distinct.items()}
    if competing.parts:
        ids["item"] = Ids.union({distinct["item"].where: ids["item"], competing.where: competing.ids()})
    return replace(
        schema,
        users=ids.get("user", schema.users),
        items=ids["item"],
        facts=facts,
        all_viewed=all_viewed,
        users_declared=users is not None,
    )


# ------------------------------------------------------------------------------------------------------------- columns


def label_schema(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    positive: str | PositiveRule | None = None,
    values: bool = True,
    name: str | None = None,
    strict: bool = False,
) -> LogSchema:
    """The columns of rows of users and items, before the rows are read; without `values` of pairs alone.

    Of pairs alone, names of columns that the table does not have are those of other tables, unless `strict`.
    """
    table = LazyTable.of(source, name=name)
    mapping = with_usual(table.columns, check_columns(columns), LABELLED if values else PAIR)
    rule = PositiveRule.parse(positive) if isinstance(positive, str) else positive
    keys = _value_keys(table.columns, mapping, rule, where=table.where) if values else ()
    return _schema(
        table,
        mapping,
        (*PAIR, *(OF_LABELS if values else ()), *keys),
        (*PAIR, *keys),
        strict=values or strict,
        values=keys,
        rule=rule if values else None,
        notes=(*table.notes, *recognition(table.where, columns, mapping)),
    )


def impression_schema(
    source: Any,
    *,
    columns: Mapping[str, str] | None,
    rewards: Sequence[str] | None,
    extra: Collection[str],
    logged: Logged,
) -> LogSchema:
    """The columns of a log of impressions, before its rows are read."""
    table = LazyTable.of(source)
    mapping = with_usual(table.columns, check_columns(columns, also=(*(rewards or ()), *extra)), DISPLAYED)
    if table.n_rows == 0:
        raise InputError(f"{table.where}: no rows; expected one row for each item that was viewed.")
    keys = _reward_keys(table.columns, mapping, rewards, where=table.where)
    names = ("item", "user", "session", *OF_IMPRESSIONS)
    named = (key for key in names if key in mapping)
    return _schema(
        table,
        mapping,
        (*names, *keys, *extra),
        ("item", *named, *keys, *extra),
        ranked=True,
        values=keys,
        extra=tuple(extra),
        logged=logged,
        notes=recognition(table.where, columns, mapping),
    )


def _schema(
    table: LazyTable,
    mapping: Mapping[str, str],
    keys: Collection[str],
    required: Collection[str],
    *,
    strict: bool = True,
    ranked: bool = False,
    **options: Any,
) -> LogSchema:
    """A schema with the columns of these keys that there are; the `required` must be, if `strict` as they are named."""
    table = table.as_written(mapping)
    empty = header(table, mapping)
    columns = {key: empty.get(key, strict=strict) if key in required else empty.find(key) for key in keys}
    names = {key: column.name for key, column in columns.items() if column is not None}
    user, session = names.pop("user", ""), names.pop("session", "") if ranked else ""
    content = tuple(dict.fromkeys(names.values()))
    return LogSchema(table, mapping, user, names["item"], content, session=session, ranked=ranked, **options)


def _named_values(columns: Collection[str], mapping: Mapping[str, str]) -> list[str]:
    return [key for key in VALUE_NAMES if key in mapping] or [key for key in VALUE_NAMES if key in columns]


def _value_keys(
    columns: Collection[str], mapping: Mapping[str, str], rule: PositiveRule | None, *, where: str
) -> tuple[str, ...]:
    """Which of label, reward, rating and value the rows have: none where none is needed, one, or label and the values
    that labels were made of, as `write` keeps them beside the label.
    """
    keys = _named_values(columns, mapping)
    is_named = any(key in mapping for key in VALUE_NAMES)
    if rule is None and not is_named and len(keys) == 2 and keys[0] == "label":
        return tuple(keys)
    if len(keys) > 1:
        raise InputError(
            f"{where}: several value columns ({', '.join(keys)}); expected one. "
            f"Say which holds the label: {columns_option('label', keys[0])}."
        )
    if not keys and rule is not None and rule.comparison != ALL:
        raise InputError(
            f"{where}: no value column for the rule {rule}; found {some(list(columns), most=SHOWN)}. "
            f"Name the one that holds the values: {columns_option('label')}."
        )
    return tuple(keys)


def _reward_keys(
    columns: Collection[str], mapping: Mapping[str, str], names: Sequence[str] | None, *, where: str
) -> tuple[str, ...]:
    """The rewards that are requested, or the one value column that there is."""
    if names is not None:
        if not names or len(set(names)) < len(names):
            raise InputError(f"rewards {', '.join(names) or 'of no name'}; expected one or several different columns.")
        return tuple(names)
    keys = _named_values(columns, mapping)
    if len(keys) != 1:
        several = f"several value columns ({', '.join(keys)})" if keys else "no value column"
        raise InputError(
            f"{where}: {several}; found {some(list(columns), most=SHOWN)}. "
            f"Name the rewards: {either('--reward NAME, several times for several', 'rewards=[...]')}."
        )
    return tuple(keys)


# ------------------------------------------------------------------------------------------------- tables as they are


def as_fields(path: Path, columns: Mapping[str, str], *, text: bool) -> tuple[pl.DataFrame, Log]:
    """The table as it is (fields as text if that is wanted), and users, items and times in the order of its rows."""
    schema = label_schema(path, columns=columns, values=False, strict=True)
    rows, where = schema.table, schema.table.where
    table = rows.read()
    (users, user), (items, item) = (
        Ids.factorise(table[name], where=f"{where}, column {key!r}")
        for key, name in (("user", schema.user), ("item", schema.item))
    )
    times = TableColumns(table, with_usual(table.columns, schema.mapping, ("time",)), where).find("time")
    time = None if times is None else time_array(times)
    return rows.fields().read() if text else table, Log(users, items, user, item, {}, time=time, source=where)


def as_log(value: Any) -> Any:
    """The log of a frame or a file; anything else as it is."""
    return read(value) if isinstance(value, str | os.PathLike) or hasattr(value, "__arrow_c_stream__") else value


LOG = Wanted("a log as truerank.read gives it, a frame or a file", has_user_units, as_log)
