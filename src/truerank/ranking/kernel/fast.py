"""The fast rank kernel: a tile of scores is made, excluded items are masked, thresholds counted, the tile is gone.

Compiled by numba without threads of its own (`nogil`: Python threads run it side by side) and cached on disk. Exact:
counts of `>` and `>=` are whole numbers, so it equals the plain kernel on equal score rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from truerank.core.arrays import Ints
from truerank.core.compiled import Index, compiled
from truerank.core.ranking import Candidates
from truerank.core.record import record
from truerank.ranking.scores.scores import TILE_USERS, Factors, Matrix

COUNTED = 512  # length of lists up to which comparing all with all beats sorting
LANES = 32  # scores compared by one vector instruction sequence; tile widths are multiples of it


def _counter(comparison: str) -> Any:
    """An intrinsic: how many of LANES scores compare so with a threshold, as one vector compare and a popcount.

    Written in the compiler's own vectors, which it lowers to whatever the processor has. A plain loop is vectorised
    half as well.
    """

    @intrinsic
    def count(typingctx: Any, scores: Any, start: Any, threshold: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            kind = ir.FloatType() if signature.args[2] == types.float32 else ir.DoubleType()
            vector = ir.VectorType(kind, LANES)
            place = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
            values = builder.load(place)
            values.align = 4
            first = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.IntType(32)(0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            everywhere = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)
            mask = builder.fcmp_ordered(comparison, values, everywhere)
            return builder.zext(builder.ctpop(builder.bitcast(mask, ir.IntType(LANES))), ir.IntType(64))

        return types.int64(scores, types.int64, threshold), codegen

    return count


def _bit_finder() -> Any:
    """An intrinsic: the place of the lowest bit that is set, of a word that has one."""

    @intrinsic
    def lowest(typingctx: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.IntType(1)(1))

        return types.uint64(types.uint64), codegen

    return lowest


count_above = _counter(">")
count_reaching = _counter(">=")
lowest_bit = _bit_finder()


@compiled(boundscheck=False)
def count_tile(tile: Any, n_users: int, start: Any, threshold: Any, above: Any, reaching: Any) -> None:
    """Add, for each threshold of each user of a tile, how many scores are above it and how many reach it.

    User u has the thresholds start[u] ... start[u + 1] - 1. The tile's width is a multiple of LANES, filled with -inf.
    """
    scores = tile.reshape(-1)
    width = tile.shape[1]
    for u in range(n_users):
        base = u * width
        first, last = start[u], start[u + 1]
        whole = first + (last - first) // 4 * 4
        # four thresholds share each load of the scores
        for j in range(first, whole, 4):
            t0, t1, t2, t3 = threshold[j], threshold[j + 1], threshold[j + 2], threshold[j + 3]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0
            for i in range(base, base + width, LANES):
                a0 += count_above(scores, i, t0)
                a1 += count_above(scores, i, t1)
                a2 += count_above(scores, i, t2)
                a3 += count_above(scores, i, t3)
                b0 += count_reaching(scores, i, t0)
                b1 += count_reaching(scores, i, t1)
                b2 += count_reaching(scores, i, t2)
                b3 += count_reaching(scores, i, t3)
            above[j] += a0
            above[j + 1] += a1
            above[j + 2] += a2
            above[j + 3] += a3
            reaching[j] += b0
            reaching[j + 1] += b1
            reaching[j + 2] += b2
            reaching[j + 3] += b3
        for j in range(whole, last):
            t0 = threshold[j]
            a0 = b0 = 0
            for i in range(base, base + width, LANES):
                a0 += count_above(scores, i, t0)
                b0 += count_reaching(scores, i, t0)
            above[j] += a0
            reaching[j] += b0


@compiled(boundscheck=False)
def mask_tile(tile: Any, left: int, n_users: int, pointer: Any, stop: Any, item: Any) -> None:
    """Set the excluded items of each user within a tile to -inf; `pointer` walks along each user's sorted items."""
    right = left + tile.shape[1]
    for u in range(n_users):
        index = pointer[u]
        while index < stop[u] and item[index] < right:
            tile[u, item[index] - left] = -np.inf
            index += 1
        pointer[u] = index


@compiled(boundscheck=False)
def count_within(start: Any, threshold: Any, above: Any, reaching: Any, recommended: Any) -> None:
    """The same for candidates that are the labelled items themselves; for a few items per user."""
    for u in range(len(start) - 1):
        for j in range(start[u], start[u + 1]):
            recommended[u] += threshold[j] > -np.inf
            for i in range(start[u], start[u + 1]):
                above[j] += threshold[i] > threshold[j]
                reaching[j] += threshold[i] >= threshold[j]


