"""Ratios of totals over users: recall from known strata, metrics of pairs, and nDCG after averaging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.forms import Form, Ratio
from truerank.core.metric import Metric
from truerank.core.options import Discount, Ideal
from truerank.core.record import record
from truerank.core.rows import Column
from truerank.core.terms import Smooth, smooth
from truerank.estimators.refusals import DISTINCT_RANKS, LABEL_FREE, not_additive, only_labelled, only_recall
from truerank.estimators.rows import UNIFORM, WEIGHTED, FormOfSums, Sample, WeightedRows, per_unit
from truerank.estimators.weighted import HorvitzThompson
from truerank.metrics.additive import DCG
from truerank.metrics.discounts import OfPairs, Positives, expected_discount
from truerank.metrics.listwise import NDCG
from truerank.metrics.pairwise import AveragePrecision


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


@record
class PairRatio(Ratio):
    """Σ numerator / Σ denominator, and how many users have two labelled hits in their list."""

    columns = (*Ratio.columns, "with_pair")

    def users_with_pair(self, totals: Floats) -> int:
        return int(totals[2])


@record
class ExpandedPairs(Estimator):
    """Sums over judged items times N / N-bar, and over pairs of them times N (N - 1) / (N-bar (N-bar - 1)).

    Numerator and denominator of AP and AUC are such sums, so both are exactly unbiased for users with two judged items
    or more: AP divided by K (denominator=cutoff) is unbiased itself, as a mean over users; AP divided by the relevant
    items and AUC are ratios of totals, pooled over items or pairs of items, and consistent. Under Bernoulli exposure (a
    declared rate) the weights are 1 / rate and 1 / rate². AP rests on users with two labelled hits in their list: where
    none has, nothing shows what pairs add, and there is no interval.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["AP@3(denominator=cutoff)"], "estimators": [ExpandedPairs()]}
    >>> round(tr.evaluate(scores, labels, **how).estimates[0].value, 6)  # (2 (1 + 1/3) + 6 / 3) / 3
    1.555556
    """

    info = EstimatorInfo(
        name="pairs",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=DISTINCT_RANKS,
        needs_size=True,
        left_out="have fewer than two labelled items",
    )

    def refusal(self, context: Metric) -> str | None:
        if isinstance(context, OfPairs):
            return context.no_sums
        return only_labelled(context) or f"{context} is not made of pairs of relevant items, as AUC is; use AUC."

    def estimand(self, request: Request, unit: str = "user") -> str:
        return str(request.metric.pooled)

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        metric = request.metric
        if not isinstance(metric, OfPairs):
            raise TypeError(not_additive(metric))
        sample = units.once(
            "sample", lambda: Sample.uniform(units.chunk, units.ranks, rate=units.learned.facts.get("rate"))
        )
        positives = units.once("positives", lambda: Positives.of(units.log, units.ranks, gain=units.log.label))
        pair = pair_expansion(sample)
        defined = sample.defined & ~np.isnan(pair)
        pair, single, sums = np.where(defined, pair, 0.0), sample.expansion, metric.pair_sums(positives)
        columns = [single * sums.single + pair * sums.pair,
                   sums.known + single * sums.below_single + pair * sums.below_pair]  # fmt: skip
        form = Ratio()
        if isinstance(metric, AveragePrecision):
            form, columns = PairRatio(), [*columns, (sums.pair > 0).astype(np.float64)]
        exact = replace(sample, defined=defined).exact
        return smooth(form, columns, defined, sample.clusters, exact=exact)


def pair_expansion(sample: Sample) -> Floats:
    """How many pairs of candidates a judged pair stands for; NaN where a user has too few judged items for one."""
    if sample.rate is not None:
        return np.full(len(sample.n_labelled), sample.rate**-2.0)
    n, judged = sample.n_candidates, sample.n_labelled
    expansion = np.divide(n * (n - 1), judged * (judged - 1), out=np.full(len(n), np.nan), where=judged > 1)
    return np.where((n == 1) & (judged == 1), 1.0, expansion)


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
        places = np.arange(self.k + 1.0)
        discount = np.append(DCG(self.k, discount=self.discount).rank_discount(places[1:]), 0.0)
        length = float(self.k) if self.whole else min(max(number, 0.0), float(self.k))
        below = min(int(length + CLOSE), self.k)
        before = below - 1 if abs(length - below) <= CLOSE and below else below
        slope = 0.0 if self.whole or number > self.k + CLOSE else float(discount[before] + discount[below]) / 2
        return float(np.interp(length, places, np.cumsum(discount) - discount)), slope

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
