"""All negatives there are: no sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.values import text_of
from truerank.ranking.samplers.draw import Among, ItemCounts, OwnPositives


@dataclass(frozen=True, slots=True)
class FullSampler:
    """Every item of the pool that is no positive of the user.

    >>> str(FullSampler())
    'Full'
    """

    name: ClassVar[str] = "Full"
    among: ClassVar[Among] = Among.POOL
    positives: ClassVar[OwnPositives] = OwnPositives.EXCLUDED

    __str__ = text_of

    def wanted(self, exposed: Ints) -> Ints | None:
        return None

    def weights(self, counts: ItemCounts) -> Floats:
        return np.ones(len(counts.rows))


@dataclass(frozen=True, slots=True)
class ExposedSampler:
    """The user's own rows that are not positive.

    >>> str(ExposedSampler())
    'Exposed'
    """

    name: ClassVar[str] = "Exposed"
    among: ClassVar[Among] = Among.EXPOSED
    positives: ClassVar[OwnPositives] = OwnPositives.EXCLUDED

    __str__ = text_of

    def wanted(self, exposed: Ints) -> Ints | None:
        return exposed

    def weights(self, counts: ItemCounts) -> Floats:
        return np.ones(len(counts.rows))
