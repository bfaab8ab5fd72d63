"""The user of rank-biased precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.exposure.positions.model import check_cutoff, check_parameter, cut, text_form


@dataclass(frozen=True, slots=True)
class Exponential:
    """γ^(r - 1): after each item the user goes on with probability γ (rank-biased precision, Moffat and Zobel 2008).

    >>> Exponential(0.5).view(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 0.5, 0.25]
    >>> str(Exponential(0.9, cutoff=50))
    'exp:0.9@50'
    """

    gamma: float
    cutoff: int | None = None
    name: ClassVar[str] = "exp"

    def __post_init__(self) -> None:
        check_parameter(self, "gamma", low=0.0, high=1.0)
        check_cutoff(self)

    def __str__(self) -> str:
        return text_form(self, self.gamma)

    def view(self, position: Floats) -> Floats:
        return cut(self.gamma ** (np.asarray(position, dtype=np.float64) - 1.0), position, cutoff=self.cutoff)
