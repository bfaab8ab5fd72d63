"""Liked negatives more often."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.exposure.counts import zipf
from truerank.ranks.samplers.draw import Among, ItemCounts, OwnPositives
from truerank.ranks.samplers.text import check, same_for_all, text_form


class Law(StrEnum):
    """How weights follow the number of positives: by rank (Zipf's law), or proportionally."""

    ZIPF = "zipf"
    LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class PositivitySampler:
    """v_i = rank_i^-1/2 by the number of positives in the log, as the text of the sampler paper says.

    Its code weighs proportionally to the number of positives, so that an item without any is never drawn, and lets a
    user's own positives be drawn.

    >>> counts = ItemCounts(rows=np.array([9, 5, 5]), positives=np.array([0, 1, 2]))
    >>> PositivitySampler(1).weights(counts).round(4).tolist(), PositivitySampler.released(1).weights(counts).tolist()
    ([0.5774, 0.7071, 1.0], [0.0, 1.0, 2.0])
    """

    n: int
    law: Law = Law.ZIPF
    positives: OwnPositives = OwnPositives.EXCLUDED

    name: ClassVar[str] = "Positivity"
    among: ClassVar[Among] = Among.POOL

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def published(cls, n: int) -> PositivitySampler:
        return cls(n)

    @classmethod
    def released(cls, n: int) -> PositivitySampler:
        return cls(n, law=Law.LINEAR, positives=OwnPositives.DRAWN)

    def __str__(self) -> str:
        return text_form(self)

    def wanted(self, exposed: Ints) -> Ints | None:
        return same_for_all(self.n, exposed)

    def weights(self, counts: ItemCounts) -> Floats:
        return zipf(counts.positives) if self.law is Law.ZIPF else counts.positives.astype(np.float64)
