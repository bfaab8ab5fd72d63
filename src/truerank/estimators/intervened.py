"""What plain evaluations on intervened test sets give on average, without drawing any (beyond the WTD paper).

An intervened test set is a part of a held-out log, row i in it with probability π_i (`Log.inclusion`). Its ordinary
metrics carry the noise of that draw. Their expectation does not need it: rows enter with their probabilities instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.errors import InputError
from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import JudgedChunk, Ranks, RankView
from truerank.core.terms import Smooth, ratio
from truerank.core.wording import either
from truerank.estimators.refusals import LABEL_FREE, additive
from truerank.estimators.rows import per_unit
from truerank.metrics.worth import expected_worth, gains_of, known_divisor

MOST_NODES = 64  # exact up to 128 relevant rows of a user, beyond to better than 1e-12
NOTHING = 60.0  # exp(-60) is nothing
DRAWN = (
    "intervened test sets are drawn from these rows with the given inclusion probabilities, and their unlisted pairs "
    "count as negatives"
)
ALONE = "rows are taken to be drawn independently of each other, which is close for large logs"


@dataclass(frozen=True, slots=True)
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

    about: ClassVar[About] = About(
        name="intervened",
        exposures=frozenset({Exposed.FULL}),
        assumptions=(DRAWN, ALONE),
        complete=True,
        ties=LABEL_FREE,
        uses=frozenset({"inclusion"}),
        left_out="have no relevant item that could be drawn",
    )

    def refusal(self, context: Metric) -> str | None:
        metric = context
        if not isinstance(metric, Additive):
            return _not_additive(metric)
        if metric.denominator is Denominator.SMALLER:
            return (
                "it divides by the smaller of K and a user's relevant items in the test set; "
                f"use {metric.name} divided by all relevant items, its default."
            )
        return None

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        metric = asked.metric
        return f"mean {metric} over {metric.on_full_labels} in an intervened test set, expected over its draws"

    def terms(
        self, chunk: JudgedChunk, view: RankView, *, asked: Sequence[Asked], learned: Learned, keep_rows: bool = False
    ) -> list[Smooth]:
        chance = inclusion_of(chunk.labels)
        return [
            self._divided_by_relevant(chunk, view.ranks, chance, metric)
            if metric.denominator.needs_every_label
            else self._sum(chunk, view.ranks, chance, metric)
            for metric in (additive(question.metric) for question in asked)
        ]

    @staticmethod
    def _sum(chunk: JudgedChunk, ranks: Ranks, chance: Floats, metric: Additive) -> Smooth:
        log = chunk.labels
        divisor = known_divisor(metric.denominator, metric.cutoff, ranks)
        defined = ranks.scored & ~np.isnan(divisor) & ~(ranks.n_candidates == 0)
        worth = gains_of(metric, log) * expected_worth(metric, ranks)
        total = per_unit(log, chance * worth) / np.where(defined, divisor, 1.0)
        return _terms(chunk, total, np.ones(log.n_units), defined)

    @staticmethod
    def _divided_by_relevant(chunk: JudgedChunk, ranks: Ranks, chance: Floats, metric: Additive) -> Smooth:
        log = chunk.labels
        rows = np.flatnonzero(log.label == 1)
        worth = (gains_of(metric, log) * expected_worth(metric, ranks))[rows]
        share = shares(log.unit[rows], chance[rows], n_units=log.n_units)
        den = sums_by(log.unit[rows], share, n=log.n_units)
        return _terms(chunk, sums_by(log.unit[rows], share * worth, n=log.n_units), den, ranks.scored & (den > 0))


@dataclass(frozen=True, slots=True)
class IntervenedPooled(Estimator):
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

    about: ClassVar[About] = About(
        name="intervened-pooled",
        exposures=frozenset({Exposed.FULL}),
        assumptions=(DRAWN,),
        complete=True,
        ties=LABEL_FREE,
        uses=frozenset({"inclusion"}),
    )

    def refusal(self, context: Metric) -> str | None:
        metric = context
        if not isinstance(metric, Additive):
            return _not_additive(metric)
        if metric.denominator is Denominator.POSITIVES:
            return None
        if metric.denominator is Denominator.SMALLER:
            return Intervened().refusal(metric)
        return f"pooling divides by the number of relevant items; for {metric} use intervened."

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return (
            f"{asked.metric} pooled over all relevant user-item pairs in an intervened test set, so users with many of "
            "them count more"
        )

    def terms(
        self, chunk: JudgedChunk, view: RankView, *, asked: Sequence[Asked], learned: Learned, keep_rows: bool = False
    ) -> list[Smooth]:
        log, ranks = chunk.labels, view.ranks
        chance = inclusion_of(log)
        defined = ranks.scored & ~(ranks.n_candidates == 0)
        terms = []
        for question in asked:
            hit = gains_of(question.metric, log) * expected_worth(additive(question.metric), ranks)
            num, den = (per_unit(log, chance * values) for values in (hit, log.label))
            terms.append(_terms(chunk, num, den, defined))
        return terms


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
    found = np.empty(len(unit))
    for n in np.unique(count[count > 0]).tolist():
        rows = order[start[count == n][:, None] + np.arange(n)]  # [units with n rows x n]
        found[rows] = _shares_of(chance[rows])
    return found


def _shares_of(chance: Floats) -> Floats:
    """The shares of units with the same number of rows, [units x rows]."""
    n = chance.shape[1]
    node, weight = _gauss(min((n + 1) // 2, MOST_NODES))
    # the polynomial is below exp(-(1 - t) Σ π): of many rows, only those t count where that is not nothing
    width = (
        np.ones(len(chance))
        if n <= 2 * MOST_NODES
        else np.minimum(1.0, NOTHING / np.maximum(chance.sum(axis=1) - 1, 1))
    )
    found = np.zeros(chance.shape)
    for x, w in zip(node, weight, strict=True):
        factor = 1 - chance * (width * (1 - x))[:, None]  # never 0: nodes lie inside (0, 1)
        found += chance * ((w * width * factor.prod(axis=1))[:, None] / factor)
    return found


@cache
def _gauss(n: int) -> tuple[list[float], list[float]]:
    """Nodes and weights on [0, 1], exact for polynomials up to degree 2 n - 1."""
    node, weight = np.polynomial.legendre.leggauss(n)
    return ((node + 1) / 2).tolist(), (weight / 2).tolist()


def _terms(chunk: JudgedChunk, num: Floats, den: Floats, defined: Bools) -> Smooth:
    # nothing is left to chance but the users
    return ratio(num, den, defined=defined, clusters=chunk.clusters, exact=True)


def _not_additive(metric: Metric) -> str:
    return (
        f"{metric} is no sum over relevant items, so single rows have no share in it; draw test sets "
        "(truerank intervene) and use full."
    )
