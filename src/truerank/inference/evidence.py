"""What labelled rows can show of the error of a value: whether there is a spread, and of how many clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.arrays import equal_parts
from truerank.core.terms import Ratio, Smooth, Terms
from truerank.inference.spreads import Spread


def judged_spread(spread: Spread, terms: Sequence[Terms]) -> Spread:
    """The spread of a value or a difference from judged rows; unknown where weighted rows show none."""
    parts = [part.whole for part in terms]
    if len(parts) > 1 and not any(part.weighting for part in parts):
        return spread
    blind = [shows_no_spread(part) and (len(parts) == 1 or part.weighting is not None) for part in parts]
    return spread.without_interval() if any(blind) else spread


def equally_weighted(terms: Smooth) -> float:
    """How many equally weighted clusters the denominator is worth, B² / Σ b²; 0 for means.

    A mean divides by all clusters, whether or not anything of their lists was judged: it does not tell.
    """
    below = terms.clusters.sums(np.where(terms.defined, terms.sums[:, 1], 0.0))
    return 0.0 if (below[below != 0] == 1).all() else equal_parts(below)


def shows_no_spread(terms: Smooth) -> bool:
    """Whether weighted rows are all hits or all misses, so that an interval of no width would be a lie."""
    if terms.exact:
        return False
    if not np.any(terms.sums[:, 0]):
        return True
    if terms.weighting is None or terms.n_defined < 2:
        return False
    totals = terms.totals()
    effect = Ratio().influence(terms.sums[:, :2], totals[:2])
    return bool(np.abs(effect).max() <= 1e-12 * abs(terms.value()))
