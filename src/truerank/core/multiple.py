"""Several comparisons at once."""

from __future__ import annotations

import numpy as np

from truerank.core.arrays import Floats


def holm(p: Floats) -> Floats:
    """Holm's step-down correction (Holm 1979): all claims with adjusted p <= 0.05 hold together with error 5 %.

    A p that is NaN is no test: it stays NaN and does not count.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    scaled = p[order] * (len(order) - np.arange(len(order)))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted
