"""Average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.arrays import Floats, sums_by
from truerank.metrics.worth import Positives, check_cutoff, cutoff, text_form, with_positives


@dataclass(frozen=True, slots=True)
class AveragePrecision:
    """(1 / min(K, relevant)) Σ over relevant items with rank r <= K of #{relevant with rank <= r} / r.

    Undefined for a user without a relevant item. Over tie orders (McSherry and Najork 2008): a relevant item at
    place j of a group of t candidates, p of them relevant, after a better ones with b relevant, has on average
    b + 1 + (j - 1)(p - 1) / (t - 1) relevant items up to it, and place j is relevant with probability p / t; the sum
    over j needs only harmonic numbers.

    >>> str(AveragePrecision(10))
    'AP@10'
    """

    k: int
    name: ClassVar[str] = "AP"
    on_full_labels: ClassVar[str] = "users with a relevant item"
    partial: ClassVar[str] = "it divides by min(K, relevant), which no unbiased form exists for; use DCG or Precision"

    __str__ = text_form
    cutoff = property(cutoff)

    def __post_init__(self) -> None:
        check_cutoff(self)

    def values(self, positives: Positives) -> Floats:
        g = positives.groups()
        last = np.minimum(g.above + g.size, self.k).astype(np.int64)
        first = np.minimum(g.above, self.k).astype(np.int64)
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1.0, last.max(initial=0) + 1))])
        reciprocal, inside = harmonic[last] - harmonic[first], (last - first).astype(np.float64)
        others = np.divide(g.positives - 1, g.size - 1, out=np.zeros(len(g.size)), where=g.size > 1)
        shared = (g.before + 1) * reciprocal + others * (inside - (g.above + 1) * reciprocal)
        # without ties every relevant item of the group stands at the one rank above + 1
        single = np.where(inside > 0, g.positives * (g.before + g.positives) / (g.above + 1), 0.0)
        gain = np.where(g.size > 1, g.positives / g.size * shared, single)
        total = sums_by(g.unit, gain, n=len(positives.count))
        return with_positives(positives, total / np.maximum(np.minimum(positives.count, self.k), 1))
