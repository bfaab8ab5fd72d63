"""Rank the rows of a log among their candidates, in blocks of users, on several threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates, Ranks, Scores, Ties
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.threads import one_blas_thread
from truerank.ranking.kernel.ties import count_above_and_tied, places_by_key, relevance, settle
from truerank.ranking.scores.scores import TILE_USERS, ByUser, Factors, Lists, gathered_places

BLOCK_CELLS = 2**24  # scores held at once by one thread
FEW_ROWS = 64  # labelled items per user up to which counting beats sorting
FEW_CELLS = 2**16  # labelled items x candidates of a user up to which it does too: sorting has a cost of its own
LIST_USERS = 4096  # users whose lists are looked through at a time
LIST_CELLS = 200  # that a list costs the plain kernel beside its own
WORTH_IT = 2**24  # cells below which loading the compiled kernel costs more than it saves
WORTH_USING = 2**14  # cells below which it saves nothing, once it is loaded
COMPILED = "truerank.ranking.kernel.fast"

Progress = Callable[[int, int], None]


@record
class Aligned:
    """A recommender's scores for the units and items of an evaluation. Items it does not know are never recommended."""

    scores: Scores
    row: Ints
    column: Ints | None
    finite: bool = False  # scores are finite whatever the rounding
    units: Ints | None = None  # whose rows these are, in their order; all of them where None

    def of_units(self, units: Ints) -> Aligned:
        """The same for some of the units."""
        places = units if self.units is None else np.searchsorted(self.units, units)
        return replace(self, row=self.row[places], units=None)

    def shared(self) -> Aligned:
        """What all units share, without what belongs to any of them: small beside it, and sent once."""
        none = np.zeros(0, dtype=np.int64)
        scores = self.scores.of_users(none) if isinstance(self.scores, ByUser) else self.scores
        return replace(self, scores=scores, row=none)

    def side(self, units: Ints) -> UnitSide:
        """What belongs to some of the units."""
        row = self.row[units]
        if not isinstance(self.scores, ByUser):
            return UnitSide(units, row, {})
        rows, here = np.unique(row[row >= 0], return_inverse=True)
        places = np.full(len(row), -1, dtype=np.int64)
        places[row >= 0] = here
        scores = self.scores.of_users(rows)
        return UnitSide(units, places, {name: getattr(scores, name) for name in scores.own})

    def with_side(self, side: UnitSide) -> Aligned:
        """What all units share, for some of them again."""
        scores: Any = replace(self.scores, **side.scores) if side.scores else self.scores  # type: ignore[type-var]
        return replace(self, scores=scores, row=side.row, units=side.units)

    @classmethod
    def of(cls, scores: Scores, *, users: Ids, items: Ids, name: str) -> Aligned:
        row = scores.users.locate(users, where=f"labels, against {name}, users")
        finite = _always_finite(scores)
        if scores.items == items:
            return cls(scores, row, None, finite)
        column = scores.items.locate(items, where=f"labels, against {name}, items")
        if isinstance(scores, Factors) and (column >= 0).all():
            chosen = np.ascontiguousarray(scores.item[column])
            return cls(replace(scores, item=chosen, items=items), row, None, finite)
        if isinstance(scores, Lists):
            place = items.locate(scores.items)
            if (place >= 0).all():
                return cls(replace(scores, item=place[scores.item], items=items), row, None, finite)
        return cls(scores, row, column, finite)

    def block(self, units: Ints) -> npt.NDArray[np.floating]:
        scores = self.scores.block(self.row[units])
        if self.column is None:
            return scores
        result = np.full((len(units), len(self.column)), -np.inf, dtype=scores.dtype)
        scored = self.column >= 0
        result[:, scored] = scores[:, self.column[scored]]
        return result


@record
class UnitSide:
    """What a recommender says that belongs to some units alone; nothing but their rows where it is one piece."""

    units: Ints
    row: Ints
    scores: Mapping[str, Any]


