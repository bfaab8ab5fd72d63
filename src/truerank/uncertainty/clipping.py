"""Choosing the clip: little bias or little variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from truerank.arrays import Floats
from truerank.errors import InputError

GRID = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 2048.0, 4096.0, math.inf)  # paper 3, figure 1


@dataclass(frozen=True, slots=True)
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


def slope(value: Floats, stderr: Floats, *, width: float = 1.0) -> int:
    """Which of several estimates to take, by the interval rule of SLOPE (Su, Srinath and Krishnamurthy 2020).

    Estimates are ordered from the least biased and most variable (the largest clip) to the most biased and least
    variable. The last one is taken whose interval value ± 2 · width · stderr meets those of all before it: further on,
    the difference to a less biased estimate can no longer be chance. Estimates without a standard error end the walk.

    >>> import numpy as np
    >>> slope(np.array([1.0, 0.9, 0.5, 0.2]), np.array([0.2, 0.1, 0.02, 0.01]))
    1
    >>> import numpy as np
    >>> slope(np.array([1.0, 0.2]), np.array([0.1, 0.01]))
    0
    """
    low, high = -math.inf, math.inf
    chosen, narrowest = 0, math.inf
    for at, (centre, error) in enumerate(zip(value, stderr, strict=True)):
        if math.isnan(centre) or math.isnan(error):
            break
        # less clipping has more variance; where chance says otherwise the smaller error is no better founded
        narrowest = min(narrowest, float(error))
        half = 2 * width * narrowest
        low, high = max(low, float(centre) - half), min(high, float(centre) + half)
        if low > high:
            break
        chosen = at
    return chosen
