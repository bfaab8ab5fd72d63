"""Compiled loops for long tables of scores: bucket rows by user, order each user's list, look judged items up in it."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from truerank.ranks.kernel.fast import LANES, count_above

SHORT = 24  # up to this length insertion beats splitting


@nb.njit(cache=True, nogil=True)
def bucket(user: Any, item: Any, score: Any, start: Any) -> tuple[Any, Any]:
    """Items and scores with the rows of each user side by side; start[u] is where user u begins."""
    place = start[:-1].copy()
    items, scores = np.empty(len(user), item.dtype), np.empty(len(user), score.dtype)
    for row in range(len(user)):
        at = place[user[row]]
        items[at] = item[row]
        scores[at] = score[row]
        place[user[row]] = at + 1
    return items, scores


@nb.njit(cache=True, nogil=True, inline="always")
def _before(score: Any, item: Any, other_score: Any, other_item: Any) -> Any:
    """Higher scores come first; of equal ones the lower item, so that the order of rows in a file is forgotten."""
    return score > other_score or (score == other_score and item < other_item)


@nb.njit(cache=True, nogil=True)
def _insert(item: Any, score: Any, low: int, high: int) -> None:
    for i in range(low + 1, high):
        s, t = score[i], item[i]
        j = i - 1
        while j >= low and _before(s, t, score[j], item[j]):
            score[j + 1] = score[j]
            item[j + 1] = item[j]
            j -= 1
        score[j + 1] = s
        item[j + 1] = t


@nb.njit(cache=True, nogil=True)
def order_lists(item: Any, score: Any, start: Any, first: int, last: int) -> None:
    """Sort the lists of users first ... last - 1 in place, best first (quicksort on both columns, middle of three)."""
    stack = np.empty((128, 2), np.int64)
    for user in range(first, last):
        stack[0, 0], stack[0, 1] = start[user], start[user + 1]
        depth = 1
        while depth > 0:
            depth -= 1
            low, high = stack[depth, 0], stack[depth, 1]
            while high - low > SHORT:
                a, b, c = low, (low + high) // 2, high - 1
                if _before(score[b], item[b], score[a], item[a]):
                    a, b = b, a
                if _before(score[c], item[c], score[b], item[b]):
                    b = a if _before(score[c], item[c], score[a], item[a]) else c
                ps, pi = score[b], item[b]
                i, j = low, high - 1
                while i <= j:
                    while _before(score[i], item[i], ps, pi):
                        i += 1
                    while _before(ps, pi, score[j], item[j]):
                        j -= 1
                    if i <= j:
                        score[i], score[j] = score[j], score[i]
                        item[i], item[j] = item[j], item[i]
                        i += 1
                        j -= 1
                # the longer part waits, so that the stack stays short
                if j + 1 - low > high - i:
                    stack[depth, 0], stack[depth, 1] = low, j + 1
                    low = i
                else:
                    stack[depth, 0], stack[depth, 1] = i, high
                    high = j + 1
                depth += 1
            _insert(item, score, low, high)


@nb.njit(cache=True, nogil=True, boundscheck=False)
def count_lists(item: Any, score: Any, start: Any, first: int, last: int, longest: int) -> None:
    """Sort lists as `order_lists` does, up to the order of equal scores, by comparing each item with its whole list.

    An item's place is the number of those that score higher. For lists of some hundred items n² vector comparisons are
    several times faster than sorting.
    """
    filled, items, scores = np.empty(longest, np.int32), np.empty(longest, item.dtype), np.empty(longest, score.dtype)
    for user in range(first, last):
        begin, end = start[user], start[user + 1]
        whole = begin + (end - begin) // LANES * LANES
        filled[: end - begin] = 0
        for at in range(begin, end):
            threshold = score[at]
            up = 0
            for i in range(begin, whole, LANES):
                up += count_above(score, i, threshold)
            for i in range(whole, end):
                up += score[i] > threshold
            place = up + filled[up]
            filled[up] += 1
            items[place] = item[at]
            scores[place] = threshold
        for i in range(end - begin):
            item[begin + i] = items[i]
            score[begin + i] = scores[i]


@nb.njit(cache=True, nogil=True)
def repeated(item: Any, start: Any, n_items: int) -> int:
    """The place of an item that a user lists twice, -1 where there is none."""
    seen = np.zeros(n_items, np.int64)
    for user in range(len(start) - 1):
        for at in range(start[user], start[user + 1]):
            if seen[item[at]] == user + 1:
                return at
            seen[item[at]] = user + 1
    return -1


@nb.njit(cache=True, nogil=True)
def count_ordered(score: Any, start: Any, first: int, last: int, above: Any, tied: Any) -> None:
    """For each place of each ordered list, how many listed items score above it and how many others equal it."""
    for user in range(first, last):
        at = start[user]
        while at < start[user + 1]:
            end = at
            while end < start[user + 1] and score[end] == score[at]:
                end += 1
            for i in range(at, end):
                above[i] = at - start[user]
                tied[i] = end - at - 1
            at = end


@nb.njit(cache=True, nogil=True)
def look_up(
    row: Any, start: Any, item: Any, better: Any, equal: Any, asked_start: Any, asked: Any,
    gone_start: Any, gone: Any, n_items: int, distinct: bool, above: Any, tied: Any, recommended: Any,
) -> None:  # fmt: skip
    """Ranks of asked items in their users' lists, without the excluded ones; an item that is not listed keeps its rank.

    `row` names the list of each user of a block. Excluded items take their own counts with them.
    """
    # where an item stands; what an earlier user left there lies outside this user's list, so nothing is ever cleared
    place = np.full(n_items, -1, np.int32)
    for u in range(len(row)):
        first, last = start[row[u]], start[row[u] + 1]
        for at in range(first, last):
            place[item[at]] = at
        excluded = 0
        for at in range(gone_start[u], gone_start[u + 1]):
            excluded += first <= place[gone[at]] < last
        recommended[u] = last - first - excluded
        if distinct and excluded == 0:
            # without branches: nobody can guess which items are listed
            for at in range(asked_start[u], asked_start[u + 1]):
                listed = place[asked[at]]
                above[at] = listed - first if (listed >= first) & (listed < last) else np.inf
            continue
        for at in range(asked_start[u], asked_start[u + 1]):
            listed = place[asked[at]]
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
            above[at] = up
            tied[at] = same
