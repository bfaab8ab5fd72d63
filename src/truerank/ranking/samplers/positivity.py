"""Liked negatives more often."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.values import Count
from truerank.exposure.counts import zipf
from truerank.ranking.samplers.draw import ItemCounts, OwnPositives, Sampler, same_for_all


class Law(StrEnum):
    """How weights follow the number of positives: by rank (Zipf's law), or proportionally."""

    ZIPF = "zipf"
    LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class PositivitySampler(Sampler):
    """v_i = rank_i^-1/2 by the number of positives in the log, as the text of the sampler paper says.

    Its code weighs proportionally to the number of positives, so that an item without any is never drawn, and lets a
    user's own positives be drawn.

    >>> counts = ItemCounts(rows=np.array([9, 5, 5]), positives=np.array([0, 1, 2]))
    >>> PositivitySampler(1).weights(counts).round(4).tolist(), PositivitySampler.released(1).weights(counts).tolist()
    ([0.5774, 0.7071, 1.0], [0.0, 1.0, 2.0])
    """

    n: Count
    law: Law = Law.ZIPF
    positives: OwnPositives = OwnPositives.EXCLUDED

    name: ClassVar[str] = "Positivity"

    @classmethod
    def released(cls, n: int) -> PositivitySampler:
        return cls(n, law=Law.LINEAR, positives=OwnPositives.DRAWN)

    def wanted(self, exposed: Ints) -> Ints | None:
        return same_for_all(self.n, exposed)

    def weights(self, counts: ItemCounts) -> Floats:
        return zipf(counts.positives) if self.law is Law.ZIPF else counts.positives.astype(np.float64)
