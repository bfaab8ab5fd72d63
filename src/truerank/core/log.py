"""Rows of users and items: what was observed, and sets of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any, Self, TypeGuard

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError, extra
from truerank.core.ids import IdColumn, Ids, Keys
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.wording import columns_option, positive_option

Array = npt.NDArray[Any]
OF_ROWS = (
    "unit", "item", "propensity", "position", "session", "time", "inclusion", "viewed", "surface", "group", "logger",
)  # fmt: skip
OF_UNITS = ("cluster", "length", "session_of_unit", "unit_key")


@record
class Pairs:
    """Items of each unit, as compressed rows: unit u has `item[start[u]:start[u + 1]]`, sorted."""

    start: Ints
    item: Ints

    @classmethod
    def of(cls, unit: Ints, item: Ints, *, n_units: int) -> Pairs:
        """From rows in any order; repeated pairs count once.

        >>> Pairs.of(np.array([1, 0, 1, 1]), np.array([7, 3, 2, 7]), n_units=2)
        Pairs(start=array([0, 1, 3]), item=array([3, 2, 7]))
        """
        width = int(item.max()) + 1 if len(item) else 1
        cell = unit.astype(np.int64) * width + item
        if not (cell[1:] > cell[:-1]).all():
            cell = np.sort(cell)
            cell = cell[np.concatenate([[True], cell[1:] != cell[:-1]])]
        count = np.bincount(cell // width, minlength=n_units)
        return cls(frozen(np.concatenate([[0], np.cumsum(count)]).astype(np.int64)), frozen(cell % width))

    def of_units(self, first: int, last: int) -> Pairs:
        """The pairs of units first ... last - 1, numbered from 0."""
        begin, end = int(self.start[first]), int(self.start[last])
        return Pairs(frozen(self.start[first : last + 1] - begin), frozen(self.item[begin:end]))

    def of_unit(self, unit: int) -> Ints:
        return self.item[self.start[unit] : self.start[unit + 1]]

    @property
    def count(self) -> Ints:
        return np.diff(self.start)

    @property
    def unit(self) -> Ints:
        """The unit of each pair."""
        return np.repeat(np.arange(len(self.start) - 1), self.count)

    def hold(self, unit: Ints, item: Ints) -> Bools:
        """Which of other pairs are among these.

        >>> pairs = Pairs.of(np.array([0, 1]), np.array([3, 2]), n_units=2)
        >>> pairs.hold(np.array([0, 1, -1]), np.array([3, 3, 2])).tolist()
        [True, False, False]
        """
        width = max(int(self.item.max(initial=0)), int(item.max(initial=0))) + 1
        inside = np.isin(unit * width + item, self.unit * width + self.item)
        return np.asarray((unit >= 0) & (item >= 0) & inside)


class Logged(StrEnum):
    """Which rows a log of impressions has.

    VIEWED     only items that were viewed, or a column `viewed` that says which were (default)
    DISPLAYED  every displayed item, viewed or not, and nothing says which were viewed
    """

    VIEWED = "viewed"
    DISPLAYED = "displayed"


@record
class Log:
    """Rows of (unit, item) with what was observed: training data, labelled test data and impressions alike.

    Of training and test data a unit is a user. Of impressions it is a session, or a row where there are no sessions;
    rows are then ordered by unit and item, and units by their user. `users`, `items` and `sessions` are the
    populations; a unit without a row still counts. `rewards` are named columns; one called `label` is 0 or 1.

    `cluster` is the user of each unit, where units are not users but have them. `session_of_unit` are places in
    `sessions`; `unit_key` is, where rows are units, a key of each made of its content and its number among equals.
    `length` is how many items are candidates in each unit, where the log says, and `candidates` which. `columns` are
    other columns that the caller names, such as ranks under other policies. `inclusion` is a row's probability to be
    drawn into an intervened test set. `complete` says that a pair which is not listed is a known negative; otherwise it
    is unknown.
    """

    users: Ids
    items: Ids
    unit: Ints
    item: Ints
    rewards: Mapping[str, Array]
    propensity: Floats | None = None
    position: Array | None = None
    session: Array | None = None  # of labels: the column as it is
    time: Array | None = None
    inclusion: Floats | None = None
    viewed: Bools | None = None
    surface: Array | None = None
    group: Array | None = None
    logger: Array | None = None
    columns: Mapping[str, Floats] = field(default_factory=dict)
    cluster: Ints | None = None
    sessions: Ids | None = None
    session_of_unit: Ints | None = None
    unit_key: Keys | None = None
    length: Ints | None = None
    candidates: Pairs | None = None
    logged: Logged = Logged.VIEWED
    complete: bool = False
    source: str = "labels"
    notes: tuple[str, ...] = field(default=(), compare=False)  # what to report of how it was read

    def __len__(self) -> int:
        return len(self.unit)

    def __repr__(self) -> str:
        names = ", ".join([*self.rewards, *(name for name in OF_ROWS[2:] if getattr(self, name) is not None)])
        return f"Log({self.source}: {len(self):,} rows, {len(self.users):,} users, {len(self.items):,} items; {names})"

    def to_polars(self) -> pl.DataFrame:
        """A row for each row: user or session, item, rewards, and what else there is.

        >>> import truerank as tr
        >>> frame = pl.DataFrame({"user": [2, 1], "item": [7, 8], "label": [1, 0]})
        >>> tr.read(frame).to_polars().rows()
        [(1, 8, 0.0), (2, 7, 1.0)]
        """
        columns: dict[str, Any] = {}
        if self.sessions is not None and self.session_of_unit is not None:
            columns["session"] = self.sessions.values.gather(self.session_of_unit[self.unit])
        if self.has_users:
            known = pl.Series(self.user < len(self.users))
            user = self.users.values.gather(np.minimum(self.user, max(len(self.users) - 1, 0)))
            columns["user"] = pl.select(pl.when(known).then(user)).to_series()
        columns["item"] = self.items.values.gather(self.item)
        others = {name: getattr(self, name) for name in OF_ROWS[2:]} | dict(self.columns)
        return pl.DataFrame(columns | dict(self.rewards) | {
            name: values for name, values in others.items() if values is not None and name not in columns})  # fmt: skip

    def to_pandas(self) -> Any:
        """The same rows as a pandas frame."""
        return as_pandas(self.to_polars())

    @property
    def user(self) -> Ints:
        """The user of each row."""
        return self.unit if self.cluster is None else self.cluster[self.unit]

    @property
    def label(self) -> Floats:
        """The binary label of each row."""
        self.check_labels()
        return self.rewards["label"]

    def check_labels(self) -> None:
        """Refuse a log without binary labels."""
        if not self.rewards:
            raise InputError(
                f"{self.source}: no value column; labels are needed, in a column label, reward, rating or value. "
                f"Name it: {columns_option('label')}; if each row is a positive, say "
                f"{positive_option('all')}."
            )
        if "label" not in self.rewards:
            raise InputError(
                f"{self.source}: labels are needed, but {', '.join(self.rewards)} has other values than 0 and 1. "
                f"Say which values are positive: {positive_option('>3')}, or all."
            )

    def reward(self, name: str) -> Array:
        if name not in self.rewards:
            raise InputError(f"{self.source}: no reward {name!r}; expected one of {', '.join(self.rewards)}.")
        return self.rewards[name]

    # ----------------------------------------------------------------------------------------------- units and clusters

    @property
    def n_units(self) -> int:
        units = self.users if self.session_of_unit is None else self.session_of_unit
        return len(units if self.unit_key is None else self.unit_key)

    @property
    def unit_name(self) -> str:
        """What a unit is, in words."""
        return "session" if self.sessions is not None else "user" if self.unit_key is None else "impression"

    @property
    def cluster_name(self) -> str:
        """What a cluster is, in words."""
        return self.unit_name if self.cluster is None else "user"

    @property
    def has_users(self) -> bool:
        return self.cluster_name == "user"

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

    def cluster_of_unit(self) -> Ints:
        """A number of each unit's user, ascending; of its own where units are not those of users."""
        return np.arange(self.n_units) if self.cluster is None else self.cluster

    def clusters(self) -> Clusters:
        """The users of the units, or the units, with a number of each that depends on its id alone."""
        is_first = np.diff(self.cluster_of_unit(), prepend=-1) != 0
        return Clusters(np.cumsum(is_first) - 1, self._keys(np.flatnonzero(is_first)))

    def _keys(self, unit: Ints) -> Keys:
        """A number of the cluster of each of these units."""
        if self.cluster is None:
            return self._unit_keys(unit)
        user = self.cluster[unit]
        has_user = user < len(self.users)
        key = np.empty(len(unit), dtype=np.uint64)
        key[has_user] = Ids(self.users.values.gather(user[has_user])).keys()
        if not has_user.all():  # a session without a row has no known user
            alone = self._unit_keys(unit[~has_user])
            key[~has_user] = cell_keys(0, "sessions without a user", alone, np.zeros(len(alone), dtype=np.uint64))
        return key

    def _unit_keys(self, unit: Ints) -> Keys:
        if self.unit_key is not None:
            return self.unit_key[unit]
        if self.sessions is None or self.session_of_unit is None:
            return Ids(self.users.values.gather(unit)).keys()
        return Ids(self.sessions.values.gather(self.session_of_unit[unit])).keys()

    # ------------------------------------------------------------------------------------------------------------ parts

    def places_in(self, users: Ids, items: Ids) -> tuple[Ints, Ints]:
        """Where the user and the item of each row stand among these, -1 where they do not."""
        user = users.locate(self.users, where=f"{self.source}, column 'user'")[self.user]
        return user, items.locate(self.items, where=f"{self.source}, column 'item'")[self.item]

    def select(self, rows: Ints | Bools | slice) -> Self:
        """The given rows, in that order; the units and populations stay."""
        return self._with_rows(lambda column: frozen(column[rows]))

    def _with_rows(self, part: Any) -> Self:
        """The log with a part of every column of rows."""
        parts: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else part(column) for name in OF_ROWS
        }
        for kind in ("rewards", "columns"):
            parts[kind] = {name: part(column) for name, column in getattr(self, kind).items()}
        return replace(self, **parts)

    def chunks(self, n: int) -> Iterator[Log]:
        """Impressions in at most n parts of whole clusters, about equally long; columns are not copied.

        >>> frame = {"session": [1, 1, 2], "item": [1, 2, 1], "position": [1, 2, 1], "reward": [0, 1, 1]}
        >>> import polars as pl
        >>> from truerank.io.read import read_impressions
        >>> [len(part) for part in read_impressions(pl.DataFrame(frame)).chunks(2)]
        [2, 1]
        """
        row, of_unit = np.linspace(0, len(self), max(1, n) + 1)[1:-1].astype(np.int64), self.cluster_of_unit()
        cluster = of_unit[self.unit[row]] if len(self) else of_unit[:0]
        cuts = np.unique(np.searchsorted(of_unit, cluster, side="right"))
        edges = [0, *cuts[cuts < self.n_units].tolist(), self.n_units]
        for first, last in pairwise(edges):
            yield self.between(first, last)

    def between(self, first: int, last: int) -> Log:
        """The log of units first ... last - 1, for rows that are ordered by unit, without copies of columns."""
        if (first, last) == (0, self.n_units):
            return self
        rows = slice(*np.searchsorted(self.unit, [first, last]).tolist())
        part = self._with_rows(lambda column: column[rows])
        of_units: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[first:last] for name in OF_UNITS
        }
        if self.unit_name == "user":
            of_units["users"] = Ids(self.users.values[first:last])
        candidates = None if self.candidates is None else self.candidates.of_units(first, last)
        return replace(part, unit=part.unit - first, candidates=candidates, **of_units)

    def with_own_ids(self) -> Log:
        """The same units with the names of their own users and sessions alone, in the same order: small, to be sent."""
        ids: dict[str, Any] = {}
        if self.cluster is not None:
            first = np.diff(self.cluster, prepend=-1) > 0  # units are ordered by cluster
            clusters = self.cluster[first]
            ids["users"] = Ids(self.users.values.gather(clusters[clusters < len(self.users)]))
            ids["cluster"] = np.cumsum(first) - 1  # a session without a row has no known user, and stays beyond them
        if self.sessions is not None and self.session_of_unit is not None:
            order = np.argsort(self.session_of_unit)  # a session is one unit
            ids["sessions"] = Ids(self.sessions.values.gather(self.session_of_unit[order]))
            ids["session_of_unit"] = np.argsort(order)
        return replace(self, **ids)


def has_user_units(source: Any) -> TypeGuard[Log]:
    """Whether this is a log whose units are users: labels or training data, not impressions."""
    return isinstance(source, Log) and source.unit_name == "user"


def as_pandas(frame: pl.DataFrame) -> Any:
    """The same rows as a pandas frame."""
    try:
        import pandas as pd
    except ImportError:
        raise InputError(
            f"pandas is not installed; install it with: pip install pandas, or pip install {extra('pandas')}."
        ) from None
    return pd.DataFrame(frame.to_dict(as_series=False), columns=frame.columns)
