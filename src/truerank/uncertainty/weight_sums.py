"""Sums of all weights for every clip, and the largest of them, in one pass over the viewed rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.log import Pairs
from truerank.estimators.ranked.snips import total_of
from truerank.estimators.ranked.weights import BLOCK, Weighing
from truerank.exposure.policies.policies import WholeList
from truerank.uncertainty.weights import WeightSums, tail_length


def weight_sums(weighing: Weighing, clips: Floats) -> WeightSums:
    """Σ w, Σ w² and the number of lowered weights for ascending clips; units without a known ranking do not count.

    A row's bin among the clips says for which of them it is clipped, so the work per row does not grow with clips.
    """
    sums = np.zeros((5, len(clips) + 1))
    n = 0
    largest = np.zeros(0)
    most = tail_length(len(weighing.log))
    bound = -math.inf
    for rows in _blocks(weighing):
        target, inverse = weighing.parts(rows)
        n += len(target)
        _add_bins(target, inverse, clips, sums)
        weight = target * inverse
        found = weight[weight > bound]
        if len(found):
            largest = np.concatenate([largest, found])
            if len(largest) > 4 * most + BLOCK // 8:
                largest = np.partition(largest, len(largest) - most)[-most:]
                bound = float(largest.min())
    kept = tail_length(n)
    largest = np.sort(largest)[::-1][:kept]
    return _collected(sums, clips, n, largest)


def _collected(sums: Floats, clips: Floats, n: int, largest: Floats) -> WeightSums:
    # a clip lowers the rows of all bins behind it; there w = m ε
    low, high = np.cumsum(sums, axis=1)[:, :-1], sums.sum(axis=1, keepdims=True)
    behind = high - low
    clip = np.where(np.isinf(clips), 0.0, clips)
    return WeightSums(
        n=n,
        clips=clips,
        total=low[3] + clip * behind[1],
        square=low[4] + clip**2 * behind[2],
        lowered=behind[0],
        unclipped=float(sums[3].sum()),
        largest=largest,
    )


def _blocks(weighing: Weighing) -> Iterator[Ints | slice]:
    known = weighing.target.known
    keep: Bools | None = weighing.log.viewed
    if known is not None and not known.all():
        of_row = known[weighing.log.unit]
        keep = of_row if keep is None else keep & of_row
    if keep is None:
        yield from (slice(start, start + BLOCK) for start in range(0, len(weighing.log), BLOCK))
        return
    rows = np.flatnonzero(keep)
    yield from (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))


def _add_bins(target: Floats, inverse: Floats, clips: Floats, sums: Floats) -> None:
    if find_spec("numba") is not None:
        from truerank.estimators.ranked.fast import weight_bins

        weight_bins(target, inverse, clips, sums)
        return
    at = np.searchsorted(clips, inverse)
    weight = target * inverse
    for row, values in enumerate(((target > 0).astype(np.float64), target, target**2, weight, weight**2)):
        sums[row] += np.bincount(at, values, minlength=sums.shape[1])


# ------------------------------------------------------------------------------------------------------------- support


def support(weighing: Weighing) -> tuple[float | None, float]:
    """The share of the target's exposure on what the log cannot show, and its standard error where it is estimated.

    Exact where the log lists its candidates or all that was displayed; what is displayed where nobody looks (ε0 = 0)
    is not shown. Else from viewed rows: E[Σ w] = Σ_a ε(x, a) over what is supported, so 1 - Σ w / Σ ε estimates it.
    None where the target's whole list is not known and nothing was displayed in vain.
    """
    whole, log = weighing.target.whole, weighing.log
    displayed = not weighing.views_known or log.viewed is not None
    vain = np.flatnonzero(weighing.logging.exposure() == 0) if displayed else np.zeros(0, dtype=np.int64)
    if whole is not None and log.candidates is not None:
        return _outside(weighing, whole, log.candidates, vain), 0.0
    if whole is not None and displayed and weighing.logging.rank is not None:
        # a deterministic list: what was not displayed cannot be
        return _outside(weighing, whole, Pairs.of(log.unit, log.item, n_units=log.n_units), vain), 0.0
    if whole is None and len(vain):  # of what was displayed
        exposed = float(weighing.target.exposure().sum())
        return float(weighing.target.exposure(vain).sum()) / exposed if exposed else 0.0, 0.0
    known = total_of(weighing)
    if known is None or not weighing.views_known:
        return None, 0.0
    rows = weighing.viewed_rows()
    kept = weighing.target.defined()
    seen = weighing.by_unit(weighing.weights(rows=rows), rows)[kept]
    total = known[kept]
    if not total.sum():
        return None, 0.0
    ratio = float(seen.sum() / total.sum())
    effect = np.bincount(weighing.log.cluster[kept], seen - ratio * total)
    n = int(np.count_nonzero(np.bincount(weighing.log.cluster[kept])))
    error = math.sqrt(float((effect**2).sum()) * n / max(n - 1, 1)) / float(total.sum())
    return 1.0 - ratio, error


def _outside(weighing: Weighing, whole: WholeList, shown: Pairs, vain: Ints) -> float:
    """The share of exposure on items that are not among those shown, or in vain; an item without an id is not."""
    log = weighing.log
    width = len(log.items) + 2
    inside = np.repeat(np.arange(len(shown.start) - 1), shown.count) * width + shown.item
    inside = np.setdiff1d(inside, log.unit[vain] * width + log.item[vain]) if len(vain) else inside
    found = np.isin(whole.unit * width + np.where(whole.item < 0, width - 1, whole.item), inside)
    total = float(whole.exposure.sum())
    return float(whole.exposure[~found].sum()) / total if total else 0.0
