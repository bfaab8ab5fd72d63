"""Discounted cumulative gain."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.options import Denominator, Discount, Gain
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.discounts import GradedMetric


@record
class DCG(GradedMetric):
    """The sum over relevant items in the top K of gain / log2(rank + 1).

    `Discount.ORIGINAL` divides by max(1, log2(rank)), as Järvelin and Kekäläinen (2002) first wrote it.
    The gain is the label by default; `Gain.LINEAR` takes the grade, `Gain.EXPONENTIAL` 2^grade - 1 (Burges et al.
    2005). A user without a relevant item has DCG 0.

    >>> DCG(2).rank_discount(np.array([1.0, 3.0])).tolist()
    [1.0, 0.0]
    >>> str(DCG(10, Gain.LINEAR))
    'DCG@10(gain=linear)'
    """

    k: Count
    gain: Gain = Gain.BINARY
    discount: Discount = Discount.SMOOTH
    name: ClassVar[str] = "DCG"
    denominator: ClassVar[Denominator] = Denominator.NOTHING

    def rank_discount(self, rank: Floats) -> Floats:
        below = np.log2(rank + 1.0) if self.discount is Discount.SMOOTH else np.maximum(1.0, np.log2(rank))
        return np.where(rank <= self.k, 1.0 / below, 0.0)
