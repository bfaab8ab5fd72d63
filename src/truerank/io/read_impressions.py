"""Read an impression log from a file or a frame, all at once or in chunks of whole clusters, checked once, here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Ints, frozen
from truerank.core.errors import InputError, some
from truerank.core.ids import IdColumn, Ids, Keys
from truerank.core.log import Pairs
from truerank.core.progress import Watching
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.validation import checked_arguments
from truerank.core.wording import either
from truerank.io.batches import LazyTable
from truerank.io.columns import SHOWN, VALUE_NAMES, TableColumns, check_columns, header, is_binary, with_users
from truerank.io.impressions import Impressions, Logged, check_sessions, notes_of
from truerank.io.partition import Keyed
from truerank.io.read import declared
from truerank.io.scan import Distinct, Facts, located, scan_rows

NAMES = ("surface", "group", "logger")
OTHERS = ("position", "propensity", "viewed", *NAMES, "time", "candidates")


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
    logger, time. A column of users is also known by its usual names (`columns.USUAL`). `sessions` declares all
    sessions: those without a row count as sessions in which nothing was viewed.

    >>> log = read_impressions(pl.DataFrame({"session": [7, 7, 5], "item": [1, 2, 1], "position": [1, 2, 1],
    ...                                      "like": [0, 1, 1]}), rewards=["like"])
    >>> log.n_units, log.unit.tolist(), log.reward("like").tolist()
    (2, [0, 1, 1], [1, 0, 1])
    """
    table = LazyTable.of(source, columns=columns, name=name)

    def make(mapping: Mapping[str, str]) -> Impressions:
        schema = ImpressionSchema.of(table, columns=mapping, rewards=rewards, extra=extra, logged=logged)
        return schema.log(schema.table.read(schema.needed), declared(sessions, "session"), None)

    log, notes = with_users(table.columns, dict(columns or {}), make, taken=[*(rewards or ()), *extra])
    facts = {key: Facts.of(values) for key, values in log.rewards.items()}
    n_empty = log.n_units - int(np.count_nonzero(np.diff(log.unit, prepend=-1)))
    n_users = None if log.users is None else len(log.users)
    counts = notes_of(log, facts, n_rows=len(log), n_units=log.n_units, n_users=n_users, n_empty=n_empty)
    return replace(log, notes=(*counts, *notes))


