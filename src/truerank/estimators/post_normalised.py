"""nDCG after averaging: mean DCG over the DCG of an ideal list."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.forms import Form
from truerank.core.metric import Metric
from truerank.core.options import Discount, Ideal
from truerank.core.record import record
from truerank.core.terms import Smooth, smooth
from truerank.estimators.refusals import LABEL_FREE, only_labelled
from truerank.estimators.rows import UNIFORM, Sample, per_unit
from truerank.metrics.additive import DCG
from truerank.metrics.discounts import expected_discount
from truerank.metrics.listwise import NDCG

CLOSE = 1e-9  # to a whole number


@record
class IdealRatio(Form):
    """(Σ DCG / U) / I(Σ relevant / U), I(n) the DCG of a list of n relevant items, a line between whole numbers.

    >>> IdealRatio(2).values(np.array([[2.0, 4.0, 4.0]])).tolist()  # a mean DCG of .5, and one relevant item
    [0.5]
    """

    k: int
    discount: Discount = Discount.SMOOTH
    whole: bool = False  # the ideal list is always full
    columns = ("dcg", "relevant", "units")

    def _ideal(self, number: float) -> tuple[float, float]:
        """I(number) and its slope: at a whole number the mean of those on both sides."""
        discount = np.append(DCG(self.k, discount=self.discount).rank_discount(np.arange(1.0, self.k + 1)), 0.0)
        length = float(self.k) if self.whole else min(max(number, 0.0), float(self.k))
        below = min(int(length + CLOSE), self.k)
        before = below - 1 if abs(length - below) <= CLOSE and below else below
        slope = 0.0 if self.whole or number > self.k + CLOSE else float(discount[before] + discount[below]) / 2
        return float(discount[:below].sum() + (length - below) * discount[below]), slope

    def values(self, totals: Floats) -> Floats:
        return np.array([self._value(row) for row in totals.tolist()])

    def _value(self, totals: Sequence[float]) -> float:
        dcg, relevant, units = totals
        ideal = self._ideal(relevant / units)[0] if units > 0 and relevant > 0 else 0.0
        return dcg / units / ideal if ideal > 0 else math.nan

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        units, mean = float(totals[2]), float(totals[1] / totals[2])
        (ideal, slope), value = self._ideal(mean), self._value(totals.tolist())
        effect = sums[:, 0] - value * ideal * sums[:, 2]
        return (effect - value * slope * (sums[:, 1] - mean * sums[:, 2])) / (ideal * units)

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        return np.asarray(np.maximum(sums[:, 2] / totals[2], sums[:, 1] / max(float(totals[1]), 1e-300)))


@record
class PostNormalised(Estimator):
    """Mean DCG (Horvitz-Thompson) over the DCG of the ideal list of a user with the mean number of relevant items.

    nDCG divides within each user by what nobody knows. Here mean DCG, which is exactly unbiased, is divided once, by
    the DCG@K of a list of N⁺ relevant items with N⁺ = Σ (N / N-bar) n / U: another quantity than the mean of nDCG,
    labelled so, for which it is consistent; it orders models as mean DCG does. With `ideal=cutoff` the ideal list is
    always full, and the value exactly unbiased for DCG@K over that of a full list.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 0]})
    >>> how = {"exposure": "random", "metrics": ["nDCG@1"], "estimators": [PostNormalised()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value  # one of two judged stands for two of four
    2.0
    """

    info = EstimatorInfo(
        name="post-normalised",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE,
        needs_size=True,
        left_out="have no labelled item",
    )

    def refusal(self, context: Metric) -> str | None:
        if not isinstance(context, NDCG):
            return only_labelled(context) or "it normalises DCG; use nDCG."
        if context.graded:
            return "the best order of a user's grades is not known; use DCG with the same gains."
        return None

    def estimand(self, request: Request, unit: str = "user") -> str:
        k, full = request.metric.k, request.metric.ideal is Ideal.CUTOFF
        number = f"{k} relevant items" if full else "as many relevant items as users have on average"
        return f"mean DCG@{k} over users, divided by the DCG@{k} of {number}; not the mean of {request.metric}"

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        metric: NDCG = request.metric
        log, chunk = units.log, units.chunk
        sample = Sample.uniform(chunk, units.ranks, rate=units.learned.facts.get("rate"))
        discount = expected_discount(DCG(metric.k, discount=metric.discount), units.ranks)
        sums = [sample.expansion * per_unit(log, gain) for gain in (log.label * discount, log.label)]
        form = IdealRatio(metric.k, metric.discount, metric.ideal is Ideal.CUTOFF)
        columns = [*sums, np.ones(log.n_units)]
        return smooth(form, columns, sample.defined, chunk.clusters, exact=sample.exact)
