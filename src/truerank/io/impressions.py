"""Impression logs of a deployed recommender.

A type of its own beside `Log`: its unit is the session, not the user, its rows are ordered by session, it has any
number of rewards of any kind, and tens of millions of rows must stay small, so columns keep the narrowest type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, Keys
from truerank.core.log import Pairs
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.wording import columns_option
from truerank.io.columns import table_columns
from truerank.io.scan import Facts

Array = npt.NDArray[Any]
OF_ROWS = ("item", "position", "propensity", "viewed", "surface", "group", "logger", "time")
OF_UNITS = ("cluster", "length", "session_of_unit", "unit_key")


class Logged(StrEnum):
    """Which rows a log has.

    VIEWED     only items that were viewed, or a column `viewed` that says which were (default)
    DISPLAYED  every displayed item, viewed or not, and nothing says which were viewed
    """

    VIEWED = "viewed"
    DISPLAYED = "displayed"


@record
class Impressions:
    """Rows (session, item, position, rewards) of what a recommender showed, ordered by session, then item.

    `unit` is the session of each row, ascending; without sessions each row is a unit. `cluster` is the user of each
    unit where there are users, else the unit itself; units are ordered by cluster. A unit may be without a row.
    `length` is how many items compete in each unit, where the log tells, and `candidates` which. `columns` are other
    columns that were asked for, such as ranks under other policies. `unit_key` is, where rows are units, a key of each
    made of what it says and its number among equals.
    """

    items: Ids
    unit: Ints
    item: Ints
    cluster: Ints
    rewards: Mapping[str, Array]
    position: Array | None = None
    propensity: Floats | None = None
    viewed: Bools | None = None
    surface: Array | None = None
    group: Array | None = None
    logger: Array | None = None
    time: Array | None = None
    length: Ints | None = None
    candidates: Pairs | None = None
    columns: Mapping[str, Floats] = field(default_factory=dict)
    sessions: Ids | None = None
    session_of_unit: Ints | None = None
    users: Ids | None = None
    unit_key: Keys | None = None
    logged: Logged = Logged.VIEWED
    source: str = "log"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def n_units(self) -> int:
        return len(self.cluster)

    @property
    def unit_name(self) -> str:
        """What a unit is, in words."""
        return "session" if self.sessions is not None else "impression"

    def reward(self, name: str) -> Array:
        if name not in self.rewards:
            raise InputError(f"{self.source}: no reward {name!r}; expected one of {', '.join(self.rewards)}.")
        return self.rewards[name]

    def unit_of_session(self, column: IdColumn, *, where: str) -> Ints:
        """The unit of each session id, -1 where the log does not have it."""
        if self.sessions is None or self.session_of_unit is None:
            raise InputError(
                f"{where}: the log has no column session, so a table of rankings cannot be matched with it. "
                "Name a column of the log instead (@COLUMN), or name its sessions: "
                f"{columns_option('session', by='truerank.read_impressions')}."
            )
        unit = np.full(len(self.sessions), -1, dtype=np.int64)
        unit[self.session_of_unit] = np.arange(self.n_units)
        session = self.sessions.locate(column, where=where)
        return np.where(session >= 0, unit[np.maximum(session, 0)], -1) if len(unit) else session

    @property
    def cluster_name(self) -> str:
        """What a cluster is, in words."""
        return "user" if self.users is not None else self.unit_name

    def clusters(self) -> Clusters:
        """The users of the units, or the units, with a number of each that depends on its id alone."""
        is_first = np.diff(self.cluster, prepend=-1) != 0
        return Clusters(np.cumsum(is_first) - 1, self._keys(np.flatnonzero(is_first)))

    def _keys(self, unit: Ints) -> Keys:
        """A number of the cluster of each of these units."""
        if self.users is None:
            return self._unit_keys(unit)
        who = self.cluster[unit]
        has_user = who < len(self.users)
        key = np.empty(len(unit), dtype=np.uint64)
        key[has_user] = Ids(self.users.values.gather(who[has_user])).keys()
        if not has_user.all():  # a session without a row has no known user
            alone = self._unit_keys(unit[~has_user])
            key[~has_user] = cell_keys(0, "sessions without a user", alone, np.zeros(len(alone), dtype=np.uint64))
        return key

    def _unit_keys(self, unit: Ints) -> Keys:
        if self.sessions is not None and self.session_of_unit is not None:
            return Ids(self.sessions.values.gather(self.session_of_unit[unit])).keys()
        return unit.astype(np.uint64) if self.unit_key is None else self.unit_key[unit]

    # ------------------------------------------------------------------------------------------------------------ parts

    def chunks(self, n: int) -> Iterator[Impressions]:
        """The log in at most n parts of whole clusters, about equally long; columns are not copied.

        >>> frame = {"session": [1, 1, 2], "item": [1, 2, 1], "position": [1, 2, 1], "reward": [0, 1, 1]}
        >>> import polars as pl
        >>> from truerank.io.read_impressions import read_impressions
        >>> [len(part) for part in read_impressions(pl.DataFrame(frame)).chunks(2)]
        [2, 1]
        """
        row = np.linspace(0, len(self), max(1, n) + 1)[1:-1].astype(np.int64)
        cluster = self.cluster[self.unit[row]] if len(self) else self.cluster[:0]
        cuts = np.unique(np.searchsorted(self.cluster, cluster, side="right"))
        edges = [0, *cuts[cuts < self.n_units].tolist(), self.n_units]
        for first, last in pairwise(edges):
            yield self.between(first, last)

    def between(self, first: int, last: int) -> Impressions:
        """The log of units first ... last - 1, without copies of columns."""
        if (first, last) == (0, self.n_units):
            return self
        rows, units = slice(*np.searchsorted(self.unit, [first, last]).tolist()), slice(first, last)
        columns: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[chosen]
            for names, chosen in ((OF_ROWS, rows), (OF_UNITS, units))
            for name in names
        }
        return replace(
            self,
            unit=self.unit[rows] - first,
            candidates=None if self.candidates is None else self.candidates.of_units(first, last),
            rewards={name: values[rows] for name, values in self.rewards.items()},
            columns={name: values[rows] for name, values in self.columns.items()},
            **columns,
        )

    def with_own_ids(self) -> Impressions:
        """The same units with the names of their own users and sessions alone, in the same order: small, to be sent."""
        ids: dict[str, Any] = {}
        if self.users is not None:
            first = np.diff(self.cluster, prepend=-1) > 0  # units are ordered by cluster
            clusters = self.cluster[first]
            ids["users"] = Ids(self.users.values.gather(clusters[clusters < len(self.users)]))
            ids["cluster"] = np.cumsum(first) - 1  # a session without a row has no known user, and stays beyond them
        if self.sessions is not None and self.session_of_unit is not None:
            order = np.argsort(self.session_of_unit)  # a session is one unit
            ids["sessions"] = Ids(self.sessions.values.gather(self.session_of_unit[order]))
            ids["session_of_unit"] = np.argsort(order)
        return replace(self, **ids)


@record(eq=False)
class RankedChunk:
    """Whole clusters of an impression log, and what the tables of targets say of their sessions.

    `place` is the place of each unit in the population. `made` keeps what was already made of the chunk.
    """

    log: Impressions
    tables: Mapping[str, Any] = field(default_factory=dict)
    place: Ints | None = None
    made: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def n_rows(self) -> int:
        return len(self.log)

    def places(self) -> Ints:
        return np.arange(self.log.n_units) if self.place is None else self.place

    def with_items(self, items: Ids) -> RankedChunk:
        """The same with other names of items."""
        return replace(self, log=replace(self.log, items=items))

    def to_send(self) -> RankedChunk:
        """The chunk without the names of all items, which travel once, and with the sessions and users of its own."""
        log = replace(self.log.with_own_ids(), items=Ids.places(0))
        return RankedChunk(log, {name: table_columns(table).table for name, table in self.tables.items()}, self.place)

    def clusters(self) -> Clusters:
        """The clusters of the log."""
        if "clusters" not in self.made:
            self.made["clusters"] = self.log.clusters()
        clusters: Clusters = self.made["clusters"]
        return clusters


def check_sessions(log: Impressions) -> None:
    """What a session cannot have: an item twice, two items in one place, a reward without a view."""

    def refuse(bad: Array, what: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            place = f"a row of item {log.items.texts(log.item[[row]])[0]}"
            if log.sessions is not None and log.session_of_unit is not None:
                place = f"session {log.sessions.texts(log.session_of_unit[log.unit[[row]]])[0]}"
            raise InputError(f"{log.source}: {place} has {what}")

    if log.sessions is not None:
        again = (log.unit[1:] == log.unit[:-1]) & (log.item[1:] == log.item[:-1])
        item = log.items.texts(log.item[[int(np.argmax(again))]])[0] if again.any() else ""
        refuse(
            again,
            f"item {item} twice; expected each item once in a session. Keep its first row, or add up its rewards.",
        )
        if log.position is not None and len(log):
            place = log.position.astype(np.int64)
            if log.surface is not None:
                place = place + np.unique(log.surface, return_inverse=True)[1] * (int(place.max()) + 1)
            width = int(place.max()) + 1
            cell = log.unit * width + place
            cell = cell if (cell[1:] >= cell[:-1]).all() else np.sort(cell)
            twice = cell[1:][cell[1:] == cell[:-1]]
            refuse(
                log.unit == twice[0] // width if len(twice) else np.zeros(0, dtype=bool),
                "two items at one position; expected each position once in a session and surface. Give each list a "
                "session of its own, or name the surface: "
                f"{columns_option('surface', by='truerank.read_impressions')}.",
            )
    for name, values in log.rewards.items():
        refuse(
            (values != 0) & (False if log.viewed is None else ~log.viewed),
            f"a {name} on an item that was not viewed; expected rewards of viewed items only. Correct the column "
            "viewed or the reward.",
        )


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
