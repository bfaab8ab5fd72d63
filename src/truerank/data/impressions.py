"""Impression logs of a deployed recommender.

A type of its own beside `Log`: its unit is the session, not the user, its rows are ordered by session, it has any
number of rewards of any kind, and tens of millions of rows must stay small, so columns keep the narrowest type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, Keys
from truerank.core.log import Pairs

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
                "Name a column of the log instead (@COLUMN), or name its sessions: --columns session=NAME."
            )
        unit = np.full(len(self.sessions), -1, dtype=np.int64)
        unit[self.session_of_unit] = np.arange(self.n_units)
        at = self.sessions.locate(column, where=where)
        return np.where(at >= 0, unit[np.maximum(at, 0)], -1) if len(unit) else at

    def restrict(self, kept: Bools) -> Impressions:
        """The log of the kept units alone; users, sessions and items keep their ids."""
        rows = kept[self.unit]
        renumbered = np.cumsum(kept) - 1

        def cut(values: Array | None) -> Any:
            return None if values is None else values[rows]

        candidates = self.candidates
        if candidates is not None:
            of = np.repeat(np.arange(self.n_units), candidates.count)
            candidates = Pairs.of(
                renumbered[of[kept[of]]], candidates.item[kept[of]], n_units=int(np.count_nonzero(kept))
            )
        return replace(
            self,
            unit=renumbered[self.unit[rows]],
            item=self.item[rows],
            cluster=self.cluster[kept],
            rewards={name: values[rows] for name, values in self.rewards.items()},
            position=cut(self.position),
            propensity=cut(self.propensity),
            viewed=cut(self.viewed),
            surface=cut(self.surface),
            group=cut(self.group),
            logger=cut(self.logger),
            time=cut(self.time),
            length=None if self.length is None else self.length[kept],
            candidates=candidates,
            columns={name: values[rows] for name, values in self.columns.items()},
            session_of_unit=None if self.session_of_unit is None else self.session_of_unit[kept],
            unit_key=None if self.unit_key is None else self.unit_key[kept],
        )
