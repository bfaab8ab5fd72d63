"""Ties are settled here, and only here, by one stated policy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Keys
from truerank.core.log import Log
from truerank.core.ranking import Ties


def count_above_and_tied(
    candidates: npt.NDArray[np.floating], scores: npt.NDArray[np.floating]
) -> tuple[Floats, Floats]:
    """How many candidates score above each of these scores, and how many others equal it.

    The scores are among those of the candidates, the very same numbers. -inf is never recommended:
    nothing is tied with it and its rank is infinite.

    >>> above, tied = count_above_and_tied(np.array([3.0, 1, 3, 2]), np.array([3.0, 1.0]))
    >>> above.tolist(), tied.tolist()
    ([0.0, 3.0], [1.0, 0.0])
    """
    ordered = np.sort(candidates)
    right = np.searchsorted(ordered, scores, side="right")
    left = np.searchsorted(ordered, scores, side="left")
    never = np.isneginf(scores)
    above = np.where(never, np.inf, (len(ordered) - right).astype(np.float64))
    tied = np.where(never, 0.0, (right - left - 1).astype(np.float64))
    return above, tied


def places_by_key(scores: Floats, keys: Keys, positions: Ints) -> Floats:
    """How many candidates with the same score have a smaller key, for each of these positions.

    >>> places_by_key(np.array([1.0, 1, 2, 1]), np.array([9, 4, 1, 6], dtype=np.uint64), np.array([0, 2])).tolist()
    [2.0, 0.0]
    """
    order = np.lexsort((keys, scores))
    place = np.empty(len(order))
    place[order] = np.arange(len(order)) - np.searchsorted(scores[order], scores[order], side="left")
    return place[positions]


def relevance(log: Log) -> Floats:
    """What puts tied rows in their best order: the label, then the grade where there is one."""
    keys = [log.rewards[name] for name in sorted(log.rewards, key=lambda name: name != "label")]
    if len(keys) <= 1:
        return keys[0] if keys else log.label
    return np.unique(np.column_stack(keys), axis=0, return_inverse=True)[1].astype(np.float64)


def settle(ties: Ties, *, above: Floats, tied: Floats, unit: Ints, label: Floats) -> tuple[Floats, Floats]:
    """Above and tied counts after the policy; RANDOM has been settled where the scores were at hand.

    >>> one = np.ones(2)
    >>> settle(Ties.STRICT, above=one, tied=2 * one, unit=np.array([0, 0]), label=one)[0].tolist()
    [3.0, 3.0]
    >>> settle(Ties.OPTIMISTIC, above=one, tied=2 * one, unit=np.array([0, 0]), label=np.array([0.0, 1.0]))[0].tolist()
    [2.0, 1.0]
    """
    if ties in (Ties.EXPECTED, Ties.RANDOM):
        return above, tied
    if ties is Ties.STRICT:
        return above + tied, np.zeros_like(tied)
    best_first = label if ties is Ties.PESSIMISTIC else -label
    order = np.lexsort((best_first, above, unit))
    changed = np.ones(len(order), dtype=bool)
    changed[1:] = (above[order][1:] != above[order][:-1]) | (np.diff(unit[order]) != 0)
    first = np.flatnonzero(changed)
    size = np.diff(np.append(first, len(order)))
    place = np.empty(len(order))
    place[order] = np.arange(len(order)) - np.repeat(first, size)
    if ties is Ties.PESSIMISTIC:
        # tied candidates without a row are known negatives: they come first
        listed = np.empty(len(order))
        listed[order] = np.repeat(size, size)
        place += np.where(np.isfinite(above), tied + 1 - listed, 0)
    return np.where(np.isfinite(above), above + place, above), np.zeros_like(tied)
