"""What a session cannot have, and what an impression log holds in words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truerank.core.errors import InputError
from truerank.data.facts import Facts
from truerank.data.impressions import Impressions, Logged


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
            "a session and surface. Give each list a session of its own, or name the surface: --columns surface=NAME."
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
