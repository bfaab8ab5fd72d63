"""Recommended items as libraries return them: a row of items for each user, best first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Bools, as_array
from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids, as_ids
from truerank.core.wording import option
from truerank.io.frames import named
from truerank.ranking.scores.scores import Lists
from truerank.ranking.scores.tables import lists

NOTHING = float(np.finfo(np.float32).min)  # the score by which implicit marks what it filtered


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
    listed = as_array(recommended)
    if listed.ndim != 2 or listed.dtype.kind not in "iuUO":
        raise InputError(
            f"{name}: recommended items are {listed.dtype} of shape {listed.shape}; expected ids or places of items "
            "[users x k], best first."
        )
    user = named(users, listed.shape[0], where=f"{name}, users")
    known = listed >= 0 if listed.dtype.kind in "iu" else np.ones(listed.shape, dtype=bool)
    known &= _recommended(scores, listed.shape, name=name)
    row, place = np.nonzero(known)
    if user is None or not len(row):
        raise InputError(f"{name}: no item is recommended to any user; expected some.")
    item = pl.Series(_items(listed[known], items, name=name))
    table = pl.DataFrame({"user": user[row], "item": item, "score": -place.astype(np.float64)})
    # a user to whom nothing is recommended is one of the model's all the same
    alone = np.flatnonzero(~known.any(axis=1))
    nothing = pl.DataFrame({"user": user[alone], "item": item[np.zeros(len(alone), int)], "score": -np.inf})
    return lists(pl.concat([table, nothing]) if len(alone) else table, name=name)


def _items(listed: npt.NDArray[Any], items: IdColumn | Ids | None, *, name: str) -> Any:
    """The id of each recommended item."""
    if items is None:
        return listed.tolist() if listed.dtype.kind in "UO" else listed
    given = items.values if isinstance(items, Ids) else as_ids(items, where=f"{name}, items")
    size = len(given)
    ids = named(given, size, where=f"{name}, items")
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
    return np.asarray(values > NOTHING)
