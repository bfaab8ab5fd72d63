"""What plain evaluations on intervened test sets give on average, without drawing any (beyond the WTD paper).

An intervened test set is a part of a held-out log, row i in it with probability π_i (`Log.inclusion`). Its ordinary
metrics carry the noise of that draw. Their expectation does not need it: rows enter with their probabilities instead.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.record import record
from truerank.core.terms import Smooth, ratio
from truerank.core.wording import either
from truerank.estimators.refusals import LABEL_FREE, additive
from truerank.estimators.rows import per_unit
from truerank.metrics.discounts import expected_discount, known_divisor

MOST_NODES = 64  # exact up to 128 relevant rows of a user, beyond to better than 1e-12
NOTHING = 60.0  # exp(-60) is nothing
DRAWN = (
    "intervened test sets are drawn from these rows with the given inclusion probabilities, and their unlisted pairs "
    "count as negatives"
)
ALONE = "rows are taken to be drawn independently of each other, which is close for large logs"


@record
class Intervened(Estimator):
    """The mean over users that `full` gives on an intervened test set, averaged over all that could be drawn.

    Sums (Precision, DCG): Σ π_i w(r_i) y_i for each user, mean over all users; exactly the expectation, whatever the
    design. Metrics divided by a user's relevant items (Recall), which `full` averages over users who have one in the
    test set: drawn with S others, a relevant row counts 1 / (1 + S), so row i has the share s_i = π_i E[1 / (1 + S_i)],
    S_i the number of the user's other relevant rows that are drawn, and the estimate is Σ w(r_i) s_i / Σ s_i over all
    relevant rows. Its denominator is the expected number of users with a relevant row, Σ_u 1 - Π (1 - π_i). S_i is
    Poisson-binomial: exact for rows drawn independently, an approximation under a fixed size. And a ratio of
    expectations stands for the expectation of a ratio. Both errors fall like one over the number of rows.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "inclusion": [0.5, 1.0]})
    >>> how = {"exposure": "full(unlisted=negative)", "metrics": ["Recall@1"], "estimators": [Intervened()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value  # half of the test sets have 1/2, the others 0
    0.25
    """

    info = EstimatorInfo(
        name="intervened",
        exposures=frozenset({Exposed.FULL}),
        assumptions=(DRAWN, ALONE),
        complete=True,
        ties=LABEL_FREE,
        uses=frozenset({"inclusion"}),
        left_out="have no relevant item that could be drawn",
    )
    pooled = False

    def refusal(self, context: Metric) -> str | None:
        if not isinstance(context, Additive):
            return (
                f"{context} is no sum over relevant items, so single rows have no share in it; draw test sets "
                "(truerank intervene) and use full."
            )
        if context.denominator is Denominator.SMALLER:
            return (
                "it divides by the smaller of K and a user's relevant items in the test set; "
                f"use {context.name} divided by all relevant items, its default."
            )
        return None

    def estimand(self, request: Request, unit: str = "user") -> str:
        metric = request.metric
        return f"mean {metric} over {metric.on_full_labels} in an intervened test set, expected over its draws"

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        log, ranks, metric = units.log, units.ranks, additive(request.metric)
        chance, gain = inclusion_of(log), metric.gains(log) * expected_discount(metric, ranks)
        defined, den = ranks.scored & ~(ranks.n_candidates == 0), np.ones(log.n_units)
        if not metric.denominator.needs_every_label:
            divisor = known_divisor(metric.denominator, metric.cutoff, ranks)
            defined &= ~np.isnan(divisor)
            num = per_unit(log, chance * gain) / np.where(defined, divisor, 1.0)
        elif self.pooled:
            num, den = per_unit(log, chance * gain), per_unit(log, chance * log.label)
        else:
            rows = np.flatnonzero(log.label == 1)
            share = np.zeros(len(log))
            share[rows] = shares(log.unit[rows], chance[rows], n_units=log.n_units)
            num, den = per_unit(log, share * gain), per_unit(log, share)
            defined = ranks.scored & (den > 0)
        # nothing is left to chance but the users
        return ratio(num, den, defined=defined, clusters=units.chunk.clusters, exact=True)


@record
class IntervenedPooled(Intervened):
    """Recall over all relevant pairs of an intervened test set: Σ π_i hit_i / Σ π_i over relevant rows.

    Both sums are exactly the expected numbers of hits and of relevant rows in a drawn test set, whatever the design;
    their ratio differs from the mean of ratios by a term that falls like one over the number of relevant rows.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "inclusion": [0.5, 1.0]})
    >>> how = {"exposure": "full(unlisted=negative)", "metrics": ["Recall@1"], "estimators": [IntervenedPooled()]}
    >>> round(tr.evaluate(scores, labels, **how).estimates[0].value, 3)
    0.333
    """

    info = replace(Intervened.info, name="intervened-pooled", assumptions=(DRAWN,), left_out="")
    pooled = True

    def refusal(self, context: Metric) -> str | None:
        if isinstance(context, Additive) and not context.denominator.needs_every_label:
            return f"pooling divides by the number of relevant items; for {context} use intervened."
        return Intervened.refusal(self, context)

    def estimand(self, request: Request, unit: str = "user") -> str:
        return (
            f"{request.metric} pooled over all relevant user-item pairs in an intervened test set, so users with many "
            "of them count more"
        )


def inclusion_of(log: Log) -> Floats:
    """The inclusion probability of each row; refused where there are none."""
    if log.inclusion is None:
        raise InputError(
            f"{log.source}: no inclusion probabilities, which the estimators of intervened test sets need. Make them: "
            f"{either('truerank intervene LOG --inclusion ... --out FILE', 'truerank.with_inclusion')}."
        )
    return log.inclusion


def shares(unit: Ints, chance: Floats, *, n_units: int) -> Floats:
    """s_i = π_i E[1 / (1 + S_i)] of each row, S_i how many other rows of its unit are drawn, each independently.

    E[1 / (1 + S)] = ∫_0^1 E[t^S] dt, and E[t^S] = Π (1 - π_j + π_j t) is a polynomial in t with positive terms, which
    Gauss-Legendre integrates exactly. The shares of a unit sum to 1 - Π (1 - π_j): its chance to have a row drawn.

    >>> shares(np.array([0, 0, 1]), np.array([0.5, 1.0, 0.2]), n_units=2).round(12).tolist()
    [0.25, 0.75, 0.2]
    """
    count = np.bincount(unit, minlength=n_units)
    order = np.argsort(unit, kind="stable")
    start = np.cumsum(count) - count
    share = np.empty(len(unit))
    for n in np.unique(count[count > 0]).tolist():
        rows = order[start[count == n][:, None] + np.arange(n)]  # [units with n rows x n]
        share[rows] = _shares_of(chance[rows])
    return share


def _shares_of(chance: Floats) -> Floats:
    """The shares of units with the same number of rows, [units x rows]."""
    n = chance.shape[1]
    nodes, weights = _gauss(min((n + 1) // 2, MOST_NODES))
    width = np.ones(len(chance))
    if n > 2 * MOST_NODES:  # the polynomial is below exp(-(1 - t) Σ π): only those t count where that is not nothing
        width = np.minimum(1.0, NOTHING / np.maximum(chance.sum(axis=1) - 1, 1))
    share = np.zeros(chance.shape)
    for node, weight in zip(nodes, weights, strict=True):
        factor = 1 - chance * (width * (1 - node))[:, None]  # never 0: nodes lie inside (0, 1)
        share += chance * ((weight * width * factor.prod(axis=1))[:, None] / factor)
    return share


@cache
def _gauss(n: int) -> tuple[list[float], list[float]]:
    """Nodes and weights on [0, 1], exact for polynomials up to degree 2 n - 1."""
    node, weight = np.polynomial.legendre.leggauss(n)
    return ((node + 1) / 2).tolist(), (weight / 2).tolist()
