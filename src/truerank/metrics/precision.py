"""Precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import BaseMetric
from truerank.core.options import Denominator
from truerank.core.values import Count


@dataclass(frozen=True, slots=True)
class Precision(BaseMetric):
    """The share of the K places that hold a relevant item: #{relevant, rank <= K} / K.

    Divides by K also where fewer are recommended; `Denominator.LIST` divides by the length of the list instead, and is
    undefined for an empty one. A user without a relevant item has precision 0.

    >>> Precision(2).worth(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 1.0, 0.0]
    """

    k: Count
    denominator: Literal[Denominator.CUTOFF, Denominator.LIST] = Denominator.CUTOFF
    name: ClassVar[str] = "Precision"
    aliases: ClassVar[tuple[str, ...]] = ("P",)

    @property
    def on_full_labels(self) -> str:
        return "users" if self.denominator is Denominator.CUTOFF else "users with a recommended item"

    def worth(self, rank: Floats) -> Floats:
        return (rank <= self.k).astype(np.float64)
