"""Mean reciprocal rank of all relevant items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.arrays import Floats
from truerank.core.options import Denominator
from truerank.core.values import text_of


@dataclass(frozen=True, slots=True)
class MeanRR:
    """The mean over a user's relevant items of 1 / rank. Unlike RR it looks at all of them, not at the first.

    Additive, so that partial labels can give it. Undefined for a user without a relevant item.

    >>> import numpy as np
    >>> MeanRR().worth(np.array([1.0, 4.0])).tolist()
    [1.0, 0.25]
    """

    name: ClassVar[str] = "MeanRR"
    on_full_labels: ClassVar[str] = "users with a relevant item"
    denominator: ClassVar[Denominator] = Denominator.POSITIVES
    cutoff: ClassVar[None] = None

    __str__ = text_of

    def worth(self, rank: Floats) -> Floats:
        return 1.0 / rank
