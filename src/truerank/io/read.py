"""Read a Log from a file or a frame, all at once or in chunks of whole users, checked once, here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, frozen
from truerank.core.errors import InputError, some
from truerank.core.ids import IdColumn, Ids
from truerank.core.log import Log
from truerank.core.progress import Watching
from truerank.core.record import record
from truerank.core.validation import checked_arguments
from truerank.core.wording import columns_option, option
from truerank.io.batches import MATRIX, LazyTable
from truerank.io.columns import (
    ALL,
    LABELLED,
    PAIR,
    RULE,
    SHOWN,
    VALUE_NAMES,
    PositiveRule,
    TableColumns,
    check_columns,
    header,
    is_binary,
    recognition,
    with_usual,
)
from truerank.io.frames import by_user, is_sparse, population, rows_of, stored
from truerank.io.partition import Keyed
from truerank.io.scan import Facts, located, scan_rows
from truerank.io.times import time_array

CHECKED = ("propensity", "position", "inclusion")


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
    """A Log from a Parquet, CSV, TSV or TREC qrels file, or from a polars, pandas or arrow frame.
    A dict gives the items of each user, {user: [items]}, or their values, {user: {item: rating}}.

    A folder of part files and a glob are read as one file. Text files may be gzipped. Of a scipy.sparse matrix every
    stored entry is a row, explicit zeros too; `users` and `items` then name its rows and columns in their order, which
    are numbered from 0 without them.

    `columns` maps this library's names to the file's (`{"user": "user_id"}`). The value column is one of label,
    reward, rating, value; 0/1 or boolean values are labels as they are, others become labels by `positive`, such as
    ">3". A relevance below 0 in qrels is read as 0. `users` and `items` declare populations larger than what the rows
    show. Without `values` only pairs are read.

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
    schema = LogSchema.of(rows, columns=columns, positive=positive, values=values, name=name)
    log = schema.log(schema.table.read(schema.needed), declared(users, "user"), declared(items, "item"))
    return replace(log, notes=schema.notes)


def declared(ids: Ids | IdColumn | None, kind: str) -> Ids | None:
    """The population that a caller gives."""
    return ids if ids is None or isinstance(ids, Ids) else Ids.of(ids, where=f"{kind}s")


