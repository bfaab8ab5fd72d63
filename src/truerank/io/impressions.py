"""Impression logs of a deployed recommender.

A type of its own beside `Log`: its unit is the session, not the user, its rows are ordered by session, it has any
number of rewards of any kind, and tens of millions of rows must stay small, so columns keep the narrowest type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.chance import cell_keys
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, Keys
from truerank.core.log import Pairs
from truerank.core.wording import columns_option
from truerank.io.read import as_table

Array = npt.NDArray[Any]


class Logged(StrEnum):
    """Which rows a log has.

    VIEWED     only items that were viewed, or a column `viewed` that says which were (default)
    DISPLAYED  every displayed item, viewed or not, and nothing says which were viewed
    """

    VIEWED = "viewed"
    DISPLAYED = "displayed"


@dataclass(frozen=True, slots=True)
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
        at = self.sessions.locate(column, where=where)
        return np.where(at >= 0, unit[np.maximum(at, 0)], -1) if len(unit) else at

    @property
    def cluster_name(self) -> str:
        """What a cluster is, in words."""
        return "user" if self.users is not None else self.unit_name

    def clusters(self) -> Clusters:
        """The users of the units, or the units, with a number of each that depends on its id alone."""
        first = np.flatnonzero(np.diff(self.cluster, prepend=-1))
        of_unit = np.zeros(self.n_units, dtype=np.int64)
        of_unit[first] = 1
        return Clusters(np.cumsum(of_unit) - 1, self._keys(first))

    def _keys(self, unit: Ints) -> Keys:
        """A number of the cluster of each of these units."""
        if self.users is None:
            return self._unit_keys(unit)
        who = self.cluster[unit]
        known = who < len(self.users)
        key = np.empty(len(unit), dtype=np.uint64)
        key[known] = Ids(self.users.values.gather(who[known])).keys()
        if not known.all():  # a session without a row has no known user
            own = self._unit_keys(unit[~known])
            key[~known] = cell_keys(0, "sessions without a user", own, np.zeros(len(own), dtype=np.uint64))
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
        start, stop = np.searchsorted(self.unit, [first, last]).tolist()
        candidates = self.candidates
        if candidates is not None:
            low, high = candidates.start[first], candidates.start[last]
            candidates = Pairs(candidates.start[first : last + 1] - low, candidates.item[low:high])
        return self._part(slice(start, stop), slice(first, last), self.unit[start:stop] - first, candidates)

    def with_own_ids(self) -> Impressions:
        """The same units with the names of their own users and sessions alone, in the same order: small, to be sent."""
        found: dict[str, Any] = {}
        if self.users is not None:
            first = np.diff(self.cluster, prepend=-1) > 0  # units are ordered by cluster
            number = np.cumsum(first) - 1
            n_own = int(np.count_nonzero(self.cluster[first] < len(self.users)))
            found["users"] = Ids(self.users.values.gather(self.cluster[first][:n_own]))
            found["cluster"] = number  # a session without a row has no known user, and stays beyond them all
        if self.sessions is not None and self.session_of_unit is not None:
            order = np.argsort(self.session_of_unit)  # a session is one unit
            found["sessions"] = Ids(self.sessions.values.gather(self.session_of_unit[order]))
            found["session_of_unit"] = np.empty(len(order), dtype=np.int64)
            found["session_of_unit"][order] = np.arange(len(order))
        return replace(self, **found)

    def restrict(self, kept: Bools) -> Impressions:
        """The log of the kept units alone; users, sessions and items keep their ids."""
        rows = kept[self.unit]
        renumbered = np.cumsum(kept) - 1
        candidates = self.candidates
        if candidates is not None:
            of = np.repeat(np.arange(self.n_units), candidates.count)
            candidates = Pairs.of(
                renumbered[of[kept[of]]], candidates.item[kept[of]], n_units=int(np.count_nonzero(kept))
            )
        return self._part(rows, kept, renumbered[self.unit[rows]], candidates)

    def _part(self, rows: Bools | slice, units: Bools | slice, unit: Ints, candidates: Pairs | None) -> Impressions:
        def of_rows(values: Array | None) -> Any:
            return None if values is None else values[rows]

        def of_units(values: Array | None) -> Any:
            return None if values is None else values[units]

        return replace(
            self,
            unit=unit,
            item=self.item[rows],
            cluster=self.cluster[units],
            rewards={name: values[rows] for name, values in self.rewards.items()},
            position=of_rows(self.position),
            propensity=of_rows(self.propensity),
            viewed=of_rows(self.viewed),
            surface=of_rows(self.surface),
            group=of_rows(self.group),
            logger=of_rows(self.logger),
            time=of_rows(self.time),
            length=of_units(self.length),
            candidates=candidates,
            columns={name: values[rows] for name, values in self.columns.items()},
            session_of_unit=of_units(self.session_of_unit),
            unit_key=of_units(self.unit_key),
        )


@dataclass(frozen=True, slots=True, eq=False)
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
        return RankedChunk(log, {name: as_table(table)[0] for name, table in self.tables.items()}, self.place)

    def clusters(self) -> Clusters:
        """The clusters of the log."""
        if "clusters" not in self.made:
            self.made["clusters"] = self.log.clusters()
        clusters: Clusters = self.made["clusters"]
        return clusters
