"""A candidate sampler whose weights differ by user and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.ranking.samplers.draw import ItemCounts, Sampler


@dataclass(frozen=True, slots=True)
class TastefulSampler(Sampler):
    """v_ui = (u + i) mod 5, by the keys of user and item: of every fifth item each user draws none."""

    n: int

    name: ClassVar[str] = "Tasteful"

    def weights(self, counts: ItemCounts) -> Floats:
        if counts.users is None or counts.items is None:
            raise InputError(f"{self} needs to know who is asked for.")
        both = counts.users.keys()[:, None] % 5 + counts.items.keys()[None, :] % 5
        return (both % np.uint64(5)).astype(np.float64)
