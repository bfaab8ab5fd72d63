"""Long tables of scores: `user, item, score` or `user, item, rank`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from truerank.arrays import Floats, frozen
from truerank.data.read import as_table, column, find_column, odd_value
from truerank.errors import InputError
from truerank.ids import Ids
from truerank.ranks.scores import Lists


def lists(source: Any, *, columns: Mapping[str, str] | None = None, name: str | None = None) -> Lists:
    """Scores from a table of all pairs or of top lists; -inf is never recommended.

    >>> top = lists(pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 6], "rank": [1, 2, 1]}))
    >>> top.depth, top.block(np.array([0, 1])).tolist()
    (2, [[2.0, 1.0], [-inf, 1.0]])
    """
    table, where = as_table(source)
    where = name or where
    if len(table) == 0:
        raise InputError(f"{where}: no rows; expected scores of user-item pairs.")
    mapping = dict(columns or {})
    users_column, items_column = (column(table, key, mapping, where=where) for key in ("user", "item"))
    users = Ids.of(users_column, where=f"{where}, column 'user'")
    items = Ids.of(items_column, where=f"{where}, column 'item'")
    user, item = users.locate(users_column), items.locate(items_column)
    score = _scores(table, mapping, where=where)
    cell = user * len(items) + item
    order = np.argsort(cell, kind="stable")
    repeated = np.flatnonzero(np.diff(cell[order]) == 0)
    if len(repeated):
        row = int(order[repeated[0] + 1])
        raise InputError(
            f"{where}: row {row + 1} repeats user {users_column[row]!r}, item {items_column[row]!r}; "
            "expected each pair once. Keep one row per pair."
        )
    count = np.bincount(user, minlength=len(users))
    return Lists(
        users=users,
        items=items,
        start=frozen(np.concatenate([[0], np.cumsum(count)]).astype(np.int64)),
        item=frozen(item[order]),
        level=frozen(_levels(user, score)[order].astype(np.float32)),
        depth=int(count.max(initial=0)),
        every_pair=len(table) == len(users) * len(items),
    )


def _levels(user: Any, score: Floats) -> Floats:
    """The number of each row's distinct score among its user's, 1 for the worst; -inf stays."""
    order = np.lexsort((score, user))
    new_user = np.concatenate([[True], np.diff(user[order]) != 0]) if len(user) else np.zeros(0, dtype=bool)
    new_score = new_user | np.concatenate([[True], score[order][1:] != score[order][:-1]])[: len(user)]
    step = np.cumsum(new_score)
    first = np.maximum.accumulate(np.where(new_user, step - 1, 0))
    level = np.empty(len(user))
    level[order] = step - first
    return np.where(np.isneginf(score), -np.inf, level)


def _scores(table: pl.DataFrame, mapping: Mapping[str, str], *, where: str) -> Floats:
    ranks = find_column(table, "rank", mapping)
    scores = find_column(table, "score", mapping)
    found = ranks if scores is None else scores
    if found is None:
        raise InputError(
            f"{where}: no column 'score' or 'rank'; found {', '.join(table.columns)}. "
            "Name the one that holds the score: --columns score=NAME."
        )
    if not found.dtype.is_numeric():
        odd = odd_value(found)
        raise InputError(f"{where}, column {found.name!r}: {found.dtype} values such as {odd!r}; expected numbers.")
    numbers = found.cast(pl.Float64)
    bad = numbers.is_null() | numbers.is_nan() | (numbers == np.inf)
    if scores is None:
        bad = bad | (numbers < 1) | (numbers != numbers.round(0))
    if bool(bad.any()):
        row = int(bad.arg_true()[0])
        expected = "a number or -inf (never recommended)" if scores is not None else "a whole number from 1"
        raise InputError(f"{where}, column {found.name!r}: row {row + 1} is {found[row]!r}; expected {expected}.")
    values: Floats = numbers.to_numpy()
    return values if scores is not None else -values
