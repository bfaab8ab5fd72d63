"""Rank the rows of a log among their candidates, in blocks of users, on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from truerank.arrays import Floats, Ints, frozen
from truerank.chance import cell_keys
from truerank.core import Candidates, Log, Ranks, Scores, Ties
from truerank.errors import InputError
from truerank.ids import Ids
from truerank.ranks.kernel import count_above_and_tied
from truerank.ranks.ties import places_by_key, relevance, settle

BLOCK_CELLS = 2**24  # scores held at once by one thread

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Aligned:
    """A recommender's scores for the units and items of an evaluation. Items it does not know are never recommended."""

    scores: Scores
    row: Ints
    column: Ints | None

    @classmethod
    def of(cls, scores: Scores, *, users: Ids, items: Ids, name: str) -> Aligned:
        row = scores.users.locate(users, where=f"{name}, users")
        same = scores.items == items
        return cls(scores, row, None if same else scores.items.locate(items, where=f"{name}, items"))

    def block(self, units: Ints) -> npt.NDArray[np.floating]:
        found = self.scores.block(self.row[units])
        if self.column is None:
            return found
        result = np.full((len(units), len(self.column)), -np.inf, dtype=found.dtype)
        known = self.column >= 0
        result[:, known] = found[:, self.column[known]]
        return result


def rank(
    scores: Scores,
    log: Log,
    *,
    pools: Sequence[Candidates],
    ties: Ties = Ties.EXPECTED,
    seed: int = 0,
    threads: int = 1,
    block_users: int | None = None,
    name: str = "scores",
    progress: Progress | None = None,
) -> tuple[Ranks, ...]:
    """The ranks of all rows of `log` (sorted by user) within each of several pools; scores are computed once.

    A unit without scores has rank infinity everywhere and `scored` false.
    """
    aligned = Aligned.of(scores, users=log.users, items=log.items, name=name)
    start = np.searchsorted(log.user, np.arange(log.n_units + 1))
    scored = aligned.row >= 0
    units = np.flatnonzero(scored)
    above = [np.full(len(log), np.inf) for _ in pools]
    tied = [np.zeros(len(log)) for _ in pools]
    recommended = [pool.count.copy() for pool in pools]
    keys = (log.users.keys(), log.items.keys()) if ties is Ties.RANDOM else None

    def work(block: Ints) -> int:
        matrix = aligned.block(block)
        _check(matrix, log, block, name=name)
        for unit, row in zip(block, matrix, strict=True):
            rows = slice(start[unit], start[unit + 1])
            asked = log.item[rows]
            for at, pool in enumerate(pools):
                members = _members(pool, int(unit), len(row))
                found = row if members is None else row[members]
                above[at][rows], tied[at][rows] = count_above_and_tied(found, row[asked])
                recommended[at][unit] = np.count_nonzero(found > -np.inf)
                if keys is not None and tied[at][rows].any():
                    where = asked if members is None else np.searchsorted(members, asked)
                    item_keys = keys[1] if members is None else keys[1][members]
                    cell = cell_keys(seed, "ties", np.full(len(found), keys[0][unit]), item_keys)
                    above[at][rows] += places_by_key(found, cell, where)
                    tied[at][rows] = 0
        return len(block)

    size = block_users or max(1, min(256, BLOCK_CELLS // max(1, len(log.items))))
    blocks = [units[i : i + size] for i in range(0, len(units), size)]
    _run(work, blocks, threads=threads, total=len(units), progress=progress)
    settled = [
        settle(ties, above=a, tied=t, unit=log.unit, label=_labels(log, ties)) for a, t in zip(above, tied, strict=True)
    ]
    return tuple(
        Ranks(frozen(a), frozen(t), frozen(pool.count), frozen(listed), frozen(scored))
        for (a, t), pool, listed in zip(settled, pools, recommended, strict=True)
    )


def _run(
    work: Callable[[Ints], int], blocks: list[Ints], *, threads: int, total: int, progress: Progress | None
) -> None:
    done = 0
    # one BLAS thread per Python thread: no oversubscription, and one arithmetic whatever the number of threads
    with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(max_workers=threads) as pool:
        results = map(work, blocks) if threads == 1 else pool.map(work, blocks)
        try:
            for finished in results:
                done += finished
                if progress is not None:
                    progress(done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@cache
def _blas() -> ThreadpoolController:
    """Finding the loaded libraries costs milliseconds: once is enough."""
    return ThreadpoolController()


def _members(pool: Candidates, unit: int, n_items: int) -> Ints | None:
    """The sorted positions of a unit's candidates, None for the whole catalogue."""
    if pool.only is not None:
        return pool.only.of_unit(unit)
    if pool.exclude is None:
        return None
    excluded = pool.exclude.of_unit(unit)
    if len(excluded) == 0:
        return None
    kept = np.ones(n_items, dtype=bool)
    kept[excluded] = False
    return np.flatnonzero(kept)


def _labels(log: Log, ties: Ties) -> Floats:
    return relevance(log) if ties.needs_every_label else np.zeros(0)


def _check(matrix: npt.NDArray[np.floating], log: Log, block: Ints, *, name: str) -> None:
    bad = np.isnan(matrix) | np.isposinf(matrix)
    if bad.any():
        at, item = (int(x) for x in np.argwhere(bad)[0])
        user = log.users.texts(np.array([block[at]]))[0]
        raise InputError(
            f"{name}: the score of user {user}, item {log.items.texts(np.array([item]))[0]} is {matrix[at, item]}; "
            "expected a finite number, or -inf for an item that is never recommended."
        )
