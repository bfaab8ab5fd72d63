"""Uniformly random negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.values import Count
from truerank.ranking.samplers.draw import ItemCounts, Sampler, same_for_all

AS_EXPOSED: Literal["e"] = "e"


@dataclass(frozen=True, slots=True)
class RandomSampler(Sampler):
    """n items of the pool that are no positives of the user, uniformly; `Random@e`: as many as the user's exposed ones.

    >>> [RandomSampler(n).wanted(np.array([1, 9])).tolist() for n in (3, "e")], str(RandomSampler("e"))
    ([[3, 3], [1, 9]], 'Random@e')
    """

    n: Count | Literal["e"]

    name: ClassVar[str] = "Random"

    def wanted(self, exposed: Ints) -> Ints | None:
        return exposed if self.n == "e" else same_for_all(int(self.n), exposed)

    def weights(self, counts: ItemCounts) -> Floats:
        return np.ones(len(counts.rows))
