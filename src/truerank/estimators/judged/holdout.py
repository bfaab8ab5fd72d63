"""The evaluation most people do today: held-out rows are relevant, everything else is taken as irrelevant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.estimator import About, Asked, Exposed, Learned, Learner
from truerank.core.metric import Metric
from truerank.core.options import AbsentUsers
from truerank.core.ranking import JudgedChunk, RankView
from truerank.core.terms import Smooth, ratio
from truerank.core.values import check, text_of
from truerank.metrics.tables import unit_values_of
from truerank.metrics.worth import relevant


@dataclass(frozen=True, slots=True)
class Holdout:
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

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, context: Metric) -> str | None:
        return None

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        users = (
            "users with a relevant item" if self.without_relevant is AbsentUsers.OUT else "all users of the test set"
        )
        zero = ", those without a list as 0" if self.without_list is AbsentUsers.ZERO else ""
        return f"mean {asked.metric} over {users}{zero}, taking unlisted pairs as irrelevant"

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        return ()

    def terms(
        self,
        chunk: JudgedChunk,
        view: RankView,
        *,
        asked: Sequence[Asked],
        learned: Learned,
        keep_rows: bool = False,
    ) -> list[Smooth]:
        labels, ranks = chunk.labels, view.ranks
        some = np.bincount(labels.user[relevant(labels)], minlength=labels.n_units) > 0
        counts = some if self.without_relevant is AbsentUsers.OUT else np.ones(labels.n_units, dtype=bool)
        defined = counts & (ranks.scored | (self.without_list is AbsentUsers.ZERO))
        values = unit_values_of([asking.metric for asking in asked], labels, ranks)
        return [
            ratio(
                np.where(defined & ranks.scored, np.nan_to_num(values[asking.metric]), 0.0),
                defined.astype(np.float64),
                defined=defined,
                clusters=chunk.clusters,
                exact=True,
            )
            for asking in asked
        ]
