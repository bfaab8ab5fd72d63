"""What is known of the rows of a log before they are read: which column holds what; and the log of some of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids, Keys
from truerank.core.log import Log, Logged, Pairs
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.wording import columns_option, option
from truerank.io.batches import LazyTable
from truerank.io.columns import ALL, NUMBERS, PositiveRule, TableColumns, is_binary
from truerank.io.facts import Facts, located
from truerank.io.partition import Keyed
from truerank.io.sessions import check_sessions
from truerank.io.times import time_array

NAMES = ("surface", "group", "logger")
OF_LABELS = ("propensity", "position", "inclusion", "session", "time")  # columns beside ids and values
OF_IMPRESSIONS = ("position", "propensity", "viewed", *NAMES, "time", "candidates")


@record
class LogSchema:
    """What is known of the rows of a log, so that chunks of them can be read.

    `user`, `item` and `session` are the names of their columns, empty where there is none; `content` names those that
    say what a row is, `values` the keys of the value columns. With `ranked` the rows are impressions, whose units are
    sessions; else labels, whose units are users. `users`, `items`, `facts` by value and `all_viewed` are of all rows,
    found by a scan.
    """

    table: LazyTable
    mapping: Mapping[str, str]
    user: str
    item: str
    content: tuple[str, ...]
    values: tuple[str, ...]
    session: str = ""
    ranked: bool = False
    rule: PositiveRule | None = None
    extra: tuple[str, ...] = ()
    logged: Logged = Logged.VIEWED
    notes: tuple[str, ...] = ()  # what to report of how it is read
    users: Ids = field(default_factory=lambda: Ids.of([]))
    items: Ids = field(default_factory=lambda: Ids.of([]))
    facts: Mapping[str, Facts] = field(default_factory=dict)
    all_viewed: bool = False
    users_declared: bool = False

    def __len__(self) -> int:
        return self.table.n_rows

    @property
    def source(self) -> str:
        return self.table.where

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys(name for name in (self.session, self.user, *self.content) if name))

    @property
    def value_facts(self) -> Facts | None:
        """Facts of the value column of labels, after a scan."""
        return self.facts.get(self.values[0]) if self.values else None

    def has(self, key: str) -> bool:
        """Whether there is a column for it."""
        return self.mapping.get(key, key) in self.needed

    def without_rows(self) -> LogSchema:
        """What is needed to read chunks of it, without the rows and the users of the whole: small, to be sent."""
        return replace(self, table=self.table.without_rows(), users=Ids.of([]))

    @property
    def keyed(self) -> Keyed:
        """The table as chunks need it: by user, else by session, else rows that say the same together."""
        key = self.user or self.session
        return Keyed(self.table, key, self.needed, content=() if key else self.content)

    def read(self, chunk: pl.DataFrame, *, units: Ids | None = None) -> Log:
        """The log of a chunk, over all items; `units` are the users or sessions of the chunk, some without rows."""
        return self.log(chunk, units, self.items)

    def log(self, rows: pl.DataFrame, units: Ids | None, items: Ids | None) -> Log:
        """The log of these rows, over the given units and items, or those of the rows."""
        where = self.table.where
        columns = TableColumns(rows, self.mapping, where)
        items, item = self._items(columns, items)
        if self.ranked:
            unit, order, of_units = self._ranked_units(columns, units, items, item)
        else:
            users, unit = _positions(rows[self.user], units, kind="user", where=where)
            order, of_units = None, {"users": users}
        order = _order(unit, item, len(items)) if order is None else order

        def ordered(values: Any) -> Any:
            array = values[order]
            return frozen(array.copy() if array.base is not None else array)  # a frame shares its memory

        rewards = self._numbers(columns) if self.ranked else self._labels(columns)
        optional = {key: ordered(values) for key, values in self._optional(columns)}
        log = Log(
            items=items,
            unit=frozen(unit[order]),
            item=frozen(item[order]),
            rewards={key: ordered(values) for key, values in rewards.items()},
            columns={key: ordered(columns.any_numbers(key).to_numpy()) for key in self.extra},
            logged=self.logged,
            source=where,
            **optional,
            **of_units,
        )
        if not self.ranked:
            return log
        check_sessions(log)
        candidates = columns.find("candidates")
        return log if candidates is None else self._with_candidates(log, columns, candidates, order)

    def _items(self, columns: TableColumns, items: Ids | None) -> tuple[Ids, Ints]:
        """The items of the rows; with those that are only candidates, where these are listed."""
        ids, where = columns.table[self.item], self.table.where
        listed = columns.find("candidates") if self.ranked else None
        if items is not None or listed is None or not is_list(listed):
            return _positions(ids, items, kind="item", where=where)
        place = f"{where}, column 'item'"
        competing = Ids.of(listed.explode().drop_nulls(), where=f"{where}, column {listed.name!r}")
        items = Ids.union({place: Ids.of(ids, where=place), f"{where}, candidates": competing})
        return items, items.locate(ids)

    def _optional(self, columns: TableColumns) -> Iterator[tuple[str, Any]]:
        """The arrays of columns beside ids and values, one at a time."""
        for key, values in self.checked(columns):
            if key in NAMES:
                yield key, values.cast(pl.String).to_numpy().astype(str)
            elif key != "viewed" or not (self.all_viewed if self.facts else bool(values.all())):
                yield key, time_array(values) if key == "time" else values.to_numpy()

    def checked(self, columns: TableColumns) -> Iterator[tuple[str, pl.Series]]:
        """The columns beside ids and values that there are, without candidates, checked as each is read."""
        for key in OF_IMPRESSIONS[:-1] if self.ranked else OF_LABELS:
            read = columns.texts if key in NAMES else columns.numbers if key in NUMBERS else columns.find
            values = read(key)
            if values is not None:
                yield key, values

    def _is_binary(self, key: str, numbers: pl.Series) -> bool:
        return self.facts[key].binary if key in self.facts else is_binary(numbers)

    def _numbers(self, columns: TableColumns) -> dict[str, Any]:
        """Rewards, those of 0 and 1 in the narrowest type."""
        numbers = {key: columns.values(key) for key in self.values}
        return {
            key: (values.cast(pl.UInt8) if self._is_binary(key, values) else values).to_numpy()
            for key, values in numbers.items()
        }

    def _labels(self, columns: TableColumns) -> dict[str, Floats]:
        """The value column as numbers, and the label where the values are binary or a rule is given."""
        rule, where = self.rule, self.table.where
        if not self.values:
            return {} if rule is None else {"label": np.ones(columns.table.height)}
        key, *grades = self.values
        numbers = columns.values(key)
        binary = self._is_binary(key, numbers)
        raw = "value" if key == "label" else key  # the name label is kept for what is 0 or 1
        if rule is not None and rule.comparison == ALL and binary and not bool((numbers == 1.0).all()):
            raise InputError(
                f"{where}: each row is said to be positive, but column {numbers.name!r} has 0. Leave "
                f"{option('positive')} out, or remove those rows."
            )
        if rule is not None:
            labels = rule.apply(numbers).cast(pl.Float64).to_numpy()
            return {"label": labels} if binary and key == "label" else {"label": labels, raw: numbers.to_numpy()}
        if not grades:
            return {"label" if binary else raw: numbers.to_numpy()}
        if not binary:
            raise InputError(
                f"{where}: values in label and in {grades[0]}, and those of label are not 0 and 1; expected one of "
                f"the two. Say which holds the label: {columns_option('label', grades[0])}."
            )
        return {"label": numbers.to_numpy(), grades[0]: columns.values(grades[0]).to_numpy()}

    # --------------------------------------------------------------------------------------------- units of impressions

    def _ranked_units(
        self, columns: TableColumns, sessions: Ids | None, items: Ids, item: Ints
    ) -> tuple[Ints, Ints | None, dict[str, Any]]:
        """The unit of each row, their order where rows are units, and the columns of units: those are ordered by user,
        then session, so that results do not depend on the order of rows.
        """
        table, where = columns.table, self.table.where
        users, user = Ids.of([]), None
        if self.user:
            users, user = Ids.factorise(table[self.user], where=f"{where}, column 'user'")
        if not self.session:
            if sessions is not None:
                raise InputError(
                    f"{where}: sessions are declared, but the log has no column session. Name it with columns."
                )
            # a number of each row, made of all that it says: neither the order of a file nor the other rows change it
            key = items.keys()[item]
            for name in self.content[1:]:
                if not table[name].dtype.is_nested():
                    key = cell_keys(0, "rows", key, _words(table[name]))
            order = pl.Series(key).arg_sort().to_numpy().astype(np.int64)
            order = order if user is None else order[np.argsort(user[order], kind="stable")]
            cluster = None if user is None else user[order]
            return np.argsort(order), order, {
                "users": users, "cluster": cluster, "unit_key": _unit_keys(key[order], cluster)
            }  # fmt: skip
        session = table[self.session]
        place = f"{where}, column 'session'"
        if sessions is None:
            sessions, number = Ids.factorise(session, where=place)
        else:
            number = sessions.locate(session, where=place)
            if (number < 0).any():
                row = int(np.argmax(number < 0))
                raise InputError(f"{where}: row {row + 1}, session {session[row]!r} is not among the given sessions.")
        if user is None:
            of_units = {"users": users, "sessions": sessions, "session_of_unit": np.arange(len(sessions))}
            return number, None, of_units
        owner = np.full(len(sessions), -1, dtype=np.int64)
        owner[number] = user
        if (owner[number] != user).any():
            row = int(np.argmax(owner[number] != user))
            raise InputError(
                f"{where}: row {row + 1}, session {session[row]!r} belongs to two users; expected one user for each "
                "session. Make session ids that differ between users."
            )
        alone = owner < 0  # a session without a row has no known user: a cluster of its own
        owner[alone] = len(users) + np.arange(int(alone.sum()))
        session_of_unit = np.argsort(owner, kind="stable")
        return np.argsort(session_of_unit)[number], None, {
            "users": users, "sessions": sessions, "session_of_unit": session_of_unit,
            "cluster": frozen(owner[session_of_unit]),
        }  # fmt: skip

    def _with_candidates(self, log: Log, columns: TableColumns, candidates: pl.Series, order: Any) -> Log:
        """The log with how many items compete in each unit and, where they are listed, which."""
        place = np.arange(len(log))[order]

        def refuse(bad: Any, what: str) -> None:
            if bad.any():
                row = int(place[np.argmax(bad)])
                # rows of a chunk have no number in the source, but their session has a name
                in_chunk = self.facts and self.session
                name = f"a row of session {columns.table[self.session][row]}" if in_chunk else f"row {row + 1}"
                raise InputError(f"{log.source}: {name}, {what}.")

        if isinstance(candidates.dtype, pl.List | pl.Array):
            listed = candidates.cast(pl.List(candidates.dtype.inner)).list.drop_nulls().list.sort()
            length, pairs = _listed(listed.gather(place), log, refuse)
            return replace(log, length=length, candidates=pairs)
        count = np.asarray(columns.numbers("candidates"))[order]
        length = np.zeros(log.n_units, dtype=np.int64)
        length[log.unit] = count
        refuse(length[log.unit] != count, "candidates differ within a session; expected one number")
        n_rows = np.bincount(log.unit, minlength=log.n_units)
        refuse((n_rows > length)[log.unit], "a session has more rows than candidates; expected all that compete")
        return replace(log, length=frozen(length))


def is_list(column: pl.Series) -> bool:
    """Whether a column of candidates lists them, rather than counts them."""
    return isinstance(column.dtype, pl.List | pl.Array)


def _positions(column: pl.Series, ids: Ids | None, *, kind: str, where: str) -> tuple[Ids, Ints]:
    """The ids, those of the column by default, and the position of each row's."""
    place = f"{where}, column {kind!r}"
    return Ids.factorise(column, where=place) if ids is None else (ids, located(ids, column, kind=kind, where=place))


