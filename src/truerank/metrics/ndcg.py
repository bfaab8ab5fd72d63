"""Normalised discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.arrays import Floats, sums_by
from truerank.core import Log
from truerank.metrics.dcg import DCG
from truerank.metrics.gains import gains
from truerank.metrics.parameters import check, cutoff, text_form
from truerank.metrics.worth import Positives, expected_worth, with_positives
from truerank.options import Gain, Ideal


@dataclass(frozen=True, slots=True)
class NDCG:
    """DCG@K divided by the DCG@K of the ideal list: the user's own items in their best order.

    `Ideal.CUTOFF` divides by a list of K items as good as the user's best, also where the user has fewer. Undefined for
    a user without a relevant item. Over tie orders only the numerator varies, so its expected value is the expected
    DCG divided by the ideal.

    >>> str(NDCG(10)), str(NDCG(10, Gain.EXPONENTIAL, Ideal.CUTOFF))
    ('nDCG@10', 'nDCG@10(gain=exponential,ideal=cutoff)')
    """

    k: int
    gain: Gain = Gain.BINARY
    ideal: Ideal = Ideal.POSITIVES
    name: ClassVar[str] = "nDCG"
    on_full_labels: ClassVar[str] = "users with a relevant item"
    partial: ClassVar[str] = (
        "its normaliser needs the number of all relevant items of each user, and no unbiased form exists; use DCG"
    )

    __str__ = text_form
    cutoff = property(cutoff)

    def __post_init__(self) -> None:
        check(self)

    @property
    def graded(self) -> bool:
        return self.gain is not Gain.BINARY

    def gains(self, log: Log) -> Floats:
        return gains(log, self.gain)

    def values(self, positives: Positives) -> Floats:
        dcg = DCG(self.k)
        found = positives.sums(positives.gain * expected_worth(dcg, positives.ranks))
        best_first, place = positives.best_first()
        gain = positives.gain[best_first]
        if self.ideal is Ideal.CUTOFF:
            # the first of each unit stands for the whole list
            worth = np.where(place == 0, np.sum(dcg.worth(np.arange(1.0, self.k + 1))), 0.0)
        else:
            worth = dcg.worth(place + 1.0)
        ideal = sums_by(positives.unit[best_first], gain * worth, n=len(positives.count))
        return with_positives(positives, found / np.where(ideal > 0, ideal, 1.0))
