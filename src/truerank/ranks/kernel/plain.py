"""The plain rank kernel: exact counts by sorting. It is the oracle that any faster kernel must equal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats


def count_above_and_tied(
    candidates: npt.NDArray[np.floating], asked: npt.NDArray[np.floating]
) -> tuple[Floats, Floats]:
    """How many candidates score above each asked score, and how many others equal it.

    The asked items are among the candidates, their scores the very same numbers. -inf is never recommended:
    nothing is tied with it and its rank is infinite.

    >>> above, tied = count_above_and_tied(np.array([3.0, 1, 3, 2]), np.array([3.0, 1.0]))
    >>> above.tolist(), tied.tolist()
    ([0.0, 3.0], [1.0, 0.0])
    """
    ordered = np.sort(candidates)
    right = np.searchsorted(ordered, asked, side="right")
    left = np.searchsorted(ordered, asked, side="left")
    never = np.isneginf(asked)
    above = np.where(never, np.inf, (len(ordered) - right).astype(np.float64))
    tied = np.where(never, 0.0, (right - left - 1).astype(np.float64))
    return above, tied
