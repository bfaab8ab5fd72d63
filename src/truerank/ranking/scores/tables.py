"""Scores of tables, sparse matrices, arrays of recommended items, or whatever else a caller has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, as_array, frozen
from truerank.core.errors import InputError, some
from truerank.core.ids import IdColumn, Ids, as_ids
from truerank.core.validation import checked_arguments
from truerank.core.wording import columns_option, option
from truerank.io.columns import SCORED, SHOWN, TableColumns, odd_value, table_columns, with_usual
from truerank.io.frames import Stored, is_pandas, named, population, rows_of, stored
from truerank.ranking.scores.scores import Lists

LISTS = "truerank.scores.lists"  # what reads such tables in Python, as errors name it
FILTERED = float(np.finfo(np.float32).min)  # the score by which implicit marks what it filtered
WORTH_IT = 200_000  # rows below which loading the compiled loops costs more than it saves


@checked_arguments()
def lists(source: Any, *, columns: Mapping[str, str] | None = None, name: str | None = None) -> Lists:
    """Scores from a table of all pairs or of top lists; -inf is never recommended.

    >>> top = lists(pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 6], "rank": [1, 2, 1]}))
    >>> top.depth, top.block(np.array([0, 1])).tolist()
    (2, [[0.0, -1.0], [-inf, 0.0]])

    Where there are ranks beside scores, they order items of equal scores, as the model has listed them.
    """
    return listed(source, columns, name=name)


def listed(
    source: Any,
    columns: Mapping[str, str] | None = None,
    *,
    users: Ids | None = None,
    items: Ids | None = None,
    name: str | None = None,
) -> Lists:
    """The same, where all users or items are known: also those without a row."""
    rows = table_columns(source, columns, SCORED, name=name)
    table, where, notes = rows.table, rows.where, rows.notes
    if len(table) == 0:
        raise InputError(f"{where}: no rows; expected scores of user-item pairs.")
    (users, user), (items, item) = (
        _numbered(rows, key, everyone) for key, everyone in (("user", users), ("item", items))
    )
    score, rank = _scores(rows), _ranks(rows)
    count = np.bincount(user, minlength=len(users))
    ever = score != -np.inf
    if not ever.all():
        user, item, score, rank = user[ever], item[ever], score[ever], None if rank is None else rank[ever]
    start = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=len(users)))]).astype(np.int64)
    order = _ordered_fast if len(table) >= WORTH_IT else _ordered
    ordered, above, tied, scores = order(user, item, score, start, len(items))
    if len(ordered) == 0 and len(user):
        _refuse_repeated(users, items, user, item, where=where)
    if rows.find("score") is None:
        _check_ranks(users, start, above, -scores, where=where)
    elif tied.any() and rank is not None:
        ordered, above, tied, scores = _ordered(user, item, score, start, len(items), rank=rank)
        notes = (*notes, f"{where}: items of equal scores are in the order of the column 'rank'.")
    return Lists(
        users=users,
        items=items,
        start=frozen(start),
        item=frozen(ordered),
        above=frozen(above),
        tied=frozen(tied),
        distinct=not tied.any(),
        depth=int(count.max(initial=0)),
        every_pair=len(table) == len(users) * len(items),
        notes=notes,
    )


def _numbered(rows: TableColumns, key: str, everyone: Ids | None) -> tuple[Ids, Ints]:
    """The ids of a column, or all there are, and the place of each row among them."""
    ids, place = Ids.factorise(rows.get(key, by=LISTS), where=f"{rows.where}, column {key!r}")
    return (ids, place) if everyone is None else (everyone, everyone.locate(ids)[place])


Ordered = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer], npt.NDArray[np.integer], Floats]
NOTHING: Ordered = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _ordered(
    user: Ints, item: Ints, score: Floats, start: Ints, n_items: int, *, rank: Floats | None = None
) -> Ordered:
    """Items of all users, best first, with above and tied counts and scores; nothing where a pair is repeated.

    Of equal scores the smaller rank comes first, where there are ranks.
    """
    if len(np.unique(user * n_items + item)) < len(user):
        return NOTHING
    order = np.lexsort((item, -score, user) if rank is None else (item, rank, -score, user))
    user, score = user[order], score[order]
    changed = np.ones(len(user), dtype=bool)
    changed[1:] = (np.diff(user) != 0) | (score[1:] != score[:-1])
    if rank is not None:
        changed[1:] |= np.diff(rank[order]) != 0
    first = np.flatnonzero(changed)
    size = np.diff(np.append(first, len(user)))
    return item[order], np.repeat(first, size) - start[user], np.repeat(size - 1, size), score


def _ordered_fast(user: Ints, item: Ints, score: Floats, start: Ints, n_items: int) -> Ordered:
    """The same by bucketing rows by user first, on all cores; items of equal scores may come in another order."""
    from truerank.ranking.kernel import fast

    items, scores = fast.bucket(user, item.astype(np.int32), score, start)
    if fast.repeated(items, start, n_items) >= 0:
        return NOTHING
    above, tied = np.empty(len(items), np.int32), np.empty(len(items), np.int32)
    longest = int(np.diff(start).max(initial=0))

    def work(bounds: tuple[int, int]) -> None:
        fast.order_lists(items, scores, start, *bounds, longest)
        fast.count_ordered(scores, start, *bounds, above, tied)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(work, pairwise(np.linspace(0, len(start) - 1, 65).astype(np.int64))))
    return items, above, tied, scores


def _check_ranks(users: Ids, start: Ints, above: npt.NDArray[np.integer], rank: Floats, *, where: str) -> None:
    """Ranks are places in a list of which nothing is missing: after a gap an item would count as better than it is."""
    gap = np.flatnonzero(rank > above + 1)
    if len(gap):
        user = int(np.searchsorted(start, gap[0], side="right")) - 1
        raise InputError(
            f"{where}, column 'rank': user {users.values[user]!r} has rank {int(rank[gap[0]])} after "
            f"{int(above[gap[0]])} better items; expected ranks from 1 without gaps. "
            "List every item down to the last rank, or give scores."
        )


def _refuse_repeated(users: Ids, items: Ids, user: Ints, item: Ints, *, where: str) -> None:
    order = np.lexsort((item, user))
    same = (np.diff(user[order]) == 0) & (np.diff(item[order]) == 0)
    row = int(order[np.argmax(same)])
    pair = f"user {users.values[int(user[row])]!r}, item {items.values[int(item[row])]!r}"
    raise InputError(
        f"{where}: {int(same.sum()):,} rows repeat a pair, such as {pair}; expected each pair once. "
        "Keep one row per pair."
    )


def _doubles(numbers: pl.Series) -> pl.Series:
    """Scores as float64 in the same order: of those that float64 would round to each other, their places among all.

    >>> _doubles(pl.Series([2**60 + 1, 2**60, 7])).to_list()
    [3.0, 2.0, 1.0]
    """
    rounds = numbers.dtype.is_decimal()
    if numbers.dtype.is_integer() and numbers.null_count() < len(numbers):
        rounds = max(int(numbers.max()), -int(numbers.min())) > 2**53  # type: ignore[arg-type]
    return (numbers.rank("dense") if rounds else numbers).cast(pl.Float64)


def _ranks(rows: TableColumns) -> Floats | None:
    """The ranks beside scores, where every row has one."""
    ranks = rows.find("rank")
    if ranks is None or not ranks.dtype.is_numeric() or ranks.null_count():
        return None
    return ranks.cast(pl.Float64).to_numpy()


def _scores(rows: TableColumns) -> Floats:
    where, scores = rows.where, rows.find("score")
    values = rows.find("rank") if scores is None else scores
    if values is None:
        raise InputError(
            f"{where}: no column 'score' or 'rank'; found {some(rows.table.columns, most=SHOWN)}. "
            f"Name the one that holds the score: {columns_option('score', by=LISTS)}."
        )
    if not values.dtype.is_numeric():
        odd = odd_value(values)
        raise InputError(f"{where}, column {values.name!r}: {values.dtype} values such as {odd!r}; expected numbers.")
    numbers = _doubles(values)
    bad = numbers.is_null() | numbers.is_nan() | (numbers == np.inf)
    if scores is None:
        bad = bad | (numbers < 1) | (numbers != numbers.round(0))
    if bool(bad.any()):
        row = int(bad.arg_true()[0])
        expected = "a number or -inf (never recommended)" if scores is not None else "a whole number from 1"
        raise InputError(f"{where}, column {values.name!r}: row {row + 1} is {values[row]!r}; expected {expected}.")
    return numbers.to_numpy() if scores is not None else -numbers.to_numpy()


# ------------------------------------------------------------------------------------------- matrices, arrays, anything


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
    every_user, every_item = (
        population(ids, size, where=f"{name}, {what}")
        for ids, size, what in zip((users, items), entries.shape, ("users", "items"), strict=True)
    )
    return replace(listed(table, users=every_user, items=every_item, name=name), closed=True)


@checked_arguments()
def top(
    recommended: Any,
    scores: Any = None,
    *,
    users: IdColumn | Ids,
    items: IdColumn | Ids | None = None,
    name: str = "top lists",
) -> Lists:
    """Lists of an array [users x k] of recommended items, best first, such as implicit, RecBole or Faiss return.

    `users` names its rows. With `items`, its numbers are places in these (columns of the matrix a model was fitted on);
    without, they are the ids of the items. -1 stands for no item, and so does an item whose score, where `scores` of
    the same shape are given, is -inf or the smallest float32. The order of a row is the order of the list: scores break
    no tie and make none.

    >>> found = top(np.array([[2, 0], [1, -1]]), users=["ann", "bob"], items=["tea", "milk", "salt"])
    >>> found.items.texts(), found.block(np.array([0, 1])).tolist()
    (['milk', 'salt', 'tea'], [[-inf, 0.0, -1.0], [0.0, -inf, -inf]])
    """
    numbers = as_array(recommended)
    if numbers.ndim != 2 or numbers.dtype.kind not in "iuUO":
        raise InputError(
            f"{name}: recommended items are {numbers.dtype} of shape {numbers.shape}; expected ids or places of items "
            "[users x k], best first."
        )
    user = named(users, numbers.shape[0], where=f"{name}, users")
    present = numbers >= 0 if numbers.dtype.kind in "iu" else np.ones(numbers.shape, dtype=bool)
    present &= _recommended(scores, numbers.shape, name=name)
    row, place = np.nonzero(present)
    if user is None or not len(row):
        raise InputError(f"{name}: no item is recommended to any user; expected some.")
    item = pl.Series(_items(numbers[present], items, name=name))
    table = pl.DataFrame({"user": user[row], "item": item, "score": -place.astype(np.float64)})
    # a user to whom nothing is recommended is one of the model's all the same
    return listed(table, users=Ids.of(user), name=name)


def _items(listed: npt.NDArray[Any], items: IdColumn | Ids | None, *, name: str) -> Any:
    """The id of each recommended item."""
    if items is None:
        return listed.tolist() if listed.dtype.kind in "UO" else listed
    column = items.values if isinstance(items, Ids) else as_ids(items, where=f"{name}, items")
    size = len(column)
    ids = named(column, size, where=f"{name}, items")
    if listed.dtype.kind not in "iu" or int(listed.max()) >= size or ids is None:
        shown = listed.max() if listed.dtype.kind in "iu" else listed[0]
        raise InputError(
            f"{name}: an item is {shown!r}; expected places in the {size:,} `items`, from 0 to {size - 1:,}. Leave "
            f"{option('items')} out where items are named by their ids."
        )
    return ids[listed.astype(np.int64)]


def _recommended(scores: Any, shape: tuple[int, ...], *, name: str) -> Bools:
    """Which items were recommended: all but those whose score says that they were filtered."""
    if scores is None:
        return np.ones(shape, dtype=bool)
    values = as_array(scores)
    if values.shape != shape or values.dtype.kind not in "fiu" or np.isnan(values).any():
        raise InputError(
            f"{name}: scores are {values.dtype} of shape {values.shape}; expected a number for each of {shape} items."
        )
    return np.asarray(values > FILTERED)


def is_wide(source: Any) -> bool:
    """Whether a table of pandas is a matrix of scores: a row for each user, a column of numbers for each item."""
    if not is_pandas(source) or len(source.columns) == 0:
        return False
    long = with_usual([str(name) for name in (*source.columns, *source.index.names)], {}, SCORED)
    ids = {"user", "item"} & {*source.columns, *source.index.names}
    return not long and not ids and all(kind.kind in "fiub" for kind in map(np.dtype, source.dtypes))