@record
class LogSchema:
    """What is known of the rows of a log, so that chunks of them can be read.

    `users` and `items` are those of the rows, or the declared ones; `values` are facts of the value column. Both are
    found by `scan`. `value` and `grades` name the value column and the values that labels were made of beside it.
    """

    table: LazyTable
    mapping: Mapping[str, str]
    user: str
    item: str
    needed: tuple[str, ...]
    rule: PositiveRule | None = None
    value: str = ""
    grades: str = ""
    with_values: bool = True
    notes: tuple[str, ...] = ()  # what to report of how it is read
    users: Ids = field(default_factory=lambda: Ids.of([]))
    items: Ids = field(default_factory=lambda: Ids.of([]))
    values: Facts | None = None
    users_declared: bool = False

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        columns: Mapping[str, str] | None,
        positive: str | PositiveRule | None,
        values: bool,
        name: str | None,
    ) -> LogSchema:
        """The columns of a source, before its rows are read."""
        table = LazyTable.of(source, name=name, columns=columns)
        mapping = with_usual(table.columns, check_columns(columns), LABELLED if values else PAIR)
        table = table.as_written(mapping)
        rule = PositiveRule.parse(positive) if isinstance(positive, str) else positive
        empty = header(table, mapping)
        user, item = (empty.get(key, strict=values).name for key in PAIR)
        value = _value_key(table.columns, mapping, rule, where=table.where) if values else ""
        grades = _beside_label(table.columns, mapping) if value and rule is None else ""
        names = [user, item, *(empty.get(key, strict=True).name for key in (value, grades) if key)]
        others = (empty.find(key) for key in (*CHECKED, "session", "time"))
        names += [column.name for column in others if column is not None]
        return cls(
            table, mapping, user, item, tuple(dict.fromkeys(names)), rule if values else None, value, grades, values,
            recognition(table.where, columns, mapping),
        )  # fmt: skip

    def has(self, key: str) -> bool:
        """Whether there is a column for it."""
        return self.mapping.get(key, key) in self.needed

    def without_rows(self) -> LogSchema:
        """What is needed to read chunks of it, without the rows and the users of the whole: small, to be sent."""
        return replace(self, table=self.table.without_rows(), users=Ids.of([]))

    @property
    def keyed(self) -> Keyed:
        """The table as chunks need it: its rows by user."""
        return Keyed(self.table, self.user, self.needed)

    def read(self, chunk: pl.DataFrame, *, users: Ids | None = None) -> Log:
        """The Log of a chunk, over all items; `users` are those of the chunk, where some may be without rows."""
        return self.log(chunk, users, self.items)

    def log(self, rows: pl.DataFrame, users: Ids | None, items: Ids | None) -> Log:
        """The Log of rows, over the given populations or those of the rows."""
        where = self.table.where
        columns = TableColumns(rows, self.mapping, where)
        (users, user), (items, item) = (
            Ids.factorise(rows[name], where=f"{where}, column {kind!r}")
            if ids is None
            else (ids, located(ids, rows[name], kind=kind, where=f"{where}, column {kind!r}"))
            for kind, name, ids in (("user", self.user, users), ("item", self.item, items))
        )
        # one order for all files with the same rows: results cannot depend on how a file was sorted
        cell = user * max(len(items), 1) + item
        order = np.arange(len(cell)) if (cell[1:] >= cell[:-1]).all() else np.argsort(cell, kind="stable")

        def ordered(values: pl.Series | None) -> Any:
            return None if values is None else frozen(values.to_numpy()[order])

        propensity, position, inclusion = (columns.numbers(key) for key in CHECKED)
        time = columns.find("time")
        return Log(
            users=users,
            items=items,
            user=frozen(user[order]),
            item=frozen(item[order]),
            rewards={key: frozen(values[order]) for key, values in self._rewards(columns).items()},
            propensity=ordered(propensity),
            position=ordered(None if position is None else position.cast(pl.Int64)),
            session=ordered(columns.find("session")),
            time=None if time is None else frozen(time_array(time)[order]),
            inclusion=ordered(inclusion),
            source=where,
        )

    def _rewards(self, columns: TableColumns) -> dict[str, Floats]:
        """The value column as numbers, and the label where the values are binary or a rule is given."""
        key, rule, where = self.value, self.rule, self.table.where
        if not key:
            return {} if rule is None else {"label": np.ones(columns.table.height)}
        numbers = columns.values(key)
        binary = is_binary(numbers) if self.values is None else self.values.binary
        raw = "value" if key == "label" else key  # the name label is kept for what is 0 or 1
        if rule is not None and rule.comparison == ALL and binary and not bool((numbers == 1.0).all()):
            raise InputError(
                f"{where}: each row is said to be positive, but column {numbers.name!r} has 0. Leave "
                f"{option('positive')} out, or remove those rows."
            )
        if rule is not None:
            labels = rule.apply(numbers).cast(pl.Float64).to_numpy()
            return {"label": labels} if binary and key == "label" else {"label": labels, raw: numbers.to_numpy()}
        if not self.grades:
            return {"label" if binary else raw: numbers.to_numpy()}
        if not binary:
            raise InputError(
                f"{where}: values in label and in {self.grades}, and those of label are not 0 and 1; expected one of "
                f"the two. Say which holds the label: {columns_option('label', self.grades)}."
            )
        return {"label": numbers.to_numpy(), self.grades: columns.values(self.grades).to_numpy()}


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
    >>> schema.users.texts(), schema.values.maximum, schema.read(rows[1:2]).rewards["rating"].tolist()
    (['a', 'b'], 5.0, [0.0])
    """
    schema = LogSchema.of(source, columns=columns, positive=positive, values=values, name=name)

    def check(rows: TableColumns) -> None:
        for key in CHECKED:
            rows.numbers(key)

    populations, facts = scan_rows(
        schema.table,
        schema.mapping,
        schema.needed,
        ids={"user": schema.user, "item": schema.item},
        declared={"user": declared(users, "user"), "item": declared(items, "item")},
        values=[key for key in (schema.value, schema.grades) if key],
        check=check,
        progress=progress,
    )
    return replace(
        schema,
        users=populations["user"],
        items=populations["item"],
        values=facts.get(schema.value),
        users_declared=users is not None,
    )


def _value_key(columns: Collection[str], mapping: Mapping[str, str], rule: PositiveRule | None, *, where: str) -> str:
    """Which of label, reward, rating and value the rows have; empty where they have none, and need none."""
    keys = [key for key in VALUE_NAMES if key in mapping] or [key for key in VALUE_NAMES if key in columns]
    if len(keys) > 1 and not (rule is None and _beside_label(columns, mapping)):
        raise InputError(
            f"{where}: several value columns ({', '.join(keys)}); expected one. "
            f"Say which holds the label: {columns_option('label', keys[0])}."
        )
    if not keys and rule is not None and rule.comparison != ALL:
        raise InputError(
            f"{where}: no value column for the rule {rule}; found {some(list(columns), most=SHOWN)}. "
            f"Name the one that holds the values: {columns_option('label')}."
        )
    return keys[0] if keys else ""


def _beside_label(columns: Collection[str], mapping: Mapping[str, str]) -> str:
    """The values that labels were made of, as `write` keeps them in a column beside the label; empty where none are.

    >>> _beside_label(["user", "item", "label", "rating"], {}), _beside_label(["label", "rating"], {"label": "rating"})
    ('rating', '')
    """
    keys = [key for key in VALUE_NAMES if key in columns]
    is_named = any(key in mapping for key in VALUE_NAMES)
    return keys[1] if len(keys) == 2 and keys[0] == "label" and not is_named else ""


# ------------------------------------------------------------------------------------------------- tables as they are


@record
class PairColumns:
    """The names of the columns of users and items in a table, and of that of times where there is one."""

    user: str
    item: str
    time: str | None
    where: str


def pair_table(
    source: Any, columns: Mapping[str, str] | None = None, *, name: str | None = None, strict: bool = True
) -> tuple[LazyTable, PairColumns]:
    """A table of pairs with ids as they are written, before any row is read; and where its users and items are.

    Unless `strict`, names of columns that a table does not have are those of other tables.
    """
    rows = LazyTable.of(source, columns=columns, name=name)
    mapping = with_usual(rows.columns, columns or {}, (*PAIR, "time"))
    rows = rows.as_written(mapping)
    empty = header(rows, mapping)
    time = empty.find("time")
    user, item = (empty.get(key, strict=strict).name for key in PAIR)
    return rows, PairColumns(user, item, None if time is None else time.name, rows.where)


def as_fields(path: Path, columns: Mapping[str, str], *, text: bool) -> tuple[pl.DataFrame, Log]:
    """The table as it is (fields as text if that is wanted), and users, items and times in the order of its rows."""
    rows, names = pair_table(path, columns)
    table = rows.read()
    (users, user), (items, item) = (
        Ids.factorise(table[name], where=f"{rows.where}, column {key!r}")
        for key, name in (("user", names.user), ("item", names.item))
    )
    time = None if names.time is None else time_array(table[names.time])
    return rows.fields().read() if text else table, Log(users, items, user, item, {}, time=time, source=rows.where)
