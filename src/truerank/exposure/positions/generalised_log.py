"""A logarithmic discount with a strength."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.values import Count, Positive, check, text_of
from truerank.exposure.positions.places import cut


@dataclass(frozen=True, slots=True)
class GeneralisedLog:
    """1 / ln(e + α (r - 1)): 1 at rank 1, then the steeper the larger α (C-3PO, figure 1; α = 100 there).

    It falls so slowly that a scroll depth with this survival has no finite mean: real feeds end, so its depths are
    always censored.

    >>> GeneralisedLog(100.0).view(np.array([1.0, 2.0])).round(6).tolist()
    [1.0, 0.21589]
    >>> str(GeneralisedLog(100.0, cutoff=20))
    'log:100@20'
    """

    alpha: Positive
    cutoff: Count | None = None
    name: ClassVar[str] = "generalised-log"
    aliases: ClassVar[tuple[str, ...]] = ("log:",)
    positional: ClassVar[tuple[str, ...]] = ("alpha",)

    def __post_init__(self) -> None:
        check(self, where=f"position model {self.name}")

    __str__ = text_of

    def view(self, position: Floats) -> Floats:
        return cut(1.0 / np.log(math.e + self.alpha * (position - 1.0)), position, cutoff=self.cutoff)
