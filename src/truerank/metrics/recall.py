"""Recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import BaseMetric
from truerank.core.options import Denominator
from truerank.core.values import Count


@dataclass(frozen=True, slots=True)
class Recall(BaseMetric):
    """The share of a user's relevant items that are ranked in the top K: #{relevant, rank <= K} / #relevant.

    Divides by all relevant items (equation 1 of the URE paper); `Denominator.SMALLER` divides by min(K, relevant),
    which partial labels cannot give. Undefined for a user without a relevant item.

    >>> Recall(2).worth(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 1.0, 0.0]
    """

    k: Count
    denominator: Literal[Denominator.POSITIVES, Denominator.SMALLER] = Denominator.POSITIVES
    name: ClassVar[str] = "Recall"
    on_full_labels: ClassVar[str] = "users with a relevant item"

    def worth(self, rank: Floats) -> Floats:
        return (rank <= self.k).astype(np.float64)
