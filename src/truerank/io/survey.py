"""One pass over a source that may not fit into memory: what all rows say together, before they are read in chunks.

It resolves columns, checks every row where its number in the file can still be named, and collects the populations and
what decides the type of a column: so each chunk becomes what the same rows are when everything is read at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools
from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, as_ids
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.io.batches import LazyTable
from truerank.io.facts import Facts
from truerank.io.impression_columns import ImpressionColumns, Whole, reward_keys
from truerank.io.impressions import Impressions, Logged
from truerank.io.partition import Keyed
from truerank.io.read import (
    beside_label,
    check_columns,
    checked,
    column,
    find_column,
    located,
    log_of,
    value_key,
    values_of,
)
from truerank.io.read_impressions import OTHERS, impressions_of
from truerank.io.recognise import JUDGED, PAIR, taken, with_usual
from truerank.io.rules import RULE, PositiveRule

DENSE = 2**27  # whole numbers below it are collected in a table of flags
WAITING = 2**22  # ids that are kept before repeated ones are removed


@dataclass(slots=True)
class Distinct:
    """Distinct ids of a column that comes in batches; memory is that of the ids, not of the rows."""

    where: str
    flags: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    others: list[pl.Series] = field(default_factory=list)
    n_waiting: int = 0

    def add(self, column: pl.Series, before: int) -> pl.Series:
        """The column as ids; `before` counts the rows before these."""
        if column.null_count():
            row = before + int(column.is_null().arg_true()[0])
            raise InputError(
                f"{self.where}: row {row + 1} has no id; every row needs one. Remove or fill the empty ids."
            )
        ids = as_ids(column, where=self.where)
        if len(ids) == 0:
            return ids
        if ids.dtype == pl.Int64:
            values = ids.to_numpy()
            low, high = int(values.min()), int(values.max())
            if low >= 0 and high < DENSE:
                if high >= len(self.flags):
                    self.flags = np.concatenate([self.flags, np.zeros(high + 1 - len(self.flags), dtype=bool)])
                self.flags[values] = True
                return ids
        self.others.append(ids.unique())
        self.n_waiting += len(self.others[-1])
        if self.n_waiting > WAITING + len(self.others[0]):
            self.others = [self._joined().unique()]
            self.n_waiting = len(self.others[0])
        return ids

    def ids(self) -> Ids:
        if len(self.flags):
            self.others.append(pl.Series(np.flatnonzero(self.flags)))
        return Ids.of(self._joined() if self.others else pl.Series([], dtype=pl.Int64), where=self.where)

    def _joined(self) -> pl.Series:
        kinds = {str(part.dtype) for part in self.others}
        return pl.concat([part if len(kinds) == 1 else part.cast(pl.Int128) for part in self.others])


# ------------------------------------------------------------------------------------------------------------ judged


@dataclass(frozen=True, slots=True)
class LogSchema:
    """What is known of all rows of a log, so that chunks of them can be read.

    `users` and `items` are those of the rows, or the declared ones; `values` are facts of the value column.
    """

    table: LazyTable
    mapping: Mapping[str, str]
    user: str
    needed: tuple[str, ...]
    users: Ids
    items: Ids
    rule: PositiveRule | None = None
    values: Facts | None = None
    with_values: bool = True
    notes: tuple[str, ...] = ()  # what to say of how it is read
    users_declared: bool = False

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
        return log_of(
            chunk,
            self.mapping,
            rule=self.rule,
            users=users,
            items=self.items,
            values=self.with_values,
            where=self.table.where,
            binary=None if self.values is None else self.values.binary,
        )


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
    table, given = LazyTable.of(source, name=name, columns=columns), check_columns(columns)
    mapping = with_usual(table.columns, given, JUDGED if values else PAIR)
    table = table.as_written(mapping)
    where, empty = table.where, pl.DataFrame(schema=dict(table.schema))
    rule = PositiveRule.parse(positive) if isinstance(positive, str) else positive
    pair = {key: column(empty, key, mapping, where=where, strict=values).name for key in ("user", "item")}
    key = value_key(table.columns, mapping, rule, where=where) if values else ""
    value = column(empty, key, {key: mapping.get(key, key)}, where=where, strict=True).name if key else ""
    others = [find_column(empty, key, mapping) for key in ("propensity", "position", "inclusion", "session", "time")]
    grades = beside_label(table.columns, mapping) if key and rule is None else ""
    names = [
        *pair.values(),
        *([value] if value else []),
        *([grades] if grades else []),
        *(found.name for found in others if found is not None),
    ]
    declared = {
        kind: ids if ids is None or isinstance(ids, Ids) else Ids.of(ids, where=f"{kind}s")
        for kind, ids in (("user", users), ("item", items))
    }
    distinct = {kind: Distinct(f"{where}, column {kind!r}") for kind in pair}
    facts, before = Facts(), 0
    with watching(progress) as say:
        for batch in table.batches(names):
            for kind, column_name in pair.items():
                ids, known = distinct[kind].add(batch[column_name], before), declared[kind]
                if known is not None:
                    located(known, ids, kind=kind, where=f"{where}, column {kind!r}", before=before)
            if key:
                facts += Facts.of(values_of(batch, key, mapping, where=where, before=before).to_numpy())
            if grades:
                values_of(batch, grades, mapping, where=where, before=before)
            for optional in ("propensity", "position", "inclusion"):
                checked(batch, optional, mapping, where=where, before=before)
            before += len(batch)
            if say is not None:
                say(f"looking through {where}", before, table.n_rows)
    populations = {kind: known if known is not None else distinct[kind].ids() for kind, known in declared.items()}
    return LogSchema(
        table=table,
        mapping=mapping,
        user=pair["user"],
        needed=tuple(dict.fromkeys(names)),
        users=populations["user"],
        items=populations["item"],
        rule=rule,
        values=facts if key else None,
        with_values=values,
        notes=taken(where, given, mapping),
        users_declared=declared["user"] is not None,
    )


# ------------------------------------------------------------------------------------------------------- impressions


@dataclass(frozen=True, slots=True)
class ImpressionSchema:
    """What is known of all rows of an impression log, so that chunks of them can be read.

    `session` and `user` are the names of their columns, empty where there is none. `rewards` are facts by reward.
    """

    table: LazyTable
    mapping: Mapping[str, str]
    session: str
    user: str
    needed: tuple[str, ...]
    content: tuple[str, ...]
    users: Ids | None
    items: Ids
    rewards: Mapping[str, Facts]
    all_viewed: bool
    extra: tuple[str, ...] = ()
    logged: Logged = Logged.VIEWED

    def without_rows(self) -> ImpressionSchema:
        """What is needed to read chunks of it, without the rows and the users of the whole: small, to be sent."""
        return replace(self, table=self.table.without_rows(), users=None if self.users is None else Ids.of([]))

    @property
    def keyed(self) -> Keyed:
        """The table as chunks need it: by user, else by session, else rows that say the same together."""
        key = self.user or self.session
        return Keyed(self.table, key, self.needed, content=() if key else self.content)

    def read(self, chunk: pl.DataFrame, *, sessions: Ids | None = None) -> Impressions:
        """The impressions of a chunk, over all items; `sessions` are those declared for the chunk."""
        return impressions_of(
            chunk,
            self.mapping,
            rewards=tuple(self.rewards),
            extra=self.extra,
            sessions=sessions,
            logged=self.logged,
            where=self.table.where,
            whole=Whole(self.items, {key: facts.binary for key, facts in self.rewards.items()}, self.all_viewed),
        )


def survey_impressions(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    rewards: Sequence[str] | None = None,
    extra: Collection[str] = (),
    logged: Logged = Logged.VIEWED,
    name: str | None = None,
    progress: Watching = None,
) -> ImpressionSchema:
    """One pass over what `read_impressions` would read."""
    table, mapping = (
        LazyTable.of(source, name=name, columns=columns),
        check_columns(columns, also=(*(rewards or ()), *extra)),
    )
    where, empty = table.where, pl.DataFrame(schema=dict(table.schema))
    if table.n_rows == 0:
        raise InputError(f"{where}: no rows; expected one row for each item that was viewed.")
    found = ImpressionColumns(empty, mapping, slice(None), where)
    item = column(empty, "item", mapping, where=where, strict=True).name
    keys = reward_keys(table.columns, mapping, rewards, where=where)
    own = {key: column(empty, key, {key: mapping.get(key, key)}, where=where, strict=True).name for key in keys}
    others = {key: series.name for key in OTHERS if (series := found.find(key)) is not None}
    more = [column(empty, key, mapping, where=where, strict=True).name for key in extra]
    session, user = ("" if (at := found.find(key)) is None else at.name for key in ("session", "user"))
    content = tuple(dict.fromkeys([item, *own.values(), *others.values(), *more]))
    needed = tuple(dict.fromkeys(each for each in (session, user, *content) if each))
    listed = others.get("candidates", "")
    listed = listed if listed and isinstance(table.schema[listed], pl.List | pl.Array) else ""
    items, users = Distinct(f"{where}, column 'item'"), Distinct(f"{where}, column 'user'")
    competing = Distinct(f"{where}, column {listed!r}")
    facts, viewed, before = {key: Facts() for key in keys}, True, 0
    with watching(progress) as say:
        for batch in table.batches(needed):
            items.add(batch[item], before)
            if user:
                users.add(batch[user], before)
            if listed:
                competing.add(batch[listed].explode().drop_nulls(), 0)
            rows = ImpressionColumns(batch, mapping, slice(None), where, before=before)
            facts = {key: known + Facts.of(rows.reward(key)) for key, known in facts.items()}
            viewed = viewed and rows.viewed() is None
            rows.position()
            rows.probability("propensity")
            for key in ("surface", "group", "logger"):
                rows.filled(key)
            for key in extra:
                rows.number(key)
            before += len(batch)
            if say is not None:
                say(f"looking through {where}", before, table.n_rows)
    return ImpressionSchema(
        table=table,
        mapping=mapping,
        session=session,
        user=user,
        needed=needed,
        content=content,
        users=users.ids() if user else None,
        items=Ids.union({items.where: items.ids(), f"{where}, candidates": competing.ids()}),
        rewards=facts,
        all_viewed=viewed,
        extra=tuple(extra),
        logged=logged,
    )
