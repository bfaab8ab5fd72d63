"""The evaluation most people do today: held-out rows are relevant, everything else is taken as irrelevant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned
from truerank.core.metric import Metric
from truerank.core.options import AbsentUsers
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import Smooth, ratio
from truerank.core.values import check
from truerank.estimators.refusals import only_labelled
from truerank.metrics.tables import unit_values_of
from truerank.metrics.worth import relevant


@dataclass(frozen=True, slots=True)
class Holdout(Estimator):
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

    about: ClassVar[About] = About(
        name="holdout",
        exposures=frozenset({Exposed.HOLDOUT}),
        assumptions=("pairs that are not listed are irrelevant: a convention, nobody asked about them",),
        complete=True,
    )

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, context: Metric) -> str | None:
        return only_labelled(context)

    @property
    def users(self) -> str:
        """Whom a value is about."""
        left_out = self.without_relevant is AbsentUsers.OUT
        users = "users with a relevant item" if left_out else "all users of the test set"
        return f"{users}, those without a list as 0" if self.without_list is AbsentUsers.ZERO else users

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return f"mean {asked.metric} over {self.users}, taking unlisted pairs as irrelevant"

    def terms(
        self, chunk: JudgedChunk, view: RankView, *, asked: Sequence[Asked], learned: Learned, keep_rows: bool = False
    ) -> list[Smooth]:
        labels, ranks = chunk.labels, view.ranks
        some = np.bincount(labels.user[relevant(labels)], minlength=labels.n_units) > 0
        zero_list, zero_relevant = (option is AbsentUsers.ZERO for option in (self.without_list, self.without_relevant))
        counts = some | zero_relevant
        zero = counts & np.where(ranks.scored, ~some, zero_list)
        values = unit_values_of([asking.metric for asking in asked], labels, ranks)
        return [_mean(values[asking.metric], counts & ranks.scored, zero, chunk) for asking in asked]


def _mean(values: Floats, counted: Bools, zero: Bools, chunk: JudgedChunk) -> Smooth:
    """The mean over users who count and have a value, and over those who count as 0 where they have none."""
    known = counted & ~np.isnan(values)
    defined = known | zero
    return ratio(
        np.where(known, values, 0.0), defined.astype(np.float64), defined=defined, clusters=chunk.clusters, exact=True
    )
