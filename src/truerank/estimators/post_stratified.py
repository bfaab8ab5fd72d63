"""Recall over all relevant pairs, from the shares of relevant items inside and outside of the lists."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.estimator import Exposed
from truerank.core.forms import Form
from truerank.core.metric import Metric
from truerank.core.record import record
from truerank.core.rows import Column
from truerank.estimators.refusals import DISTINCT_RANKS, only_recall
from truerank.estimators.rows import WEIGHTED, FormOfSums, WeightedRows
from truerank.estimators.weighted import HorvitzThompson


@record
class TwoStrata(Form):
    """Â / (Â + Ĉ), Â = Σ K q̂_t and Ĉ = Σ (N - K) q̂_r: the places of each stratum times its share of relevant items.

    Of units: Σ α τ y and Σ α y, Σ α τ, and the same with 1 - τ, over judged rows; then the known numbers of places K
    and of other candidates N - K; τ is membership in the list. A stratum without places adds nothing, one of which no
    place was judged leaves the value undefined.

    >>> judged = np.array([[4.0, 6.0, 6.0, 2.0, 14.0, 4.0, 16.0]])  # 2 of 3 in the lists, and 1 of 7 beside them
    >>> TwoStrata().values(judged).round(3).tolist()
    [0.538]
    """

    columns = (
        "numerator", "denominator", "listed", "missed", "beside", "places", "others",
    )  # fmt: skip
    shares_out = True
    # without the first, one user who likes all that anybody likes would have a narrow interval
    denominators = ("denominator", "listed", "beside")

    def function(self, totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        hits, _, listed, missed, beside, places, others = totals.T
        with np.errstate(invalid="ignore", divide="ignore"):
            top, rest = (
                size * np.where(labelled.real > 0, relevant / labelled, np.where(size.real > 0, math.nan, 0.0))
                for relevant, labelled, size in ((hits, listed, places), (missed, beside, others))
            )
            return np.where((top + rest).real > 0, top / (top + rest), math.nan)


BOTH_STRATA = (
    Column.GAIN, Column.RELEVANT, Column.DISCOUNT, Column.MISSED, Column.BESIDE, Column.TOTAL, Column.OTHERS,
)  # fmt: skip


@record
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

    info = replace(
        HorvitzThompson.info,
        name="post-stratified",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM, Exposed.DESIGNED, Exposed.BIASED}),
        assumptions=(WEIGHTED,),
        ties=DISTINCT_RANKS,
        weighs=True,
    )

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, "strata share out the relevant items")

    def form(self, metric: Metric) -> FormOfSums:
        return TwoStrata(), BOTH_STRATA
