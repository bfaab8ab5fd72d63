"""Read an impression log from a file or a frame, checked once, here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, Keys
from truerank.core.log import Pairs
from truerank.data.impressions import Array, Impressions, Logged
from truerank.data.read import VALUE_NAMES, as_table, column, find_column, finite_numbers

MOST_POSITION = 2**31 - 1
OTHERS = ("position", "propensity", "viewed", "surface", "group", "logger", "time", "candidates")


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
    logger, time. `sessions` declares all sessions: those without a row count as sessions in which nothing was viewed.

    >>> log = read_impressions(pl.DataFrame({"session": [7, 7, 5], "item": [1, 2, 1], "position": [1, 2, 1],
    ...                                      "like": [0, 1, 1]}), rewards=["like"])
    >>> log.n_units, log.unit.tolist(), log.reward("like").tolist()
    (2, [0, 1, 1], [1, 0, 1])
    """
    table, where = as_table(source)
    where, mapping = name or where, dict(columns or {})
    if len(table) == 0:
        raise InputError(f"{where}: no rows; expected one row for each item that was viewed.")
    items, item = _items(table, mapping, where=where)
    used = [*OTHERS, *(rewards or VALUE_NAMES), *extra]
    units = _units(table, mapping, sessions, shown=(items, item), used=used, where=where)
    order = _order(units.unit, item, len(items)) if units.order is None else units.order
    optional = _Columns(table, mapping, order, where)
    found = Impressions(
        items=items,
        unit=frozen(units.unit[order]),
        item=frozen(item[order]),
        cluster=frozen(units.cluster),
        rewards=_rewards(optional, rewards),
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
        key=units.key,
        logged=logged,
        source=where,
    )
    _check(found)
    length, candidates = optional.candidates(found)
    return replace(found, length=length, candidates=candidates, notes=_notes(found))


def _items(table: pl.DataFrame, mapping: Mapping[str, str], *, where: str) -> tuple[Ids, Ints]:
    """The items of the rows; with those that only compete, where candidates are listed."""
    shown = column(table, "item", mapping, where=where, strict=True)
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
    shown: tuple[Ids, Ints],
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
        content = _content(table, mapping, shown[0].keys()[shown[1]], used)
        order = pl.Series(content).arg_sort().to_numpy().astype(np.int64)
        order = order if user is None else order[np.argsort(user[order], kind="stable")]
        unit = np.empty(n, dtype=np.int64)
        unit[order] = np.arange(n)
        key = _told_apart(content[order]) if user is None else None
        return _Units(unit, np.arange(n) if user is None else user[order], None, None, users, order, key)
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


def _content(table: pl.DataFrame, mapping: Mapping[str, str], item: Keys, used: Sequence[str]) -> Keys:
    """A number of 64 bits for each row, made of its item and other columns: rows of the same number say the same.

    Rows without sessions are ordered by it, whatever the order of a file; those of one number may stand for each other.
    """
    key = item
    for name in dict.fromkeys(used):
        found = find_column(table, name, mapping)
        if found is not None and not found.dtype.is_nested():
            key = cell_keys(0, "rows", key, _words(found))
    return key


def _told_apart(content: Keys) -> Keys:
    """A number for each row: of what it says, and how many rows before it say the same; equal ones stand together."""
    new = np.concatenate([[True], content[1:] != content[:-1]])
    first = np.maximum.accumulate(np.where(new, np.arange(len(content)), 0))
    return cell_keys(0, "equal rows", content, (np.arange(len(content)) - first).astype(np.uint64))


def _words(values: pl.Series) -> Keys:
    """A number of 64 bits for each value."""
    if values.dtype.is_float():
        return values.cast(pl.Float64).fill_null(np.nan).to_numpy().view(np.uint64)
    whole = values.cast(pl.Int8) if values.dtype == pl.Boolean else values
    if whole.dtype.is_temporal():
        whole = whole.to_physical()
    if not whole.dtype.is_integer():
        ids, at = Ids.factorise(whole.cast(pl.String).fill_null(""))
        return ids.keys()[at]
    return whole.fill_null(-1 if whole.dtype.is_signed_integer() else 0).to_numpy().astype(np.int64).view(np.uint64)


def _order(unit: Ints, item: Ints, n_items: int) -> Ints:
    """Rows by unit, then item: no result depends on how a file was sorted."""
    cell = unit * max(n_items, 1) + item
    return np.arange(len(cell)) if (cell[1:] >= cell[:-1]).all() else np.argsort(cell, kind="stable")


