"""Recall over all relevant pairs, from the shares of relevant items inside and outside of the lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import About, Exposed
from truerank.core.metric import Metric
from truerank.core.terms import quotients
from truerank.estimators.refusals import DISTINCT_RANKS, only_recall
from truerank.estimators.rows import WEIGHTED, Column, FormOfSums, WeightedRows


@dataclass(frozen=True, slots=True)
class TwoStrata:
    """Â / (Â + Ĉ), Â = Σ K q̂_t and Ĉ = Σ (N - K) q̂_r: the places of each stratum times its share of relevant items.

    Of units: Σ α τ y and Σ α y, Σ α τ, and the same with 1 - τ, over judged rows; then the known numbers of places K
    and of other candidates N - K; τ is membership in the list. A stratum without places adds nothing, one of which no
    place was judged leaves the value undefined.

    >>> judged = np.array([[4.0, 6.0, 6.0, 2.0, 14.0, 4.0, 16.0]])  # 2 of 3 in the lists, and 1 of 7 beside them
    >>> TwoStrata().values(judged).round(3).tolist()
    [0.538]
    """

    columns: ClassVar[tuple[str, ...]] = (
        "numerator", "denominator", "listed", "missed", "beside", "places", "others",
    )  # fmt: skip

    def values(self, totals: Floats) -> Floats:
        found, _, listed, missed, beside, places, others = totals.T
        top, rest = _expanded(found, listed, places), _expanded(missed, beside, others)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(top + rest > 0, top / (top + rest), math.nan), dtype=np.float64)

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        value = float(self.values(totals[None])[0])
        (top,), (rest,) = (_expanded(*totals[None, of].T) for of in (INSIDE, OUTSIDE))
        inside, outside = (_errors(sums[:, of], totals[of]) for of in (INSIDE, OUTSIDE))
        return np.asarray(((1 - value) * inside - value * outside) / (top + rest))

    def alone(self, sums: Floats) -> Floats:
        """Of a user alone the share of its judged relevant items that are in its list: no strata with so few rows."""
        return quotients(sums)

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        """The largest of a row's shares of what was judged of both strata, and of what was relevant there.

        Without the last, one user who likes all that anybody likes would have a narrow interval.
        """
        shares = [sums[:, at] / totals[at] for at in (RELEVANT, INSIDE[1], OUTSIDE[1]) if totals[at] > 0]
        return np.max(shares, axis=0) if shares else np.zeros(len(sums))


INSIDE, OUTSIDE = [0, 2, 5], [3, 4, 6]  # relevant, judged, places
RELEVANT = 1  # of both


def _expanded(found: Floats, judged: Floats, places: Floats) -> Floats:
    """Relevant items of a stratum: its places times the share that was found among judged ones."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(judged > 0, found / judged, np.where(places > 0, math.nan, 0.0))
        return np.asarray(places * share, dtype=np.float64)


def _errors(sums: Floats, totals: Floats) -> Floats:
    """What each unit adds to the error of the number of relevant items of a stratum: g Σ α (y - q̂) + K q̂."""
    found, judged, places = totals.tolist()
    if not judged > 0:
        return np.zeros(len(sums))
    share = found / judged
    return np.asarray((sums[:, 0] - share * sums[:, 1]) * (places / judged) + share * sums[:, 2])


@dataclass(frozen=True, slots=True)
class PostStratified(WeightedRows):
    """Recall over all relevant pairs, as pooled, from known numbers of places: R = Â / (Â + Ĉ).

    Â = ΣK q̂_t, q̂_t = Σ α τ y / Σ α τ the share of relevant items among judged ones in the lists, and
    Ĉ = Σ(N - K) q̂_r the same of all other candidates; α = N / N-bar, or 1 / propensity. How many judged items happen
    to be in a list is chance, how many places a list has is known: the more of short lists is relevant, the smaller is
    its variance beside that of pooled recall. Consistent, without any model, and undefined where no judged item is in
    any list.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 3, "item": [1, 3, 4], "label": [1, 1, 0]})
    >>> how = {"exposure": "random", "metrics": ["Recall@2"], "estimators": [PostStratified()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> round(found.estimates[0].value, 3)  # 2 places x 1 relevant in 1, and 2 others x 1 in 2: 2 / (2 + 1)
    0.667
    """

    about: ClassVar[About] = About(
        name="post-stratified",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM, Exposed.DESIGNED, Exposed.BIASED}),
        assumptions=(WEIGHTED,),
        ties=DISTINCT_RANKS,
        design=True,
        needs_size=True,
        weighs=True,
        stands=True,
        left_out="have no judged item",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "strata share out the relevant items")

    def form(self, metric: Metric) -> FormOfSums:
        return TwoStrata(), (
            Column.GAIN,
            Column.RELEVANT,
            Column.DISCOUNT,
            Column.MISSED,
            Column.BESIDE,
            Column.TOTAL,
            Column.OTHERS,
        )
