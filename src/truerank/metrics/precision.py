"""Precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.arrays import Floats
from truerank.metrics.worth import check_cutoff, cutoff, text_form


@dataclass(frozen=True, slots=True)
class Precision:
    """The share of the K places that hold a relevant item: #{relevant, rank <= K} / K.

    Divides by K also where there are fewer candidates. A user without a relevant item has precision 0.

    >>> Precision(2).worth(np.array([1.0, 2.0, 3.0])).tolist()
    [0.5, 0.5, 0.0]
    """

    k: int
    name: ClassVar[str] = "Precision"
    on_full_labels: ClassVar[str] = "users"
    per_positive: ClassVar[bool] = False

    __str__ = text_form
    cutoff = property(cutoff)

    def __post_init__(self) -> None:
        check_cutoff(self)

    def worth(self, rank: Floats) -> Floats:
        return np.where(rank <= self.k, 1.0 / self.k, 0.0)
