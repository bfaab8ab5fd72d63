"""Precision."""

from __future__ import annotations

from typing import ClassVar, Literal

from truerank.core.options import Denominator
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.discounts import TopMetric


@record
class Precision(TopMetric):
    """The share of the K places that hold a relevant item: #{relevant, rank <= K} / K.

    Divides by K also where fewer are recommended; `Denominator.LIST` divides by the length of the list instead, and is
    undefined for an empty one. A user without a relevant item has precision 0.
    """

    k: Count
    denominator: Literal[Denominator.CUTOFF, Denominator.LIST] = Denominator.CUTOFF
    name: ClassVar[str] = "Precision"
    aliases: ClassVar[tuple[str, ...]] = ("P",)

    @property
    def on_full_labels(self) -> str:  # type: ignore[override]
        return "users" if self.denominator is Denominator.CUTOFF else "users with a recommended item"
