"""What a position model is, and the cut-off that all of them have."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from truerank.core.arrays import Floats


@runtime_checkable
class PositionModel(Protocol):
    """A frozen value: the probability P(V = 1 | R = r) that what stands at rank r is viewed (paper 3, assumption 2).

    It is 1 at rank 1, never rises, and is 0 beyond a cut-off; its text form parses back. Ranks are whole numbers.
    """

    name: ClassVar[str]

    def view(self, position: Floats) -> Floats: ...


def cut(probability: Floats, position: Floats, *, cutoff: int | None) -> Floats:
    """The same probabilities, 0 beyond the cut-off: no separate DCG@n is needed (paper 3, after eq. 6)."""
    if cutoff is None:
        return np.asarray(probability, dtype=np.float64)
    return np.asarray(np.where(position <= cutoff, probability, 0.0), dtype=np.float64)