# ------------------------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True, slots=True)
class _Columns:
    """The optional columns of a table, each checked, in the order of units."""

    table: pl.DataFrame
    mapping: Mapping[str, str]
    order: Ints
    where: str

    def find(self, key: str) -> pl.Series | None:
        if key in self.mapping:
            return column(self.table, key, self.mapping, where=self.where, strict=True)
        return find_column(self.table, key, self.mapping)

    def number(self, key: str) -> Floats:
        """Any numbers; NaN where there is none."""
        found = column(self.table, key, self.mapping, where=self.where, strict=True)
        if not (found.dtype.is_numeric() or found.dtype in (pl.Boolean, pl.Null)):
            raise InputError(f"{self.where}: column {found.name!r} is {found.dtype}; expected numbers.")
        values = found.cast(pl.Float64)
        bad = values.is_infinite().fill_null(False)
        if bool(bad.any()):
            raise InputError(f"{self.where}: row {int(bad.arg_true()[0]) + 1}, {key} is infinite; expected a number.")
        return self._sorted(values.fill_null(np.nan).to_numpy())

    def reward(self, key: str) -> Array:
        found = column(self.table, key, {key: self.mapping.get(key, key)}, where=self.where, strict=True)
        values = finite_numbers(found, where=f"{self.where}, column {found.name!r}")
        if found.dtype == pl.Boolean or bool(values.is_in([0.0, 1.0]).all()):
            return self._sorted(values.cast(pl.UInt8).to_numpy())
        return self._sorted(values.to_numpy())

    def position(self) -> Array | None:
        found = self.find("position")
        if found is None:
            return None
        values = finite_numbers(found, where=f"{self.where}, column {found.name!r}")
        bad = (values < 1) | (values != values.round(0)) | (values > MOST_POSITION)
        self._refuse(bad, values, "position", "a whole number from 1")
        return self._sorted(values.cast(pl.Int32).to_numpy())

    def probability(self, key: str) -> Floats | None:
        found = self.find(key)
        if found is None:
            return None
        values = finite_numbers(found, where=f"{self.where}, column {found.name!r}")
        self._refuse((values <= 0) | (values > 1), values, key, "a probability in (0, 1]")
        return self._sorted(values.to_numpy())

    def viewed(self) -> Bools | None:
        found = self.find("viewed")
        if found is None:
            return None
        values = finite_numbers(found, where=f"{self.where}, column {found.name!r}")
        self._refuse(~values.is_in([0.0, 1.0]), values, "viewed", "0 or 1")
        return None if bool((values == 1).all()) else self._sorted(values.cast(pl.Boolean).to_numpy())

    def text(self, key: str) -> Array | None:
        found = self.find(key)
        if found is None:
            return None
        if found.null_count():
            row = int(found.is_null().arg_true()[0])
            raise InputError(f"{self.where}: row {row + 1} has no {key}; expected one in every row.")
        return self._sorted(found.cast(pl.String).to_numpy().astype(str))

    def plain(self, key: str) -> Array | None:
        found = self.find(key)
        return None if found is None else self._sorted(found.to_numpy())

    def candidates(self, log: Impressions) -> tuple[Ints | None, Pairs | None]:
        """How many items compete in each unit, and which where they are listed; the same in every row of a unit."""
        found = self.find("candidates")
        if found is None:
            return None, None
        if isinstance(found.dtype, pl.List | pl.Array):
            return self._listed(found.cast(pl.List(found.dtype.inner)), log)
        length = np.zeros(log.n_units, dtype=np.int64)
        values = finite_numbers(found, where=f"{self.where}, column {found.name!r}")
        self._refuse(
            (values < 1) | (values != values.round(0)), values, "candidates", "a whole number from 1, or a list"
        )
        each = self._sorted(values.cast(pl.Int64).to_numpy())
        length[log.unit] = each
        self._refuse_candidates(length[log.unit] != each, "candidates differ within a session; expected one number")
        shown = np.bincount(log.unit, minlength=log.n_units)
        self._refuse_candidates(
            (shown > length)[log.unit], "a session has more rows than candidates; expected all that compete"
        )
        return frozen(length), None

    def _listed(self, found: pl.Series, log: Impressions) -> tuple[Ints, Pairs]:
        """Candidates by name: the same in every row of a unit, each once, and among them all that was shown."""
        listed = found.list.drop_nulls().list.sort().gather(self.order)
        first = np.searchsorted(log.unit, log.unit)
        same = listed.eq_missing(listed.gather(first)).to_numpy()
        self._refuse_candidates(~same, "candidates differ within a session; expected one list")
        twice = (listed.list.n_unique() != listed.list.len()).fill_null(False).to_numpy()
        self._refuse_candidates(twice, "a candidate is listed twice; expected each once")
        first = np.unique(first)
        listed = listed.gather(first)
        count = listed.list.len().fill_null(0).to_numpy().astype(np.int64)
        length = np.zeros(log.n_units, dtype=np.int64)
        length[log.unit[first]] = count
        flat = listed.filter(pl.Series(count > 0)).explode()
        at = log.items.locate(flat, where=f"{self.where}, column {found.name!r}")
        unit = np.repeat(log.unit[first], count)
        width = len(log.items)
        absent = ~np.isin(log.unit * width + log.item, unit * width + at)
        self._refuse_candidates(absent, "the item is not among its candidates; expected all that compete")
        return frozen(length), Pairs.of(unit, at, n_units=log.n_units)

    def _refuse_candidates(self, bad: Bools, what: str) -> None:
        if bad.any():
            raise InputError(f"{self.where}: row {int(self.order[int(np.argmax(bad))]) + 1}, {what}.")

    def _sorted(self, values: Array) -> Array:
        return frozen(values[self.order])

    def _refuse(self, bad: pl.Series, values: pl.Series, key: str, expected: str) -> None:
        if bool(bad.any()):
            row = int(bad.arg_true()[0])
            raise InputError(f"{self.where}: row {row + 1}, {key} is {values[row]:g}; expected {expected}.")


