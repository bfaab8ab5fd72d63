"""Sparse matrices of scores: what is stored is recommended, in the order of the scores; nothing else ever is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.arrays import frozen
from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids
from truerank.io.frames import Stored, population, rows_of, stored
from truerank.ranking.scores.scores import Lists
from truerank.ranking.scores.tables import lists


@checked_arguments()
def sparse(
    matrix: Any, *, users: IdColumn | Ids | None = None, items: IdColumn | Ids | None = None, name: str = "scores"
) -> Lists:
    """Scores from a scipy.sparse matrix [users x items]; a stored zero is a score, an absent entry is none.

    Without ids, users and items are numbered from 0. Each user has a top list of the stored items, so a cut-off
    beyond the longest list is refused, as for any top list.

    >>> from scipy.sparse import csr_array
    >>> sparse(csr_array(np.array([[0.0, 2.0], [3.0, 0.0]]))).block(np.array([0, 1])).tolist()
    [[-inf, 0.0], [0.0, -inf]]
    """
    return from_stored(stored(matrix, name=name), users=users, items=items, name=name)


def from_stored(
    entries: Stored, *, users: IdColumn | Ids | None = None, items: IdColumn | Ids | None = None, name: str
) -> Lists:
    """The same from the stored entries."""
    if len(entries.value) == 0:
        raise InputError(f"{name}: no entry is stored; expected scores of user-item pairs.")
    table = rows_of(entries, users=users, items=items, name=name).rename({"value": "score"})
    listed = lists(table, name=name)
    known_users = population(users, entries.shape[0], where=f"{name}, users")
    known_items = population(items, entries.shape[1], where=f"{name}, items")
    # users without an entry have empty lists, and are users all the same
    count = np.zeros(len(known_users), dtype=np.int64)
    count[known_users.locate(listed.users)] = np.diff(listed.start)
    return replace(
        listed,
        users=known_users,
        items=known_items,
        start=frozen(np.concatenate([[0], np.cumsum(count)]).astype(np.int64)),
        item=frozen(known_items.locate(listed.items)[listed.item]),
        every_pair=len(entries.value) == len(known_users) * len(known_items),
        closed=True,
    )
