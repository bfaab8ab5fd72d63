"""The user of rank-biased precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.values import Between0And1, Count, check, text_of
from truerank.exposure.positions.places import cut


@dataclass(frozen=True, slots=True)
class Exponential:
    """γ^(r - 1): after each item the user goes on with probability γ (rank-biased precision, Moffat and Zobel 2008).

    >>> Exponential(0.5).view(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 0.5, 0.25]
    >>> str(Exponential(0.9, cutoff=50))
    'exp:0.9@50'
    """

    gamma: Between0And1
    cutoff: Count | None = None
    name: ClassVar[str] = "exp"
    positional: ClassVar[tuple[str, ...]] = ("gamma",)

    def __post_init__(self) -> None:
        check(self, where=f"position model {self.name}")

    __str__ = text_of

    def view(self, position: Floats) -> Floats:
        return cut(self.gamma ** (np.asarray(position, dtype=np.float64) - 1.0), position, cutoff=self.cutoff)