@record
class Tiles:
    """Scores of a few users, piece by piece: whole rows of them, or products of factors of which no row is stored.

    The arithmetic is the same for tiles and for single items.
    """

    users: Matrix  # rows of scores, or a whole tile of factors filled up with zeros
    factors: Factors | None = None

    @classmethod
    def of_factors(cls, factors: Factors, rows: Ints) -> Tiles:
        users = np.zeros((TILE_USERS, factors.user.shape[1]), dtype=factors.user.dtype)
        users[: len(rows)] = factors.user[rows]
        return cls(users, factors)

    def of_items(self, start: Ints, item: Ints) -> Matrix:
        """The scores of chosen items; user u asks for item[start[u]:start[u + 1]]."""
        user = np.repeat(np.arange(len(start) - 1), np.diff(start))
        if self.factors is None:
            return self.users[user, item]
        distinct, place = np.unique(item, return_inverse=True)
        scores = np.empty(len(item), dtype=self.users.dtype)
        for left, product in self.factors.products(self.users, self.factors.item[distinct]):
            inside = (place >= left) & (place < left + product.shape[1])
            scores[inside] = product[user[inside], place[inside] - left]
        return scores

    def __iter__(self) -> Iterator[tuple[int, Matrix]]:
        """(first item, tile): together the tiles hold every item, filled up with -inf; a tile may be overwritten."""
        if self.factors is None:
            n, width = self.users.shape
            padded = np.full((n, -(-width // LANES) * LANES), -np.inf, dtype=self.users.dtype)
            padded[:, :width] = self.users
            yield 0, padded
            return
        n_items = len(self.factors.items)
        for left, product in self.factors.products(self.users, self.factors.item):
            product[:, max(n_items - left, 0) :] = -np.inf
            yield left, product


def count(tiles: Tiles, threshold: Matrix, start: Ints, *, pool: Candidates, units: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each labelled item of a block of users the candidates that score above it and that reach it; of each user the
    candidates that are ever recommended. Candidates are the catalogue minus exclusions, or the labelled items alone.

    Products of factors are finite: those that are never recommended need not be looked for, and stay 0.
    """
    n, exclude = len(units), pool.exclude
    above, reaching = np.zeros((2, len(threshold)), dtype=np.int64)
    recommended = np.zeros(n, dtype=np.int64)
    if pool.only is not None:
        count_within(start, threshold, above, reaching, recommended)
        return above, reaching, recommended
    if exclude is not None:
        pointer, stop = exclude.start[units].copy(), exclude.start[units + 1]
    for left, tile in tiles:
        if exclude is not None:
            mask_tile(tile, left, n, pointer, stop, exclude.item)
        if tiles.factors is None:
            recommended += np.count_nonzero(tile > -np.inf, axis=1)
        count_tile(tile, n, start, threshold, above, reaching)
    return above, reaching, recommended


@compiled(boundscheck=False)
def sum_tables(
    start: Any, above: Any, tied: Any, deepest: int, by_rank: Any, walk_rank: Any, walk_hit: Any,
    sums: Any, walks: Any, shared: Any,
) -> None:  # fmt: skip
    """For each unit Σ by_rank[rank], and Σ walk_rank[rank] walk_hit[j] over its relevant items, the j-th from the top.

    Relevant item i of unit u stands at rank above[i] + 1, start[u] <= i < start[u + 1]; ranks beyond `deepest` are
    worth nothing. Tables are [rank or j] x [metric]: all metrics are added at a time. Units with tied or shared ranks
    are marked: their sums are left to others.
    """
    n_sums, n_walks = by_rank.shape[1], walk_rank.shape[1]
    total, walked = np.zeros(n_sums), np.zeros(n_walks)
    most = 0
    for u in range(len(start) - 1):
        most = max(most, start[u + 1] - start[u])
    result, taken = np.empty(most + 1, np.uint64), np.zeros(deepest // 64 + 1, np.uint64)
    for u in range(len(start) - 1):
        # without branches: about a third of the items count, and nobody can guess which
        n, mixed = Index(0), False
        own_above, own_tied = above[start[u] : start[u + 1]], tied[start[u] : start[u + 1]]
        for i in range(len(own_above)):
            inside = own_above[i] < deepest
            result[n] = Index(min(own_above[i], deepest))
            mixed |= inside & (own_tied[i] > 0)
            n += Index(inside)
        # in the order of rows, as the plain way adds up
        last = Index(0)
        for i in range(n):
            word = result[i] >> Index(6)
            taken[word] |= Index(1) << (result[i] & Index(63))
            last = max(last, word)
            worth = by_rank[result[i] + Index(1)]
            for m in range(n_sums):
                total[m] += worth[m]
        # ranks as bits stand in order: nothing is sorted, and two that share one leave a bit less
        hit = Index(0)
        for word in range(last + Index(1)):
            left = taken[word]
            while left:
                hit += Index(1)
                worth, factor = walk_rank[word * Index(64) + lowest_bit(left) + Index(1)], walk_hit[hit]
                for m in range(n_walks):
                    walked[m] += worth[m] * factor[m]
                left &= left - Index(1)
            taken[word] = 0
        shared[u] = mixed | (hit != n)
        for m in range(n_sums):
            sums[m, u] = total[m]
            total[m] = 0.0
        for m in range(n_walks):
            walks[m, u] = walked[m]
            walked[m] = 0.0


@compiled()
def bucket(user: Any, item: Any, score: Any, start: Any) -> tuple[Any, Any]:
    """Items and scores with the rows of each user side by side; start[u] is where user u begins."""
    place = start[:-1].copy()
    items, scores = np.empty(len(user), item.dtype), np.empty(len(user), score.dtype)
    for row in range(len(user)):
        index = place[user[row]]
        items[index] = item[row]
        scores[index] = score[row]
        place[user[row]] = index + 1
    return items, scores


@compiled(boundscheck=False)
def order_lists(item: Any, score: Any, start: Any, first: int, last: int, longest: int) -> None:
    """Sort the lists of users first ... last - 1 in place, best first; items of equal scores come in any order.

    Of a list of some hundred items each is compared with the whole list, its place is the number of those that score
    higher: n² vector comparisons are several times faster than sorting.
    """
    filled, items, scores = np.empty(longest, np.int32), np.empty(longest, item.dtype), np.empty(longest, score.dtype)
    for user in range(first, last):
        begin, end = start[user], start[user + 1]
        if end - begin > COUNTED:
            order = np.argsort(-score[begin:end])
            item[begin:end], score[begin:end] = item[begin:end][order], score[begin:end][order]
            continue
        whole = begin + (end - begin) // LANES * LANES
        filled[: end - begin] = 0
        for index in range(begin, end):
            threshold = score[index]
            up = 0
            for i in range(begin, whole, LANES):
                up += count_above(score, i, threshold)
            for i in range(whole, end):
                up += score[i] > threshold
            place = up + filled[up]
            filled[up] += 1
            items[place] = item[index]
            scores[place] = threshold
        for i in range(end - begin):
            item[begin + i] = items[i]
            score[begin + i] = scores[i]


@compiled()
def repeated(item: Any, start: Any, n_items: int) -> int:
    """The place of an item that a user lists twice, -1 where there is none."""
    seen = np.zeros(n_items, np.int64)
    for user in range(len(start) - 1):
        for index in range(start[user], start[user + 1]):
            if seen[item[index]] == user + 1:
                return index
            seen[item[index]] = user + 1
    return -1


@compiled()
def count_ordered(score: Any, start: Any, first: int, last: int, above: Any, tied: Any) -> None:
    """For each place of each ordered list, how many listed items score above it and how many others equal it."""
    for user in range(first, last):
        index = start[user]
        while index < start[user + 1]:
            end = index
            while end < start[user + 1] and score[end] == score[index]:
                end += 1
            for i in range(index, end):
                above[i] = index - start[user]
                tied[i] = end - index - 1
            index = end


@compiled()
def look_up(
    row: Any, lists: Any, labelled_items: Any, excluded_items: Any, n_items: int, distinct: bool, ranks: Any
) -> None:
    """Ranks of labelled items in their users' lists, without the excluded ones; one that is not listed keeps its rank.

    `row` names the list of each user of a block; lists are (start, item, above, tied), labelled and excluded items of
    the users (start, item), ranks (above, tied, recommended). Excluded items take their own counts with them.
    """
    start, item, better, equal = lists
    (labelled_start, labelled), (gone_start, gone) = labelled_items, excluded_items
    above, tied, recommended = ranks
    # where an item stands; what an earlier user left there lies outside this user's list, so nothing is ever cleared
    place = np.full(n_items, -1, np.int32)
    for u in range(len(row)):
        first, last = start[row[u]], start[row[u] + 1]
        for index in range(first, last):
            place[Index(item[Index(index)])] = index
        excluded = 0
        for index in range(gone_start[u], gone_start[u + 1]):
            excluded += first <= place[gone[index]] < last
        recommended[u] = last - first - excluded
        if distinct and excluded == 0:
            # without branches: nobody can guess which items are listed
            for index in range(labelled_start[u], labelled_start[u + 1]):
                listed = place[Index(labelled[Index(index)])]
                above[Index(index)] = listed - first if (listed >= first) & (listed < last) else np.inf
            continue
        for index in range(labelled_start[u], labelled_start[u + 1]):
            listed = place[labelled[index]]
            if not first <= listed < last:
                continue
            # in lists without equal scores the place tells it all, and two columns need not be read
            up, same = (listed - first, 0) if distinct else (better[listed], equal[listed])
            if excluded > 0:
                # of two listed items the one with fewer better ones is the better one
                for k in range(gone_start[u], gone_start[u + 1]):
                    if first <= place[gone[k]] < last:
                        up -= better[place[gone[k]]] < better[listed]
                        same -= better[place[gone[k]]] == better[listed]
            above[index] = up
            tied[index] = same