@record
class _Work:
    """What all blocks share: the question, and the arrays that each block fills in its own places."""

    aligned: Aligned
    log: Log
    start: Ints
    pools: Sequence[Candidates]
    above: list[Floats]
    tied: list[Floats]
    recommended: list[Floats]
    name: str
    streams: bool  # scores come in tiles of finite numbers; no row is ever stored

    def plain(self, block: Ints) -> int:
        """By whole rows of scores, sorted: serves every case, and is what the fast way must equal."""
        matrix = self.aligned.block(block)
        self._check(matrix, block)
        for unit, row in zip(block, matrix, strict=True):
            rows = slice(self.start[unit], self.start[unit + 1])
            for p, pool in enumerate(self.pools):
                members = _members(pool, int(unit), len(row))
                scores = row if members is None else row[members]
                self.above[p][rows], self.tied[p][rows] = count_above_and_tied(scores, row[self.log.item[rows]])
                self.recommended[p][unit] = np.count_nonzero(scores > -np.inf)
        return len(block)

    def fast(self, block: Ints) -> int:
        """By tiles of scores, counted as they are made; for few labelled items per user."""
        from truerank.ranking.kernel import fast

        rows, start = self._rows(block)
        item = self.log.item[rows]
        if self.streams and isinstance(self.aligned.scores, Factors):
            tiles = fast.Tiles.of_factors(self.aligned.scores, self.aligned.row[block])
        else:
            matrix = self.aligned.block(block)
            self._check(matrix, block)
            tiles = fast.Tiles(matrix)
        threshold = tiles.of_items(start, item)
        never = np.isneginf(threshold)
        for p, pool in enumerate(self.pools):
            above, reaching, recommended = fast.count(tiles, threshold, start, pool=pool, units=block)
            self.above[p][rows] = np.where(never, np.inf, above.astype(np.float64))
            self.tied[p][rows] = np.where(never, 0.0, (reaching - above - 1).astype(np.float64))
            if not self.streams or pool.only is not None:
                self.recommended[p][block] = recommended
        return len(block)

    def listed(self, block: Ints) -> int:
        """By looking labelled items up in their users' lists; no row of scores is made."""
        from truerank.ranking.kernel import fast

        lists = self.aligned.scores
        if not isinstance(lists, Lists):
            return self.plain(block)
        rows, start = self._rows(block)
        for p, pool in enumerate(self.pools):
            above, tied = self.above[p][rows], self.tied[p][rows]  # the very rows where they are one run, else copies
            recommended = np.zeros(len(block))
            fast.look_up(
                self.aligned.row[block], (lists.start, lists.item, lists.above, lists.tied),
                (start, self.log.item[rows]), _of_block(pool.exclude, block), len(self.log.items), lists.distinct,
                (above, tied, recommended),
            )  # fmt: skip
            if not isinstance(rows, slice):
                self.above[p][rows], self.tied[p][rows] = above, tied
            self.recommended[p][block] = recommended
        return len(block)

    def _rows(self, block: Ints) -> tuple[Ints | slice, Ints]:
        """The rows of a block's units, and where each unit's begin among them."""
        if block[-1] - block[0] == len(block) - 1:
            start = self.start[block[0] : block[-1] + 2]
            return slice(int(start[0]), int(start[-1])), start - start[0]
        return gathered_places(self.start, block)

    def _check(self, matrix: npt.NDArray[np.floating], block: Ints) -> None:
        check_block(matrix, block, users=self.log.users, items=self.log.items, name=self.name)


def check_block(matrix: npt.NDArray[np.floating], block: Ints, *, users: Ids, items: Ids, name: str) -> None:
    """Refuse scores that have no place in an order: NaN and +inf."""
    bad = ~(matrix < np.inf)
    if bad.any():
        row, column = (int(x) for x in np.argwhere(bad)[0])
        user, item = users.texts(block[[row]])[0], items.texts(np.array([column]))[0]
        raise InputError(
            f"{name}: the score of user {user}, item {item} is {matrix[row, column]}; "
            "expected a finite number, or -inf for an item that is never recommended."
        )


def rank(
    scores: Scores | Aligned,
    log: Log,
    *,
    pools: Sequence[Candidates],
    ties: Ties = Ties.EXPECTED,
    seed: int = 0,
    threads: int = 1,
    block_users: int | None = None,
    name: str = "scores",
    progress: Progress | None = None,
    fast: bool | None = None,
    n_models: int = 1,
) -> tuple[Ranks, ...]:
    """The ranks of all rows of `log` (sorted by user) within each of several pools; scores are computed once.

    A unit without scores has rank infinity everywhere and `scored` false. The `fast` kernel gives the same ranks as
    the plain one; by default it is used where it can be and pays, with so many models to rank in all.
    """
    aligned = scores
    if not isinstance(aligned, Aligned):
        aligned = Aligned.of(aligned, users=log.users, items=log.items, name=name)
    scored = aligned.row >= 0
    work = _Work(
        aligned,
        log,
        np.searchsorted(log.user, np.arange(log.n_units + 1)),
        pools,
        above=[np.full(len(log), np.inf) for _ in pools],
        tied=[np.zeros(len(log)) for _ in pools],
        recommended=[pool.count.copy() for pool in pools],
        name=name,
        streams=aligned.column is None and aligned.finite,
    )
    units = np.flatnonzero(scored)
    kernel, size = _kernel(work, len(units) * n_models, fast=fast)
    size = min(block_users or size, size)
    blocks = [units[i : i + size] for i in range(0, len(units), size)]
    _run(kernel, blocks, threads=threads, total=len(units), progress=progress)
    if ties is Ties.RANDOM:
        _run(lambda block: _draw_orders(work, block, seed=seed), blocks, threads=threads, total=len(units))
    label = relevance(log) if ties.needs_every_label else np.zeros(0)
    settled = [
        settle(ties, above=a, tied=t, unit=log.unit, label=label) for a, t in zip(work.above, work.tied, strict=True)
    ]
    return tuple(
        Ranks(frozen(a), frozen(t), frozen(pool.count), frozen(listed), frozen(scored))
        for (a, t), pool, listed in zip(settled, pools, work.recommended, strict=True)
    )


