"""Recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.arrays import Floats
from truerank.metrics.worth import check_cutoff, cutoff, text_form


@dataclass(frozen=True, slots=True)
class Recall:
    """The share of a user's relevant items that are ranked in the top K: #{relevant, rank <= K} / #relevant.

    Divides by all relevant items, never by min(K, relevant). Undefined for a user without a relevant item. Equation
    1 of the URE paper.

    >>> Recall(2).worth(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 1.0, 0.0]
    """

    k: int
    name: ClassVar[str] = "Recall"
    on_full_labels: ClassVar[str] = "users with a relevant item"
    per_positive: ClassVar[bool] = True

    __str__ = text_form
    cutoff = property(cutoff)

    def __post_init__(self) -> None:
        check_cutoff(self)

    def worth(self, rank: Floats) -> Floats:
        return (rank <= self.k).astype(np.float64)
