"""Choosing the clip: little bias or little variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.core.terms import Smooth, Terms
from truerank.inference.intervals import common

GRID = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 2048.0, 4096.0, math.inf)  # paper 3, figure 1


@record
class AutoClip:
    """Choose the clip by the data, among the clips of a grid; the whole curve is reported with the choice."""

    grid: tuple[float, ...] = GRID

    def __post_init__(self) -> None:
        check_clips(self.grid)


def check_clips(clips: Sequence[float]) -> tuple[float, ...]:
    """Clips in ascending order, each once."""
    for clip in clips:
        if not clip > 0:
            raise InputError(f"clip {clip:g}; expected a positive number, or inf for none.")
    if not clips:
        raise InputError("no clip given; expected at least one, such as inf for none.")
    return tuple(sorted({float(clip) for clip in clips}))


def smallest_harmless(value: Floats, error: Floats) -> int:
    """Which of several clips to take, by the rule of SLOPE (Su, Srinath and Krishnamurthy 2020) on paired differences.

    Clips ascend. From the largest, the least biased, the walk goes down and ends where the value differs from that of
    any larger clip by more than the standard error of that difference, `error[j, k]`. Clips share their rows, so a
    difference has a far smaller error than either value: comparing separate intervals would see no bias at all. A
    smaller clip that changes nothing is not taken. The largest clip is taken where there are no standard errors.

    >>> error = np.array([[0.0, 0.1, 0.2], [0.1, 0.0, 0.1], [0.2, 0.1, 0.0]])
    >>> smallest_harmless(np.array([0.7, 0.95, 1.0]), error), smallest_harmless(np.array([0.7, 0.8, 1.0]), error)
    (1, 2)
    """
    chosen = len(value) - 1
    for clip in range(len(value) - 2, -1, -1):
        difference = np.abs(value[clip] - value)
        if not (difference[clip + 1 :] <= error[clip, clip + 1 :]).all():  # NaN ends the walk as well
            break
        if difference[chosen] > 0 or error[clip, chosen] > 0:
            chosen = clip
    return chosen


def paired_errors(influence: Floats, n: int) -> Floats:
    """Standard errors of the differences between values, from influences [values x clusters] of n clusters.

    >>> paired_errors(np.array([[0.5, -0.5], [0.25, -0.25]]), 2).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    if n < 2:
        return np.full((len(influence), len(influence)), math.nan)
    squares = [((effect - influence) ** 2).sum(axis=1) for effect in influence]
    return np.asarray(np.sqrt(np.array(squares) * n / (n - 1)), dtype=np.float64)


def chosen_clip(terms: Sequence[Smooth], others: Sequence[Smooth] | None = None) -> tuple[int, int]:
    """Which of several clips to take for a value, or for the difference to `others`, and the smallest that equals it.

    Terms ascend by clip. By the rule of `smallest_harmless` on influences. The bias of ips with rewards from 0 only
    grows as the clip falls, which the rule needs. For differences, negative rewards and doubly-robust only a bound of
    it does; there the rule rests on measurement. A ratio of clipped sums can move away and come back, so that standing
    still between two clips says nothing about its bias: no clip is chosen for it (`Clipping.GIVEN`).
    """
    pairs: list[tuple[Terms, ...]] = [*zip(terms)] if others is None else [*map(common, terms, others)]
    value = np.array([reduce(np.subtract, [part.value() for part in pair]) for pair in pairs])
    influence = np.array([reduce(np.subtract, [part.influence() for part in pair]) for pair in pairs])
    error = paired_errors(influence, pairs[-1][0].n_independent())
    chosen = equal = smallest_harmless(value, error)
    while equal > 0 and value[equal - 1] == value[equal] and error[equal - 1, equal] == 0:
        equal -= 1  # no weight lies between the two
    return chosen, equal