def _rewards(columns: _Columns, names: Sequence[str] | None) -> dict[str, Array]:
    if names is not None:
        if not names or len(set(names)) < len(names):
            raise InputError(f"rewards {', '.join(names) or 'of no name'}; expected one or several different columns.")
        return {name: columns.reward(name) for name in names}
    keys = [key for key in VALUE_NAMES if key in columns.mapping]
    keys = keys or [key for key in VALUE_NAMES if key in columns.table.columns]
    if len(keys) != 1:
        found = f"several value columns ({', '.join(keys)})" if keys else "no value column"
        raise InputError(
            f"{columns.where}: {found}; found {', '.join(columns.table.columns)}. "
            "Name the rewards: --reward NAME, several times for several (Python: rewards=[...])."
        )
    return {keys[0]: columns.reward(keys[0])}


# -------------------------------------------------------------------------------------------------------------- checks


def _check(log: Impressions) -> None:
    """What a session cannot have: an item twice, two items in one place, a reward without a view."""
    if log.sessions is not None:
        again = (log.unit[1:] == log.unit[:-1]) & (log.item[1:] == log.item[:-1])
        if again.any():
            row = int(np.argmax(again))
            raise InputError(
                f"{log.source}: {_place(log, row)} has item {log.items.texts(log.item[[row]])[0]} twice; "
                "expected each item once in a session. Keep its first row, or add up its rewards."
            )
        if log.position is not None:
            _check_places(log)
    if log.viewed is not None:
        for name, values in log.rewards.items():
            odd = (values != 0) & ~log.viewed
            if odd.any():
                raise InputError(
                    f"{log.source}: {_place(log, int(np.argmax(odd)))} has a {name} on an item that was not "
                    "viewed; expected rewards of viewed items only. Correct the column viewed or the reward."
                )


def _check_places(log: Impressions) -> None:
    if log.position is None:
        return
    place = log.position.astype(np.int64)
    if log.surface is not None:
        codes = np.unique(log.surface, return_inverse=True)[1]
        place = place + codes * (int(place.max()) + 1)
    cell = log.unit * (int(place.max()) + 1) + place
    cell = cell if (cell[1:] >= cell[:-1]).all() else np.sort(cell)
    again = cell[1:] == cell[:-1]
    if again.any():
        width = int(place.max()) + 1
        unit = int(cell[int(np.argmax(again))] // width)
        row = int(np.searchsorted(log.unit, unit))
        raise InputError(
            f"{log.source}: {_place(log, row)} has two items at one position; expected each position once in "
            "a session and surface. Give each list a session of its own, or name the surface: --columns surface=NAME."
        )


def _place(log: Impressions, row: int) -> str:
    """Where a row is, in words."""
    if log.sessions is None or log.session_of_unit is None:
        return f"a row of item {log.items.texts(log.item[[row]])[0]}"
    return f"session {log.sessions.texts(log.session_of_unit[log.unit[[row]]])[0]}"


def _notes(log: Impressions) -> tuple[str, ...]:
    rows = "impressions" if log.logged is Logged.DISPLAYED or log.viewed is not None else "viewed items"
    people = f" of {len(log.users):,} users" if log.users is not None else ""
    found = [f"{len(log):,} {rows} in {log.n_units:,} {log.unit_name}s{people}, {len(log.items):,} items."]
    for name, values in log.rewards.items():
        rewarded = int(np.count_nonzero(values))
        found.append(f"{name}: {rewarded:,} rows with a reward, {float(values.sum()):g} in all.")
        if values.dtype.kind == "f" and bool((values < 0).any()):
            found.append(f"{name}: some rewards are negative, so that clipping can move the estimate either way.")
    empty = log.n_units - int(np.count_nonzero(np.diff(log.unit, prepend=-1))) if log.sessions is not None else 0
    if empty:
        found.append(f"{empty:,} sessions have no row: nothing was viewed in them, and they count.")
    return tuple(found)
