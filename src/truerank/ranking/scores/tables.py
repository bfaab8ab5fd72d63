"""Long tables of scores: `user, item, score` or `user, item, rank`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.wording import columns_option
from truerank.io.columns import SCORED, SHOWN, TableColumns, odd_value, table_columns
from truerank.ranking.scores.scores import Lists

COUNTED = 512  # length of lists up to which comparing all with all beats sorting
LISTS = "truerank.scores.lists"  # what reads such tables in Python, as errors name it
WORTH_IT = 200_000  # rows below which loading the compiled loops costs more than it saves


@checked_arguments()
def lists(source: Any, *, columns: Mapping[str, str] | None = None, name: str | None = None) -> Lists:
    """Scores from a table of all pairs or of top lists; -inf is never recommended.

    >>> top = lists(pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 6], "rank": [1, 2, 1]}))
    >>> top.depth, top.block(np.array([0, 1])).tolist()
    (2, [[0.0, -1.0], [-inf, 0.0]])

    Where there are ranks beside scores, they order items of equal scores, as the model has listed them.
    """
    rows = table_columns(source, columns, SCORED, name=name)
    table, where, said = rows.table, rows.where, rows.notes
    if len(table) == 0:
        raise InputError(f"{where}: no rows; expected scores of user-item pairs.")
    (users, user), (items, item) = (
        Ids.factorise(rows.get(key, by=LISTS), where=f"{where}, column {key!r}") for key in ("user", "item")
    )
    score, rank = _scores(rows), _ranks(rows)
    count = np.bincount(user, minlength=len(users))
    if (score == -np.inf).any():
        kept = np.flatnonzero(score != -np.inf)
        user, item, score, rank = user[kept], item[kept], score[kept], None if rank is None else rank[kept]
    start = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=len(users)))]).astype(np.int64)
    quick = len(table) >= WORTH_IT and find_spec("numba") is not None
    ordered, above, tied, scores = (_ordered_fast if quick else _ordered)(user, item, score, start, len(items))
    if len(ordered) == 0 and len(user):
        _refuse_repeated(users, items, user, item, where=where)
    if rows.find("score") is None:
        _check_ranks(users, start, above, -scores, where=where)
    elif tied.any() and rank is not None:
        ordered, above, tied, scores = _ordered(user, item, score, start, len(items), rank=rank)
        said = (*said, f"{where}: items of equal scores are in the order of the column 'rank'.")
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
        notes=said,
    )


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
        if longest <= COUNTED:
            fast.count_lists(items, scores, start, *bounds, longest)
        else:
            fast.order_lists(items, scores, start, *bounds)
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
    rounds = numbers.dtype.is_decimal() or (numbers.dtype.is_integer() and _size(numbers) > 2**53)
    return (numbers.rank("dense") if rounds else numbers).cast(pl.Float64)


def _size(numbers: pl.Series) -> int:
    """The largest of them, whatever the sign."""
    known = numbers.drop_nulls()
    return max(int(known.max()), -int(known.min())) if len(known) else 0  # type: ignore[arg-type]


def _ranks(rows: TableColumns) -> Floats | None:
    """The ranks beside scores, where every row has one."""
    found = rows.find("rank")
    if found is None or not found.dtype.is_numeric() or found.null_count():
        return None
    return found.cast(pl.Float64).to_numpy()


def _scores(rows: TableColumns) -> Floats:
    where, ranks, scores = rows.where, rows.find("rank"), rows.find("score")
    found = ranks if scores is None else scores
    if found is None:
        raise InputError(
            f"{where}: no column 'score' or 'rank'; found {some(rows.table.columns, most=SHOWN)}. "
            f"Name the one that holds the score: {columns_option('score', by=LISTS)}."
        )
    if not found.dtype.is_numeric():
        odd = odd_value(found)
        raise InputError(f"{where}, column {found.name!r}: {found.dtype} values such as {odd!r}; expected numbers.")
    numbers = _doubles(found)
    bad = numbers.is_null() | numbers.is_nan() | (numbers == np.inf)
    if scores is None:
        bad = bad | (numbers < 1) | (numbers != numbers.round(0))
    if bool(bad.any()):
        row = int(bad.arg_true()[0])
        expected = "a number or -inf (never recommended)" if scores is not None else "a whole number from 1"
        raise InputError(f"{where}, column {found.name!r}: row {row + 1} is {found[row]!r}; expected {expected}.")
    values: Floats = numbers.to_numpy()
    return values if scores is not None else -values
