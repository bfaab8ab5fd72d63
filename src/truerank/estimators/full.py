"""Estimators that treat the labels they see as all there are: full labels, a hold-out, or judged items alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truerank.core.arrays import Bools
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.options import AbsentUsers
from truerank.core.ranking import Pool, Ranks
from truerank.core.record import record
from truerank.core.terms import Smooth, ratio
from truerank.core.values import check
from truerank.estimators.refusals import only_labelled
from truerank.metrics.discounts import Pairwise, relevant
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
        assumptions=("pairs that are not listed are irrelevant: a convention, nobody asked about them",),
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
