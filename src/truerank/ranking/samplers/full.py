"""All negatives there are: no sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.ranking.samplers.draw import Among, ItemCounts, Sampler


@dataclass(frozen=True, slots=True)
class FullSampler(Sampler):
    """Every item of the pool that is no positive of the user.

    >>> str(FullSampler())
    'Full'
    """

    name: ClassVar[str] = "Full"

    def wanted(self, exposed: Ints) -> Ints | None:
        return None

    def weights(self, counts: ItemCounts) -> Floats:
        return np.ones(len(counts.rows))


@dataclass(frozen=True, slots=True)
class ExposedSampler(Sampler):
    """The user's own rows that are not positive.

    >>> str(ExposedSampler())
    'Exposed'
    """

    name: ClassVar[str] = "Exposed"
    among: ClassVar[Among] = Among.EXPOSED

    def wanted(self, exposed: Ints) -> Ints | None:
        return exposed

    def weights(self, counts: ItemCounts) -> Floats:
        return np.ones(len(counts.rows))