def _always_finite(scores: Scores) -> bool:
    """Whether scores are finite whatever the rounding: |p · q| <= |p| |q| stays far from the end of numbers."""
    if not isinstance(scores, Factors):
        return False
    with np.errstate(over="ignore"):  # what is too large is seen to be
        longest = [
            float(np.square(side, dtype=np.float64).sum(axis=1).max(initial=0)) for side in (scores.user, scores.item)
        ]
    return longest[0] * longest[1] < 1e74


def _kernel(work: _Work, n_lists: int, *, fast: bool | None) -> tuple[Callable[[Ints], int], int]:
    """The way to rank that can be used and pays, and how many users at a time it takes."""
    n_items = max(1, len(work.log.items))
    of_rows = max(1, BLOCK_CELLS // n_items)
    cells = n_lists * (n_items + LIST_CELLS)
    pays = cells >= (WORTH_USING if COMPILED in sys.modules else WORTH_IT)
    wanted = pays if fast is None else fast
    count, scores = np.diff(work.start), work.aligned.scores
    lists = work.aligned.column is None and isinstance(scores, Lists) and len(scores.item) < 2**31
    few = bool(fast) or len(work.log) <= max(FEW_ROWS, FEW_CELLS / n_items) * len(count)
    if wanted and lists and all(pool.only is None for pool in work.pools):
        return work.listed, LIST_USERS
    # a pool of its own that is no larger than the labelled items is the labelled items
    if wanted and few and all(pool.only is None or (pool.only.count == count).all() for pool in work.pools):
        return work.fast, TILE_USERS if work.streams else min(TILE_USERS, of_rows)
    return work.plain, min(256, of_rows)


def _draw_orders(work: _Work, block: Ints, *, seed: int) -> int:
    """Settle ties at random: a tied item stands behind those of its equals that have a smaller key."""
    log = work.log
    tied = [unit for unit in block if any(t[work.start[unit] : work.start[unit + 1]].any() for t in work.tied)]
    if not tied:
        return len(block)
    user_key, item_key = log.users.keys(), log.items.keys()
    for unit, row in zip(tied, work.aligned.block(np.array(tied)), strict=True):
        rows = slice(work.start[unit], work.start[unit + 1])
        for p, pool in enumerate(work.pools):
            members = _members(pool, int(unit), len(row))
            scores, keys = (row, item_key) if members is None else (row[members], item_key[members])
            where = log.item[rows] if members is None else np.searchsorted(members, log.item[rows])
            cell = cell_keys(seed, "ties", np.full(len(scores), user_key[unit]), keys)
            shared = work.tied[p][rows] > 0
            work.above[p][rows] += np.where(shared, places_by_key(scores, cell, where), 0)
            work.tied[p][rows] = 0
    return len(block)


def _run(
    work: Callable[[Ints], int], blocks: list[Ints], *, threads: int, total: int, progress: Progress | None = None
) -> None:
    done = 0
    # one BLAS thread per Python thread: no oversubscription, and one arithmetic whatever the number of threads
    with one_blas_thread(), ThreadPoolExecutor(max_workers=threads) as pool:
        results = map(work, blocks) if threads == 1 else pool.map(work, blocks)
        try:
            for finished in results:
                done += finished
                if progress is not None:
                    progress(done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _of_block(pairs: Pairs | None, block: Ints) -> tuple[Ints, Ints]:
    """Where each unit's items begin, and the items, of the units of a block."""
    if pairs is None:
        return np.zeros(len(block) + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    places, first = gathered_places(pairs.start, block)
    return first, pairs.item[places]


def _members(pool: Candidates, unit: int, n_items: int) -> Ints | None:
    """The sorted positions of a unit's candidates, None for the whole catalogue."""
    if pool.only is not None:
        return pool.only.of_unit(unit)
    if pool.exclude is None:
        return None
    excluded = pool.exclude.of_unit(unit)
    if len(excluded) == 0:
        return None
    candidate = np.ones(n_items, dtype=bool)
    candidate[excluded] = False
    return np.flatnonzero(candidate)
