"""What the residuals of an assisted value cannot show where its list has few labelled hits, or none."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.core.terms import HitMove, Smooth, Terms
from truerank.inference.moments import Moments

FEW_HITS = 10  # units with a labelled hit in the list, below which an assisted value allows for one hit more


@dataclass(frozen=True, slots=True)
class RareHits:
    """How many units have a labelled hit in their list, and how far one hit more would move the value."""

    units: int
    move: HitMove

    @property
    def allowed(self) -> float:
        """How far one hit more would move an assisted value that rests on few of them, else 0."""
        few = 0 < self.units < FEW_HITS and self.move.assisted and math.isfinite(self.move.size)
        return self.move.size if few else 0.0


def rare_hits(terms: Terms) -> RareHits | None:
    """The hits that an assisted value rests on; None of other values, and where every label is known."""
    whole = terms.whole
    move = None if whole.exact else whole.form.one_hit_more(whole.totals())
    return None if move is None else RareHits(int(np.count_nonzero(whole.sums[:, 0])), move)


def unseen_variance(first: RareHits | None, second: RareHits | None) -> float:
    """The variance to add to a difference of which one list has no labelled hit: one hit more in either list, squared.

    Residuals of a list without a hit are all 0, and predictions may fit the hits of the other almost perfectly, so that
    residuals do not show that a hit would have been possible. Without help of predictions they do (Hájek).
    """
    if first is None or second is None or min(first.units, second.units) > 0:
        return 0.0
    if not (first.move.assisted or second.move.assisted):
        return 0.0
    return first.move.size**2 + second.move.size**2


def with_rare_hits(moments: Moments, first: Smooth, second: Smooth | None) -> Moments:
    """What the rows show, and what they cannot show where a list has few hits or none."""
    hits = rare_hits(first)
    if second is None:
        return moments.with_hit(hits.allowed) if hits is not None and hits.allowed else moments
    unseen = unseen_variance(hits, rare_hits(second))
    return moments if unseen == 0 else moments.with_unseen(unseen)