def _listed(listed: pl.Series, log: Log, refuse: Callable[[Any, str], None]) -> tuple[Ints, Pairs]:
    """Candidates by name: the same in every row of a unit, each once, and among them all that was displayed."""
    first = np.searchsorted(log.unit, log.unit)
    same = listed.eq_missing(listed.gather(first)).to_numpy()
    refuse(~same, "candidates differ within a session; expected one list")
    twice = (listed.list.n_unique() != listed.list.len()).fill_null(value=False).to_numpy()
    refuse(twice, "a candidate is listed twice; expected each once")
    first = np.unique(first)
    listed = listed.gather(first)
    count = listed.list.len().fill_null(0).to_numpy().astype(np.int64)
    length = np.zeros(log.n_units, dtype=np.int64)
    length[log.unit[first]] = count
    flat = listed.filter(pl.Series(count > 0)).explode()
    item = log.items.locate(flat, where=f"{log.source}, column {listed.name!r}")
    unit, width = np.repeat(log.unit[first], count), len(log.items)
    absent = ~np.isin(log.unit * width + log.item, unit * width + item)
    refuse(absent, "the item is not among its candidates; expected all that compete")
    return frozen(length), Pairs.of(unit, item, n_units=log.n_units)


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
        texts, number = Ids.factorise(whole.cast(pl.String).fill_null("\0"))
        return texts.keys()[number]
    return whole.fill_null(-1 if whole.dtype.is_signed_integer() else 0).to_numpy().astype(np.int64).view(np.uint64)


def _order(unit: Ints, item: Ints, n_items: int) -> Any:
    """Rows by unit, then item: no result depends on how a file was sorted. Rows that stand so are taken as they are."""
    later, same = unit[1:] > unit[:-1], unit[1:] == unit[:-1]
    if (later | (same & (item[1:] >= item[:-1]))).all():
        return slice(None)
    return np.argsort(unit * max(n_items, 1) + item, kind="stable")
