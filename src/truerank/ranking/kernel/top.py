"""The top of every list: the K best candidates of each user, in blocks of users; no more scores are held at once.

Equal scores are put in an order that follows from seed, user and item alone, the one of `Ties.RANDOM`: neither the
place of an item in a file nor the chunk of a user matters.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.log import Log
from truerank.core.ranking import Candidates, TopLists
from truerank.core.rng import cell_keys
from truerank.core.threads import one_blas_thread
from truerank.ranking.kernel.rank import LIST_USERS, Aligned, check_block
from truerank.ranking.scores.scores import TILE_USERS, Lists, gathered_places

CELLS_AT_ONCE = 2**22
EVERY = 16  # of so many scores one is looked at first


class _Listed(NamedTuple):
    """Candidates of some units with their scores, which hold all of the top K."""

    unit: Ints
    item: Ints
    score: Floats


def top_lists(
    aligned: Aligned, log: Log, *, pool: Candidates, k: int, seed: int, name: str = "scores", threads: int = 1
) -> TopLists:
    """The k best candidates of each user of a log, best first; none for users without scores.

    >>> from truerank.core.ids import Ids
    >>> from truerank.ranking.scores.scores import dense
    >>> users, items, none = Ids.of([7, 8]), Ids.of([1, 2, 3]), np.zeros(0, dtype=np.int64)
    >>> aligned = Aligned.of(dense([[1.0, 3.0, 2.0]], users=[8], items=[1, 2, 3]), users=users, items=items, name="m")
    >>> found = top_lists(aligned, Log(users, items, none, none, {}), pool=Candidates(2, 3.0), k=2, seed=0)
    >>> found.start.tolist(), found.item.tolist()
    ([0, 0, 2], [1, 2])
    """
    n_units, n_items = log.n_units, len(log.items)
    units = np.flatnonzero(aligned.row >= 0)
    lists = aligned.scores if aligned.column is None and isinstance(aligned.scores, Lists) else None
    size = LIST_USERS if lists is not None else max(1, min(TILE_USERS, CELLS_AT_ONCE // max(1, n_items)))

    def of_block(block: Ints) -> tuple[Ints, Ints, Bools]:
        if lists is not None:
            listed = _listed(aligned, lists, block, pool)
        else:
            matrix = aligned.block(block)
            check_block(matrix, block, users=log.users, items=log.items, name=name)
            listed = _best(matrix, block, pool, k)
        return _ordered(listed, log, k=k, seed=seed)

    blocks = [units[start : start + size] for start in range(0, len(units), size)]
    with one_blas_thread(), ThreadPoolExecutor(max_workers=threads) as workers:
        parts = list(map(of_block, blocks) if threads == 1 else workers.map(of_block, blocks))
    none = np.zeros(0, dtype=np.int64)
    unit, item, tied = (
        np.concatenate(columns) for columns in zip((none, none, none.astype(bool)), *parts, strict=True)
    )
    return TopLists(np.concatenate([[0], np.cumsum(np.bincount(unit, minlength=n_units))]), item, tied)


def _listed(aligned: Aligned, lists: Lists, block: Ints, pool: Candidates) -> _Listed:
    """All that lists name, without what is no candidate."""
    places, first = gathered_places(lists.start, aligned.row[block])
    unit = np.repeat(block, np.diff(first))
    item = lists.item[places].astype(np.int64)
    candidate = np.ones(len(item), dtype=bool)
    for pairs, inside in ((pool.only, True), (pool.exclude, False)):
        if pairs is not None:
            candidate &= pairs.of_units(block[0], block[-1] + 1).hold(unit - block[0], item) == inside
    return _Listed(unit[candidate], item[candidate], -lists.above[places][candidate].astype(np.float64))


def _best(matrix: np.ndarray, block: Ints, pool: Candidates, k: int) -> _Listed:
    """All candidates that score at least as high as the k-th of their unit, and perhaps some more."""
    scores = np.array(matrix)  # what is no candidate is struck out
    if pool.only is not None:
        candidate = np.zeros(scores.shape, dtype=bool)
        for row, unit in enumerate(block):
            candidate[row, pool.only.of_unit(unit)] = True
        scores[~candidate] = -np.inf
    if pool.exclude is not None:
        for row, unit in enumerate(block):
            scores[row, pool.exclude.of_unit(unit)] = -np.inf
    high = scores >= _at_least(scores, k)[:, None] if k < scores.shape[1] else np.ones(scores.shape, dtype=bool)
    rows, item = np.nonzero(high & (scores > -np.inf))
    return _Listed(block[rows], item, scores[rows, item].astype(np.float64))


def _at_least(scores: np.ndarray, k: int) -> np.ndarray:
    """A number for each row that at least k of its scores reach, and few more where the row is long.

    That of a part of the row, at a rank that k of the whole hardly ever miss: to look there is several times faster
    than to part the row at its k-th score, which is done where k are missed.

    >>> row = np.arange(10000.0)[None]
    >>> bool(9000 < _at_least(row, 20)[0] <= 9980), _at_least(row[:, :50], 20).tolist()
    (True, [30.0])
    """
    n_items = scores.shape[1]
    part = scores[:, ::EVERY]
    expected = k / EVERY
    rank = math.ceil(expected + 4 * math.sqrt(expected) + 4)
    if rank * EVERY * EVERY > n_items:
        return np.asarray(np.partition(scores, n_items - k, axis=1)[:, n_items - k])
    least = np.partition(part, part.shape[1] - rank, axis=1)[:, part.shape[1] - rank]
    missed = np.flatnonzero(np.count_nonzero(scores >= least[:, None], axis=1) < k)
    if len(missed):
        least[missed] = np.partition(scores[missed], n_items - k, axis=1)[:, n_items - k]
    return np.asarray(least)


def _ordered(listed: _Listed, log: Log, *, k: int, seed: int) -> tuple[Ints, Ints, Bools]:
    """Unit and item of the first k of each unit by score, equal scores by key; and which of them the next equals."""
    order = np.lexsort((-listed.score, listed.unit))
    unit, score = listed.unit[order], listed.score[order]
    same = np.append((np.diff(unit) == 0) & (np.diff(score) == 0), False)[: len(unit)]
    if same.any():
        keys = cell_keys(seed, "ties", log.users.keys()[listed.unit], log.items.keys()[listed.item])
        order = np.lexsort((keys, -listed.score, listed.unit))
    first = np.arange(len(unit)) - np.searchsorted(unit, unit, side="left") < k
    return unit[first], listed.item[order[first]], same[first]
