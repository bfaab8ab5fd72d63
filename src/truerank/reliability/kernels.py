"""The compiled kernels of the study: draws of several sizes at once, and values of all models in all scenarios.

Draws select the smallest keys by partial selection instead of sorting. For each log of a user, every item gets the
number of the user's positives that a model puts above it, once per model. A candidate set is then a histogram of these
numbers: the j-th positive stands at rank j + (candidates in bins up to j). Larger samples of the same draw add to the
histogram; nothing is sorted again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.compiled import Index, compiled
from truerank.reliability.dataset import Mark
from truerank.reliability.scenarios import CandidateKind

FULL, EXPOSED, _, DRAWN_WITH_POSITIVES = map(int, CandidateKind)
OTHER, LIKED, EXCLUDED = map(int, Mark)
FEW = 16  # members up to which putting each in its place is fastest
SAMPLE = 7  # members that a pivot is chosen from


@compiled(boundscheck=False)
def _insert(key: Any, item: Any, left: Any, stop: Any) -> None:
    """Order a few members by (key, item)."""
    for i in range(left + Index(1), stop):
        k, m = key[i], item[i]
        j = Index(i)
        while j > left and (k < key[j - Index(1)] or (k == key[j - Index(1)] and m < item[j - Index(1)])):
            key[j], item[j] = key[j - Index(1)], item[j - Index(1)]
            j -= Index(1)
        key[j], item[j] = k, m


@compiled(boundscheck=False)
def put_first(key: Any, item: Any, size: int, n: int) -> None:
    """Put the n members with the smallest (key, item) of the first `size` in front, in any order (Hoare's FIND).

    The pivot is one of a few members in order, as far from their first as n is from the start, but never the first: so
    some are before it, and one, itself, is not. Members change places without a branch: nobody can guess which do.
    """
    if n <= 0 or n >= size:
        return
    left, stop, wanted = Index(0), Index(size), Index(n)
    while stop - left > Index(FEW):
        step = (stop - left) // Index(SAMPLE)
        for index in range(SAMPLE):
            a, b = left + Index(index), left + Index(index) * step
            key[a], key[b] = key[b], key[a]
            item[a], item[b] = item[b], item[a]
        _insert(key, item, left, left + Index(SAMPLE))
        middle = left + Index(1) + (wanted - left) * Index(SAMPLE - 1) // (stop - left)
        pivot, place = key[middle], item[middle]
        end = left  # of those before the pivot
        for i in range(left, stop):
            k, m = key[i], item[i]
            key[i], item[i] = key[end], item[end]
            key[end], item[end] = k, m
            end += Index((k < pivot) | ((k == pivot) & (m < place)))
        if end == wanted:
            return
        left, stop = (left, end) if end > wanted else (end, stop)
    _insert(key, item, left, stop)


@compiled(boundscheck=False)
def levels(clock: Any, left: Any, positive: Any, sizes: Any, level: Any) -> None:
    """At how many sparsities each cell is exposed, of sizes[user, sparsity] that fall; the first positive at all.

    Cells of the smallest clocks are exposed first; with one size and no positives the smallest are marked.
    """
    n_items, n_sparsities = clock.shape[1], sizes.shape[1]
    keys, items = np.empty(n_items, clock.dtype), np.empty(n_items, np.int32)
    for u in range(clock.shape[0]):
        size, first = 0, -1
        for i in range(n_items):
            level[u, i] = 0
            if left[u, i]:
                keys[size], items[size] = clock[u, i], i
                size += 1
                if positive[u, i] and (first < 0 or clock[u, i] < clock[u, first]):
                    first = i
        for s in range(n_sparsities):
            put_first(keys, items, size, sizes[u, s])
            size = min(size, sizes[u, s])
            for index in range(size):
                level[u, items[index]] = s + 1
        if first >= 0:
            level[u, first] = n_sparsities


@compiled(boundscheck=False)
def count_levels(level: Any, mark: Any, rows: Any, liked: Any) -> None:
    """Add, for each item, how many users see it at exactly each number of sparsities, and how many of them like it."""
    for u in range(level.shape[0]):
        for i in range(level.shape[1]):
            index = level[u, i]
            rows[index, i] += 1
            liked[index, i] += mark[u, i] == LIKED


@compiled(boundscheck=False)
def copy_is_first(time: float, number: int) -> Any:
    """Whether a positive that was drawn as a negative stands before itself: an even chance, from its clock's digits.

    The released code of the sampler paper leaves the two to numpy's unstable sort. `number` is of the log and model.
    """
    mixed = np.uint64(time * 2.0**40) + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(63)) == np.uint64(1)


@compiled(boundscheck=False)
def _walk(
    order: Any, finite: Any, liked: Any, pool: Any, time: Any, log: int, most: int, beyond: int, bin_of: Any,
    full: Any, ranked: Any,
) -> None:  # fmt: skip
    """Of each item, how many of the best `most` positives each model puts above it, `beyond` behind them all; the same
    as a histogram of the pool; and how many of these positives each model recommends. For a positive it is the number
    above its copy, where that was drawn as a negative: right before or right behind it.
    """
    n_models, n_items = order.shape
    bin_of[:] = beyond
    full[:] = 0
    for m in range(n_models):
        above = 0
        ranked[m] = 0
        for index in range(n_items):
            i = order[m, index]
            if liked[i]:
                above += 1
                bin_of[i, m] = above - copy_is_first(time[i], log * n_models + m)
                ranked[m] += index < finite[m]
                if above >= most:
                    break
            else:
                bin_of[i, m] = above
                full[m, above] += pool[i]


@compiled(boundscheck=False)
def _values(
    histogram: Any, ranked: Any, n_liked: int, table: Any, of: Any, divisor: Any, sums: Any, value: Any
) -> None:
    """The value of every metric and model, adding up from the best rank on."""
    deepest, n_tables = table.shape[0] - 1, table.shape[1]
    most = min(n_liked, deepest)
    for m in range(value.shape[1]):
        for t in range(n_tables):
            sums[t] = 0.0
        rank = 0
        for j in range(min(most, ranked[m])):
            rank += 1 + histogram[m, j]
            if rank > deepest:
                break
            for t in range(n_tables):
                sums[t] += table[rank, t]
        for q in range(value.shape[0]):
            value[q, m] = sums[of[q]] / divisor[q, n_liked]


@compiled(boundscheck=False)
def _signs(value: Any, short: Any, by_rounded: bool, sign: Any) -> tuple[int, int]:
    """The order of every pair of models; how many are equal, and how many are after rounding to 4 decimals.

    With `by_rounded` the order is that of the rounded values.
    """
    n_models = len(value)
    index, equal, rounded = 0, 0, 0
    for a in range(n_models):
        short[a] = np.rint(value[a] * 1e4)
    compared = short if by_rounded else value
    for a in range(n_models):
        for b in range(a + 1, n_models):
            sign[index] = (compared[a] > compared[b]) - (compared[a] < compared[b])
            equal += value[a] == value[b]
            rounded += short[a] == short[b]
            index += 1
    return equal, rounded


@compiled(boundscheck=False)
def _agreement(a: Any, b: Any) -> int:
    """Concordant minus discordant pairs."""
    result = 0
    for index in range(len(a)):
        result += a[index] * b[index]
    return result


@compiled(boundscheck=False)
def evaluate_users(
    group: Any, models: Any, cells: Any, pool: Any, weight: Any, families: Any, metrics: Any, bin_of: Any, results: Any
) -> None:
    """Fill out[user, sparsity, candidates, metric] with (equal pairs, equal when rounded, agreement with Q2, Q3, Q4's
    reference), -1 equal pairs for a user without positives; add the values of models as whole multiples of 1 / scale to
    those of the user's group.

    Models are (order, finite), cells (level, mark, time), families (kind, as_exposed, size_start, sizes, last ring
    time), metrics (table, table of each metric, divisor, scale, by_rounded), results (out, sums of models).
    Family f has the candidates size_start[f] ... size_start[f + 1] - 1; family 0 is Full, sparsity 0 comes first.
    weight[sparsity, family, user, item] has one user where all have the same weights. With `by_rounded` values are
    rounded to 4 decimals before their orders are compared.
    """
    (order, finite), (level, mark, time), (out, sums_of_models) = models, cells, results
    kind, as_exposed, size_start, sizes, last = families
    table, of, divisor, scale, by_rounded = metrics
    n_users, n_models, n_items = order.shape
    n_sparsities, n_families = weight.shape[0], weight.shape[1]
    n_candidates, n_metrics = out.shape[2], out.shape[3]
    n_pairs = n_models * (n_models - 1) // 2
    deepest = table.shape[0] - 1
    liked, exposed, able = np.zeros(n_items, np.uint8), np.zeros(n_items, np.uint8), np.zeros(n_items, np.uint8)
    full, histogram = np.zeros((n_models, deepest + 1), np.int32), np.zeros((n_models, deepest + 1), np.int32)
    ranked = np.zeros(n_models, np.int64)
    keys, items = np.empty(n_items), np.empty(n_items, np.int32)
    sums, value, short = np.empty(table.shape[1]), np.empty((n_metrics, n_models)), np.empty(n_models)
    sign = np.empty(n_pairs, np.int8)
    sign_full = np.empty((n_metrics, n_pairs), np.int8)
    sign_first = np.empty((n_candidates, n_metrics, n_pairs), np.int8)
    for u in range(n_users):
        for s in range(n_sparsities):
            n_liked, n_exposed = 0, 0
            for i in range(n_items):
                shown = level[u, i] > s
                liked[i] = shown and mark[u, i] == LIKED
                exposed[i] = shown and mark[u, i] == OTHER
                able[i] = pool[s, i] and mark[u, i] != EXCLUDED
                n_liked += liked[i]
                n_exposed += exposed[i]
            if n_liked == 0:
                out[u, s, :, :, 0] = -1
                out[u, s, :, :, 1:] = 0
                continue
            _walk(order[u], finite[u], liked, able, time[u], s, min(n_liked, deepest), deepest, bin_of, full, ranked)
            for f in range(n_families):
                first, stop = size_start[f], size_start[f + 1]
                size, available = 0, 0
                if kind[f] == FULL:
                    histogram[:] = full
                else:
                    histogram[:] = 0
                if kind[f] == EXPOSED:
                    for i in range(n_items):
                        if exposed[i]:
                            items[available] = i
                            available += 1
                elif kind[f] != FULL:
                    own = weight[s, f, u % weight.shape[2]]
                    for i in range(n_items):
                        v = own[i]
                        if v > 0 and able[i] and (kind[f] == DRAWN_WITH_POSITIVES or not liked[i]):
                            keys[available], items[available] = min(time[u, i] / v, last), i
                            available += 1
                    # from the largest sample to the smallest, each within the one before
                    width = available
                    for c in range(stop - 1, first - 1, -1):
                        n = n_exposed if as_exposed[f] else sizes[c]
                        put_first(keys, items, width, n)
                        width = min(width, n)
                for c in range(first, stop):
                    n = n_exposed if as_exposed[f] or kind[f] == EXPOSED else sizes[c]
                    if kind[f] != FULL:
                        for index in range(size, min(n, available)):
                            i = items[index]
                            for m in range(n_models):
                                histogram[m, bin_of[i, m]] += 1
                        size = min(n, available)
                    _values(histogram, ranked, n_liked, table, of, divisor, sums, value)
                    for q in range(n_metrics):
                        equal, rounded = _signs(value[q], short, by_rounded, sign)
                        if c == 0:
                            sign_full[q] = sign
                        if s == 0:
                            sign_first[c, q] = sign
                        out[u, s, c, q, 0] = equal
                        out[u, s, c, q, 1] = rounded
                        out[u, s, c, q, 2] = _agreement(sign, sign_full[q])
                        out[u, s, c, q, 3] = _agreement(sign, sign_first[c, q])
                        out[u, s, c, q, 4] = _agreement(sign, sign_first[0, q])
                        for m in range(n_models):
                            sums_of_models[group[u], s, c, q, m] += np.int64(np.rint(value[q, m] * scale))


@compiled(boundscheck=False)
def count_pairs(mean: Any, rounding: Any, out: Any) -> None:
    """Fill out[resample, sparsity, candidates] with (tied pairs, agreement with the same log's Full, with the same
    candidates at sparsity 0, with Full at sparsity 0) of mean[resample, sparsity, candidates, model].
    """
    n_resamples, n_sparsities, n_candidates, n_models = mean.shape
    n_pairs = n_models * (n_models - 1) // 2
    sign = np.empty((n_sparsities, n_candidates, n_pairs), np.int8)
    for r in range(n_resamples):
        limit = rounding[r]
        for s in range(n_sparsities):
            for c in range(n_candidates):
                index, ties = 0, 0
                for a in range(n_models):
                    for b in range(a + 1, n_models):
                        difference = mean[r, s, c, a] - mean[r, s, c, b]
                        sign[s, c, index] = (difference > limit) - (difference < -limit)
                        ties += sign[s, c, index] == 0
                        index += 1
                out[r, s, c, 0] = ties
                out[r, s, c, 1] = _agreement(sign[s, c], sign[s, 0])
                out[r, s, c, 2] = _agreement(sign[s, c], sign[0, c])
                out[r, s, c, 3] = _agreement(sign[s, c], sign[0, 0])
