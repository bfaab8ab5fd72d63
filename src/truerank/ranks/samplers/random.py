"""Uniformly random negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.ranks.samplers.draw import Among, ItemCounts, OwnPositives
from truerank.ranks.samplers.text import same_for_all, text_form

AS_EXPOSED: Literal["e"] = "e"


@dataclass(frozen=True, slots=True)
class RandomSampler:
    """n items of the pool that are no positives of the user, uniformly; `Random@e`: as many as the user's exposed ones.

    >>> [RandomSampler(n).wanted(np.array([1, 9])).tolist() for n in (3, "e")], str(RandomSampler("e"))
    ([[3, 3], [1, 9]], 'Random@e')
    """

    n: int | Literal["e"]

    name: ClassVar[str] = "Random"
    among: ClassVar[Among] = Among.POOL
    positives: ClassVar[OwnPositives] = OwnPositives.EXCLUDED

    def __post_init__(self) -> None:
        whole = isinstance(self.n, int | np.integer) and not isinstance(self.n, bool) and self.n >= 1
        if self.n != AS_EXPOSED and not whole:
            raise InputError(
                f"Random: n={self.n}; expected a whole number from 1, or e for as many as the user's exposed negatives."
            )

    def __str__(self) -> str:
        return text_form(self)

    def wanted(self, exposed: Ints) -> Ints | None:
        return exposed if self.n == "e" else same_for_all(int(self.n), exposed)

    def weights(self, counts: ItemCounts) -> Floats:
        return np.ones(len(counts.rows))