@record
class ImpressionSchema:
    """What is known of the rows of an impression log, so that chunks of them can be read.

    `session` and `user` are the names of their columns, empty where there is none; `content` names those that say what
    a row is. `users`, `items`, `facts` by reward and `all_viewed` are of all rows, found by `scan_impressions`.
    """

    table: LazyTable
    mapping: Mapping[str, str]
    session: str
    user: str
    item: str
    content: tuple[str, ...]
    rewards: tuple[str, ...]
    extra: tuple[str, ...] = ()
    logged: Logged = Logged.VIEWED
    users: Ids | None = None
    items: Ids = field(default_factory=lambda: Ids.of([]))
    facts: Mapping[str, Facts] = field(default_factory=dict)
    all_viewed: bool = False

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        columns: Mapping[str, str] | None,
        rewards: Sequence[str] | None,
        extra: Collection[str],
        logged: Logged,
    ) -> ImpressionSchema:
        """The columns of a source, before its rows are read."""
        mapping = check_columns(columns, also=(*(rewards or ()), *extra))
        table = LazyTable.of(source).as_written(mapping)
        if table.n_rows == 0:
            raise InputError(f"{table.where}: no rows; expected one row for each item that was viewed.")
        empty = header(table, mapping)

        def name_of(key: str) -> str:
            column = empty.get(key, strict=True) if key in mapping else empty.find(key)
            return "" if column is None else column.name

        item = empty.get("item", strict=True).name
        keys = _reward_keys(table.columns, mapping, rewards, where=table.where)
        names = [item, *map(name_of, OTHERS), *(empty.get(key, strict=True).name for key in (*keys, *extra))]
        content = tuple(dict.fromkeys(name for name in names if name))
        session, user = name_of("session"), name_of("user")
        return cls(table, mapping, session, user, item, content, tuple(keys), tuple(extra), logged)

    @property
    def needed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in (self.session, self.user, *self.content) if name))

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
        return self.log(chunk, sessions, self.items)

    def log(self, rows: pl.DataFrame, sessions: Ids | None, items: Ids | None) -> Impressions:
        """The impressions of these rows, over the given items or those of the rows."""
        where = self.table.where
        columns = TableColumns(rows, self.mapping, where)
        items, item = self._items(columns, items)
        units = self._units(columns, sessions, items, item)
        order = _order(units.unit, item, len(items)) if units.order is None else units.order

        def ordered(values: pl.Series | None) -> Any:
            if values is None:
                return None
            array = values.to_numpy()[order]  # a frame shares its memory with whoever made it
            return frozen(array.copy() if array.base is not None else array)

        def names(key: str) -> Any:
            column = columns.texts(key)
            return None if column is None else frozen(column.cast(pl.String).to_numpy().astype(str)[order])

        viewed = columns.numbers("viewed")
        all_viewed = viewed is None or (bool(viewed.all()) if not self.facts else self.all_viewed)
        log = Impressions(
            items=items,
            unit=frozen(units.unit[order]),
            item=frozen(item[order]),
            cluster=frozen(units.cluster),
            rewards={key: ordered(self._reward(columns, key)) for key in self.rewards},
            position=ordered(columns.numbers("position")),
            propensity=ordered(columns.numbers("propensity")),
            viewed=None if all_viewed else ordered(viewed),
            **{key: names(key) for key in NAMES},
            time=ordered(columns.find("time")),
            columns={key: ordered(columns.any_numbers(key)) for key in self.extra},
            sessions=units.sessions,
            session_of_unit=units.session_of_unit,
            users=units.users,
            unit_key=units.key,
            logged=self.logged,
            source=where,
        )
        check_sessions(log)
        candidates = columns.find("candidates")
        if candidates is None:
            return log

        def refuse(bad: Bools, what: str) -> None:
            if bad.any():
                row = int(np.argmax(bad)) if isinstance(order, slice) else int(order[np.argmax(bad)])
                # rows of a chunk have no number in the source, but their session has a name
                in_chunk = self.facts and self.session
                place = f"a row of session {rows[self.session][row]}" if in_chunk else f"row {row + 1}"
                raise InputError(f"{where}: {place}, {what}.")

        if isinstance(candidates.dtype, pl.List | pl.Array):
            listed = candidates.cast(pl.List(candidates.dtype.inner)).list.drop_nulls().list.sort()
            length, pairs = _listed(listed if isinstance(order, slice) else listed.gather(order), log, refuse)
            return replace(log, length=length, candidates=pairs)
        count = ordered(columns.numbers("candidates"))
        length = np.zeros(log.n_units, dtype=np.int64)
        length[log.unit] = count
        refuse(length[log.unit] != count, "candidates differ within a session; expected one number")
        shown = np.bincount(log.unit, minlength=log.n_units)
        refuse((shown > length)[log.unit], "a session has more rows than candidates; expected all that compete")
        return replace(log, length=frozen(length))

    def _items(self, columns: TableColumns, items: Ids | None) -> tuple[Ids, Ints]:
        """The items of the rows; with those that only compete, where candidates are listed."""
        shown, place = columns.table[self.item], f"{self.table.where}, column 'item'"
        if items is not None:
            return items, located(items, shown, kind="item", where=place)
        listed = columns.find("candidates")
        if listed is None or not isinstance(listed.dtype, pl.List | pl.Array):
            return Ids.factorise(shown, where=place)
        competing = Ids.of(listed.explode().drop_nulls(), where=f"{self.table.where}, column {listed.name!r}")
        items = Ids.union({place: Ids.of(shown, where=place), f"{self.table.where}, candidates": competing})
        return items, items.locate(shown)

    def _reward(self, columns: TableColumns, key: str) -> pl.Series:
        values = columns.values(key)
        binary = is_binary(values) if not self.facts else self.facts[key].binary
        return values.cast(pl.UInt8) if binary else values

    def _units(self, columns: TableColumns, sessions: Ids | None, items: Ids, item: Ints) -> _Units:
        """Units ordered by user, then session, so that results do not depend on the order of rows."""
        table, where = columns.table, self.table.where
        users, user = Ids.factorise(table[self.user], where=f"{where}, column 'user'") if self.user else (None, None)
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
            cluster = np.arange(len(table)) if user is None else user[order]
            unit_key = _unit_keys(key[order], None if user is None else cluster)
            return _Units(np.argsort(order), cluster, None, None, users, order, unit_key)
        session = table[self.session]
        place = f"{where}, column 'session'"
        if sessions is None:
            sessions, number = Ids.factorise(session, where=place)
        else:
            number = sessions.locate(session, where=place)
            if (number < 0).any():
                row = int(np.argmax(number < 0))
                raise InputError(f"{where}: row {row + 1}, session {session[row]!r} is not among the given sessions.")
        if user is None or users is None:
            return _Units(number, np.arange(len(sessions)), sessions, np.arange(len(sessions)), None)
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
        return _Units(np.argsort(session_of_unit)[number], owner[session_of_unit], sessions, session_of_unit, users)


