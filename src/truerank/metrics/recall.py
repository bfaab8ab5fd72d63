"""Recall."""

from __future__ import annotations

from typing import ClassVar, Literal

from truerank.core.options import Denominator
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.discounts import TopMetric


@record
class Recall(TopMetric):
    """The share of a user's relevant items that are ranked in the top K: #{relevant, rank <= K} / #relevant.

    Divides by all relevant items (equation 1 of the URE paper); `Denominator.SMALLER` divides by min(K, relevant),
    which partial labels cannot give. Undefined for a user without a relevant item.
    """

    k: Count
    denominator: Literal[Denominator.POSITIVES, Denominator.SMALLER] = Denominator.POSITIVES
    name: ClassVar[str] = "Recall"
    on_full_labels: ClassVar[str] = "users with a relevant item"
