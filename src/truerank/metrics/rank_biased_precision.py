"""Rank-biased precision."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import BaseMetric
from truerank.core.options import Denominator
from truerank.core.record import record
from truerank.core.values import Between0And1


@record
class RBP(BaseMetric):
    """The sum over relevant items of (1 - p) p^(rank - 1) (Moffat and Zobel 2008).

    The share of relevant items among those that a reader sees who goes on to the next one with probability p, the
    persistence. A user without a relevant item has RBP 0.

    >>> RBP(0.5).rank_discount(np.array([1.0, 2.0, 3.0])).tolist()
    [0.5, 0.25, 0.125]
    """

    p: Between0And1
    name: ClassVar[str] = "RBP"
    denominator: ClassVar[Denominator] = Denominator.NOTHING

    def rank_discount(self, rank: Floats) -> Floats:
        return np.asarray((1.0 - self.p) * self.p ** (rank - 1.0))
