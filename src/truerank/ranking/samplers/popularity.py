"""Popular negatives more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.arrays import Floats, Ints
from truerank.core.values import Count, CountFrom0
from truerank.exposure.counts import zipf
from truerank.ranking.samplers.draw import ItemCounts, OwnPositives, Sampler, same_for_all


@dataclass(frozen=True, slots=True)
class PopularitySampler(Sampler):
    """v_i = (rank_i + shift)^-1/2, rank 1 for the item with most rows in the log; equal numbers share the best rank.

    The sampler paper says Zipf's law without an exponent; its code uses 1/2, adds 1 to the rank and lets positives be
    drawn.

    >>> import numpy as np
    >>> counts = ItemCounts(rows=np.array([9, 5, 5]), positives=np.array([0, 1, 2]))
    >>> PopularitySampler(1).weights(counts).round(4).tolist()
    [1.0, 0.7071, 0.7071]
    >>> PopularitySampler.released(1).weights(counts).round(4).tolist()
    [0.7071, 0.5774, 0.5774]
    """

    n: Count
    shift: CountFrom0 = 0
    positives: OwnPositives = OwnPositives.EXCLUDED

    name: ClassVar[str] = "Popularity"

    @classmethod
    def released(cls, n: int) -> PopularitySampler:
        return cls(n, shift=1, positives=OwnPositives.DRAWN)

    def wanted(self, exposed: Ints) -> Ints | None:
        return same_for_all(self.n, exposed)

    def weights(self, counts: ItemCounts) -> Floats:
        return zipf(counts.rows, shift=self.shift)
