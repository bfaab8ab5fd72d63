"""Discounted cumulative gain, plain and normalised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.arrays import Floats
from truerank.metrics.worth import Positives, check_cutoff, cutoff, expected_worth, text_form, with_positives


@dataclass(frozen=True, slots=True)
class DCG:
    """The sum over relevant items in the top K of 1 / log2(rank + 1) (Järvelin and Kekäläinen 2002, gain 1).

    A user without a relevant item has DCG 0.

    >>> DCG(2).worth(np.array([1.0, 3.0])).tolist()
    [1.0, 0.0]
    """

    k: int
    name: ClassVar[str] = "DCG"
    on_full_labels: ClassVar[str] = "users"
    per_positive: ClassVar[bool] = False

    __str__ = text_form
    cutoff = property(cutoff)

    def __post_init__(self) -> None:
        check_cutoff(self)

    def worth(self, rank: Floats) -> Floats:
        return np.where(rank <= self.k, 1.0 / np.log2(rank + 1.0), 0.0)


@dataclass(frozen=True, slots=True)
class NDCG:
    """DCG@K divided by the DCG@K of the best possible order, which has min(K, relevant) items at the top.

    Undefined for a user without a relevant item. Over tie orders only the numerator varies, so its expected value
    is the expected DCG divided by the ideal.

    >>> str(NDCG(10))
    'nDCG@10'
    """

    k: int
    name: ClassVar[str] = "nDCG"
    on_full_labels: ClassVar[str] = "users with a relevant item"
    partial: ClassVar[str] = (
        "its normaliser needs the number of all relevant items of each user, and no unbiased form exists; use DCG"
    )

    __str__ = text_form
    cutoff = property(cutoff)

    def __post_init__(self) -> None:
        check_cutoff(self)

    def values(self, positives: Positives) -> Floats:
        dcg = DCG(self.k)
        most = int(min(positives.count.max(initial=0), self.k))
        ideal = np.concatenate([[1.0], np.cumsum(dcg.worth(np.arange(1.0, most + 1)))])
        best = ideal[np.minimum(positives.count, most).astype(np.int64)]
        return with_positives(positives, positives.sums(expected_worth(dcg, positives.ranks)) / best)
