"""R-precision."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import BaseMetric
from truerank.core.record import record
from truerank.metrics.discounts import Positives, with_positives


@record
class RPrecision(BaseMetric):
    """The share of a user's n relevant items that are ranked in the top n; precision and recall at n are the same.

    Undefined for a user without a relevant item. Over tie orders a relevant item in a group of t candidates after a
    better ones is in the top n with probability (n - a) / t, between 0 and 1.

    >>> str(RPrecision())
    'RPrecision'
    """

    name: ClassVar[str] = "RPrecision"
    on_full_labels: ClassVar[str] = "users with a relevant item"
    partial: ClassVar[str] = (
        "it looks as deep as a user has relevant items, a number that is not known, and no unbiased form exists; "
        "use Recall or Precision"
    )

    def values(self, positives: Positives) -> Floats:
        ranks, n = positives.ranks, positives.count
        size = ranks.tied + 1
        hits = positives.sums(np.clip(n[positives.unit] - ranks.above, 0, size) / size)
        return with_positives(positives, hits / np.maximum(n, 1))
