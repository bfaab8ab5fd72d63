"""The discount of classical DCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.values import Count, check, text_of
from truerank.exposure.positions.places import cut


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """1 / log2(r + 1), the discount of classical DCG: a convention, fitted to nobody.

    >>> Logarithmic().view(np.array([1.0, 3.0])).tolist()
    [1.0, 0.5]
    >>> str(Logarithmic(cutoff=10))
    'log@10'
    """

    cutoff: Count | None = None
    name: ClassVar[str] = "log"

    def __post_init__(self) -> None:
        check(self, where=f"position model {self.name}")

    __str__ = text_of

    def view(self, position: Floats) -> Floats:
        return cut(1.0 / np.log2(position + 1.0), position, cutoff=self.cutoff)
