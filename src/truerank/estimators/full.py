"""Estimators that treat the labels they see as all there are: full labels, a hold-out, or judged items alone.

An intervened test set is a part of a held-out log, row i in it with probability π_i (`Log.inclusion`). Its ordinary
metrics carry the noise of that draw. Their expectation does not need it: rows enter with their probabilities instead
(beyond the WTD paper).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.errors import InputError
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import AbsentUsers, Denominator
from truerank.core.ranking import Pool, Ranks
from truerank.core.record import record
from truerank.core.terms import Smooth, ratio
from truerank.core.values import check
from truerank.core.wording import either
from truerank.estimators.refusals import LABEL_FREE, additive, only_labelled
from truerank.estimators.rows import per_unit
from truerank.metrics.discounts import Pairwise, expected_discount, known_divisor, relevant
from truerank.metrics.tables import unit_values_of


class MeanOfUsers(Estimator):
    """The mean of a metric over users, from the labels that there are."""

    __slots__ = ()

    exact = True  # every label is taken to be known
    pairs_undefined = True  # without a relevant item

    def refusal(self, context: Metric) -> str | None:
        return only_labelled(context)

    def counted(self, labels: Log, ranks: Ranks) -> tuple[Bools, Bools]:
        """The users who count where they have a value, and those who count as 0 where they have none."""
        counted = ranks.scored & ~(ranks.n_candidates == 0)
        return counted, np.zeros_like(counted)

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        log, ranks, metric = units.log, units.ranks, request.metric
        metrics = [asked.metric for asked in units.requests]
        value = units.once("values", lambda: unit_values_of(metrics, log, ranks))[metric]
        counted, zero = units.once("counted", lambda: self.counted(log, ranks))
        valued = counted & ~np.isnan(value)
        # nothing relevant may count as 0; of pairs, as in AUC, there are none to be right or wrong about
        defined = valued if isinstance(metric, Pairwise) and self.pairs_undefined else valued | zero
        sums = np.where(valued, value, 0.0), defined.astype(np.float64)
        return ratio(*sums, defined=defined, clusters=units.chunk.clusters, exact=self.exact)


@record
class Full(MeanOfUsers):
    """The plain evaluation on full labels: the mean of the metric over users.

    Users whose value is undefined (no relevant item for Recall, nDCG, AP or RR; no candidate) are left out and counted;
    those without a relevant item count as 0 with `without_relevant`, as RankSys and others have it.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 4, "item": [1, 2, 3, 4], "label": [1, 0, 1, 0]})
    >>> how = {"exposure": tr.exposure.FullExposure(), "metrics": ["Recall@1"], "estimators": [Full()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    without_relevant: AbsentUsers = AbsentUsers.OUT

    info = EstimatorInfo(
        name="full",
        exposures=frozenset({Exposed.FULL}),
        assumptions=("every candidate of every user carries its true label",),
        complete=True,
        design=True,
    )

    def __post_init__(self) -> None:
        check(self)

    def estimand(self, request: Request, unit: str = "user") -> str:
        if self.without_relevant is AbsentUsers.ZERO and not isinstance(request.metric, Pairwise):
            return f"mean {request.metric} over all users, those without a relevant item as 0"
        return Estimator.estimand(self, request)

    def counted(self, labels: Log, ranks: Ranks) -> tuple[Bools, Bools]:
        counted, zero = MeanOfUsers.counted(self, labels, ranks)
        return counted, counted & without_relevant(labels) if self.without_relevant is AbsentUsers.ZERO else zero


@record
class Holdout(MeanOfUsers):
    """The mean of a metric over users with a relevant held-out item, the same users for every metric.

    (1 / U) Σ_u metric(list of u, held-out items of u). A pair that is not listed counts as irrelevant although nobody
    asked: values are lower than with every label known, most for lists of what was never shown. Users without a
    relevant item (`without_relevant`) and users without a list (`without_list`) are left out, or count as 0, as some
    tools have it.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "c"], "rank": [1, 2, 1]})
    >>> test = pl.DataFrame({"user": [1, 1, 2, 3], "item": ["b", "d", "c", "a"]})
    >>> how = {"exposure": "holdout", "metrics": ["Recall@2", "Precision@2"]}
    >>> [(found.value, found.units) for found in tr.evaluate({"m": lists}, test, **how).estimates]
    [(0.75, 2), (0.5, 2)]
    >>> zero = tr.evaluate({"m": lists}, test, **how, estimators=["holdout(without_list=zero)"])
    >>> zero.estimates[0].value
    0.5
    """

    without_relevant: AbsentUsers = AbsentUsers.OUT
    without_list: AbsentUsers = AbsentUsers.OUT

    info = replace(
        Full.info,
        name="holdout",
        exposures=frozenset({Exposed.HOLDOUT}),
        assumptions=("pairs without a label are irrelevant, which is a convention",),
        design=False,
    )
    pairs_undefined = False

    def __post_init__(self) -> None:
        check(self)

    @property
    def users(self) -> str:
        """Whom a value is about."""
        left_out = self.without_relevant is AbsentUsers.OUT
        users = "users with a relevant item" if left_out else "all users of the test set"
        return f"{users}, those without a list as 0" if self.without_list is AbsentUsers.ZERO else users

    def estimand(self, request: Request, unit: str = "user") -> str:
        return f"mean {request.metric} over {self.users}, taking unobserved pairs as irrelevant"

    def counted(self, labels: Log, ranks: Ranks) -> tuple[Bools, Bools]:
        nothing = without_relevant(labels)
        zero_list, zero_relevant = (choice is AbsentUsers.ZERO for choice in (self.without_list, self.without_relevant))
        counted = ~nothing | zero_relevant
        return counted & ranks.scored, counted & np.where(ranks.scored, nothing, zero_list)


@record
class Traditional(MeanOfUsers):
    """The usual scheme on randomly exposed data: rank only the judged items, cut at K-bar (spec 5.1.5).

    Among N-bar judged items instead of N candidates a cut-off of K-bar is about as deep as K-bar N / N-bar in the
    catalogue (theorem 1 of the URE paper), so this is another quantity than the metric at the same K. AUC has no
    cut-off: among judged items that are a uniform sample it is exactly unbiased for each user given both classes, and
    its mean over those users converges to Σ π AUC / Σ π, π the chance to have both judged.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [Traditional()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    0.5
    """

    info = EstimatorInfo(
        name="traditional",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=("the labelled items are all the items that matter",),
        pool=Pool.JUDGED,
        differs="ranks the labelled items alone, which is another quantity than the metric at the same K",
    )
    exact = False

    def estimand(self, request: Request, unit: str = "user") -> str:
        metric = request.metric
        if isinstance(metric, Pairwise):
            return f"mean {metric} over {metric.judged_only}"
        return (
            f"mean {metric} among the labelled items only, over {metric.on_full_labels} labelled; not {metric} itself"
        )


def without_relevant(labels: Log) -> Bools:
    """Users without a relevant item."""
    return np.asarray(np.bincount(labels.user[relevant(labels)], minlength=labels.n_units) == 0)


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
