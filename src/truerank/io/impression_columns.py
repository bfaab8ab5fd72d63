"""The columns of an impression log, each checked where it is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from truerank.core.arrays import LEAST_CHANCE, Bools, Floats, Ints, frozen
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.log import Pairs
from truerank.core.wording import columns_option, either
from truerank.io.facts import Facts
from truerank.io.impressions import Array, Impressions, Logged
from truerank.io.read import CHANCE, SHOWN, VALUE_NAMES, column, find_column, finite_numbers, is_binary

MOST_POSITION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Whole:
    """What is known of all rows where only some are read: it decides what the columns of a chunk become."""

    items: Ids
    binary: Mapping[str, bool]  # of each reward
    all_viewed: bool


@dataclass(frozen=True, slots=True)
class ImpressionColumns:
    """The optional columns of a table, each checked, in the order of units.

    `before` counts the rows of the source before these, for messages. Columns that are `kept` have memory of their own:
    a frame shares its memory with whoever made it.
    """

    table: pl.DataFrame
    mapping: Mapping[str, str]
    order: Ints | slice
    where: str
    whole: Whole | None = None
    before: int = 0
    kept: bool = False

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
            row = self.before + int(bad.arg_true()[0])
            raise InputError(f"{self.where}: row {row + 1}, {key} is infinite; expected a number.")
        return self._sorted(values.fill_null(np.nan).to_numpy())

    def reward(self, key: str) -> Array:
        found = column(self.table, key, {key: self.mapping.get(key, key)}, where=self.where, strict=True)
        values = self._finite(found)
        binary = is_binary(values) if self.whole is None else self.whole.binary[key]
        if binary:
            return self._sorted(values.cast(pl.UInt8).to_numpy())
        return self._sorted(values.to_numpy())

    def position(self) -> Array | None:
        found = self.find("position")
        if found is None:
            return None
        values = self._finite(found)
        bad = (values < 1) | (values != values.round(0)) | (values > MOST_POSITION)
        self._refuse(bad, values, "position", "a whole number from 1")
        return self._sorted(values.cast(pl.Int32).to_numpy())

    def probability(self, key: str) -> Floats | None:
        found = self.find(key)
        if found is None:
            return None
        values = self._finite(found)
        self._refuse((values < LEAST_CHANCE) | (values > 1), values, key, CHANCE)
        return self._sorted(values.to_numpy())

    def viewed(self) -> Bools | None:
        found = self.find("viewed")
        if found is None:
            return None
        values = self._finite(found)
        self._refuse(~values.is_in([0.0, 1.0]), values, "viewed", "0 or 1")
        everywhere = bool((values == 1).all()) if self.whole is None else self.whole.all_viewed
        return None if everywhere else self._sorted(values.cast(pl.Boolean).to_numpy())

    def filled(self, key: str) -> pl.Series | None:
        """A column of anything, with a value in every row."""
        found = self.find(key)
        if found is not None and found.null_count():
            row = self.before + int(found.is_null().arg_true()[0])
            raise InputError(f"{self.where}: row {row + 1} has no {key}; expected one in every row.")
        return found

    def text(self, key: str) -> Array | None:
        found = self.filled(key)
        return None if found is None else self._sorted(found.cast(pl.String).to_numpy().astype(str))

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
        values = self._finite(found)
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
        listed = found.list.drop_nulls().list.sort()
        listed = listed if isinstance(self.order, slice) else listed.gather(self.order)
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
            at = int(np.argmax(bad))
            row = at if isinstance(self.order, slice) else int(self.order[at])
            raise InputError(f"{self.where}: {self._row(row)}, {what}.")

    def _row(self, row: int) -> str:
        """Where a row is, in words: rows of a chunk have no number in the source, but their session has a name."""
        session = find_column(self.table, "session", self.mapping)
        if self.whole is None or session is None:
            return f"row {self.before + row + 1}"
        return f"a row of session {session[row]}"

    def _finite(self, found: pl.Series) -> pl.Series:
        return finite_numbers(found, where=f"{self.where}, column {found.name!r}", before=self.before)

    def _sorted(self, values: Array) -> Array:
        found = values[self.order]
        return frozen(found.copy() if self.kept and found.base is not None else found)

    def _refuse(self, bad: pl.Series, values: pl.Series, key: str, expected: str) -> None:
        if bool(bad.any()):
            row = int(bad.arg_true()[0])
            raise InputError(
                f"{self.where}: row {self.before + row + 1}, {key} is {values[row]:g}; expected {expected}."
            )


def reward_keys(
    columns: Collection[str], mapping: Mapping[str, str], names: Sequence[str] | None, *, where: str
) -> Sequence[str]:
    """The rewards that are asked for, or the one value column that there is."""
    if names is not None:
        if not names or len(set(names)) < len(names):
            raise InputError(f"rewards {', '.join(names) or 'of no name'}; expected one or several different columns.")
        return names
    keys = [key for key in VALUE_NAMES if key in mapping] or [key for key in VALUE_NAMES if key in columns]
    if len(keys) != 1:
        found = f"several value columns ({', '.join(keys)})" if keys else "no value column"
        raise InputError(
            f"{where}: {found}; found {some(list(columns), most=SHOWN)}. "
            f"Name the rewards: {either('--reward NAME, several times for several', 'rewards=[...]')}."
        )
    return keys


def check_sessions(log: Impressions) -> None:
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
    if log.position is None or not len(log):
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
            "a session and surface. Give each list a session of its own, or name the surface: "
            f"{columns_option('surface', by='truerank.read_impressions')}."
        )


def _place(log: Impressions, row: int) -> str:
    """Where a row is, in words."""
    if log.sessions is None or log.session_of_unit is None:
        return f"a row of item {log.items.texts(log.item[[row]])[0]}"
    return f"session {log.sessions.texts(log.session_of_unit[log.unit[[row]]])[0]}"


def notes_of(
    log: Impressions, facts: Mapping[str, Facts], *, n_rows: int, n_units: int, n_users: int | None, n_empty: int
) -> tuple[str, ...]:
    """What there is in all; `log` is all of it or any part, and `facts` are of the rewards of all rows."""
    rows = "impressions" if log.logged is Logged.DISPLAYED or log.viewed is not None else "viewed items"
    people = f" of {n_users:,} users" if n_users is not None else ""
    notes = [f"{n_rows:,} {rows} in {n_units:,} {log.unit_name}s{people}, {len(log.items):,} items."]
    for name, values in facts.items():
        notes.append(f"{name}: {values.nonzero:,} rows with a reward, {values.total:g} in all.")
        if values.minimum < 0:
            notes.append(f"{name}: some rewards are negative, so that clipping can move the estimate either way.")
    if n_empty and log.sessions is not None:
        notes.append(f"{n_empty:,} sessions have no row: nothing was viewed in them, and they count.")
    return tuple(notes)
