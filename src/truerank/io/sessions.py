"""Sessions of a log of impressions: what they may hold, and chunks of whole sessions with tables beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Array, Log, Logged
from truerank.core.record import record
from truerank.core.wording import columns_option
from truerank.io.columns import table_columns
from truerank.io.facts import Facts


def check_sessions(log: Log) -> None:
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
    log: Log, facts: Mapping[str, Facts], *, n_rows: int, n_units: int, n_users: int | None, n_empty: int
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


# -------------------------------------------------------------------------------------------------------------- chunks


@record(eq=False)
class RankedChunk:
    """Whole clusters of an impression log, and what the tables of targets say of their sessions.

    `place` is the place of each unit in the population. `made` keeps what was already made of the chunk.
    """

    log: Log
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
