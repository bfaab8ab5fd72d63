"""Metrics that are sums over relevant items of what each earns at its rank."""

from __future__ import annotations

from typing import Literal

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.metric import BaseMetric
from truerank.core.options import Denominator, Discount, Gain
from truerank.core.record import record
from truerank.core.values import Between0And1, Count
from truerank.metrics.discounts import GradedMetric, TopMetric


@record
class Precision(TopMetric):
    """The share of the K places that hold a relevant item: #{relevant, rank <= K} / K.

    Divides by K also where fewer are recommended; `Denominator.LIST` divides by the length of the list instead, and is
    undefined for an empty one. A user without a relevant item has precision 0.
    """

    k: Count
    denominator: Literal[Denominator.CUTOFF, Denominator.LIST] = Denominator.CUTOFF
    name = "Precision"
    aliases = ("P",)

    @property
    def on_full_labels(self) -> str:  # type: ignore[override]
        return "users" if self.denominator is Denominator.CUTOFF else "users with a recommended item"


@record
class Recall(TopMetric):
    """The share of a user's relevant items that are ranked in the top K: #{relevant, rank <= K} / #relevant.

    Divides by all relevant items (equation 1 of the URE paper); `Denominator.SMALLER` divides by min(K, relevant),
    which partial labels cannot give. Undefined for a user without a relevant item.
    """

    k: Count
    denominator: Literal[Denominator.POSITIVES, Denominator.SMALLER] = Denominator.POSITIVES
    name = "Recall"
    on_full_labels = "users with a relevant item"


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
    name = "DCG"
    denominator = Denominator.NOTHING

    def rank_discount(self, rank: Floats) -> Floats:
        below = np.log2(rank + 1.0) if self.discount is Discount.SMOOTH else np.maximum(1.0, np.log2(rank))
        return np.where(rank <= self.k, 1.0 / below, 0.0)


@record
class RBP(BaseMetric):
    """The sum over relevant items of (1 - p) p^(rank - 1) (Moffat and Zobel 2008).

    The share of relevant items among those that a reader sees who goes on to the next one with probability p, the
    persistence. A user without a relevant item has RBP 0.

    >>> RBP(0.5).rank_discount(np.array([1.0, 2.0, 3.0])).tolist()
    [0.5, 0.25, 0.125]
    """

    p: Between0And1
    name = "RBP"
    denominator = Denominator.NOTHING

    def rank_discount(self, rank: Floats) -> Floats:
        return (1.0 - self.p) * self.p ** (rank - 1.0)


@record
class MeanRR(BaseMetric):
    """The mean over a user's relevant items of 1 / rank. Unlike RR it looks at all of them, not at the first.

    Additive, so that partial labels can give it. Undefined for a user without a relevant item.

    >>> import numpy as np
    >>> MeanRR().rank_discount(np.array([1.0, 4.0])).tolist()
    [1.0, 0.25]
    """

    name = "MeanRR"
    on_full_labels = "users with a relevant item"
    denominator = Denominator.POSITIVES

    def rank_discount(self, rank: Floats) -> Floats:
        return 1.0 / rank
