"""Negatives by their number of rows: rare ones more often, or popular ones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.values import Count
from truerank.ranking.samplers.draw import ItemCounts, OwnPositives, Sampler, same_for_all


class Favoured(StrEnum):
    """Which items are drawn more often."""

    RARE = "rare"
    POPULAR = "popular"


@dataclass(frozen=True, slots=True)
class SkewSampler(Sampler):
    """v_i = 1 / rows of the item in the log (Liang et al. 2016), an item without rows as if it had one.

    The sampler paper does not state the direction; its code favours popular items, v_i = rows, and lets positives be
    drawn. Only negatives are drawn this way, all positives stay: this does not debias the positives, unlike the
    intervened test sets of the same name.

    >>> counts = ItemCounts(rows=np.array([4, 5, 0]), positives=np.array([0, 1, 0]))
    >>> SkewSampler(1).weights(counts).tolist(), SkewSampler.released(1).weights(counts).tolist()
    ([0.25, 0.2, 1.0], [4.0, 5.0, 0.0])
    """

    n: Count
    favours: Favoured = Favoured.RARE
    positives: OwnPositives = OwnPositives.EXCLUDED

    name: ClassVar[str] = "Skew"

    @classmethod
    def released(cls, n: int) -> SkewSampler:
        return cls(n, favours=Favoured.POPULAR, positives=OwnPositives.DRAWN)

    def wanted(self, exposed: Ints) -> Ints | None:
        return same_for_all(self.n, exposed)

    def weights(self, counts: ItemCounts) -> Floats:
        if self.favours is Favoured.POPULAR:
            return counts.rows.astype(np.float64)
        return 1 / np.maximum(counts.rows, 1).astype(np.float64)