class _Units(NamedTuple):
    unit: Ints
    cluster: Ints
    sessions: Ids | None
    session_of_unit: Ints | None
    users: Ids | None
    order: Ints | None = None  # of rows that are their own units
    key: Keys | None = None  # of these, in that order


def scan_impressions(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    rewards: Sequence[str] | None = None,
    extra: Collection[str] = (),
    logged: Logged = Logged.VIEWED,
    progress: Watching = None,
) -> ImpressionSchema:
    """One pass over what `read_impressions` would read."""
    schema = ImpressionSchema.of(source, columns=columns, rewards=rewards, extra=extra, logged=logged)
    where = schema.table.where
    competing, not_viewed = Distinct(f"{where}, candidates"), 0

    def check(rows: TableColumns) -> None:
        nonlocal not_viewed
        viewed, listed = rows.numbers("viewed"), rows.find("candidates")
        not_viewed += 0 if viewed is None else int((~viewed).sum())
        if listed is not None and isinstance(listed.dtype, pl.List | pl.Array):
            competing.add(listed.explode().drop_nulls(), 0)
        for key in ("position", "propensity"):
            rows.numbers(key)
        for key in NAMES:
            rows.texts(key)
        for key in schema.extra:
            rows.any_numbers(key)

    ids = {"item": schema.item, **({"user": schema.user} if schema.user else {})}
    populations, facts = scan_rows(
        schema.table, schema.mapping, schema.needed, ids=ids, declared={}, values=schema.rewards, check=check,
        progress=progress,
    )  # fmt: skip
    items = Ids.union({f"{where}, column 'item'": populations["item"], competing.where: competing.ids()})
    return replace(schema, users=populations.get("user"), items=items, facts=facts, all_viewed=not not_viewed)


def _reward_keys(
    columns: Collection[str], mapping: Mapping[str, str], names: Sequence[str] | None, *, where: str
) -> Sequence[str]:
    """The rewards that are requested, or the one value column that there is."""
    if names is not None:
        if not names or len(set(names)) < len(names):
            raise InputError(f"rewards {', '.join(names) or 'of no name'}; expected one or several different columns.")
        return names
    keys = [key for key in VALUE_NAMES if key in mapping] or [key for key in VALUE_NAMES if key in columns]
    if len(keys) != 1:
        several = f"several value columns ({', '.join(keys)})" if keys else "no value column"
        raise InputError(
            f"{where}: {several}; found {some(list(columns), most=SHOWN)}. "
            f"Name the rewards: {either('--reward NAME, several times for several', 'rewards=[...]')}."
        )
    return keys


def _listed(listed: pl.Series, log: Impressions, refuse: Any) -> tuple[Ints, Pairs]:
    """Candidates by name: the same in every row of a unit, each once, and among them all that was shown."""
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


def _order(unit: Ints, item: Ints, n_items: int) -> Ints | slice:
    """Rows by unit, then item: no result depends on how a file was sorted. Rows that stand so are taken as they are."""
    later, same = unit[1:] > unit[:-1], unit[1:] == unit[:-1]
    if (later | (same & (item[1:] >= item[:-1]))).all():
        return slice(None)
    return np.argsort(unit * max(n_items, 1) + item, kind="stable")
