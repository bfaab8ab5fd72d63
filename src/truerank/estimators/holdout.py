"""The evaluation most people do today: held-out rows are relevant, everything else is taken as irrelevant."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools
from truerank.core.estimator import EstimatorInfo, Exposed, Request
from truerank.core.log import Log
from truerank.core.options import AbsentUsers
from truerank.core.ranking import Ranks
from truerank.core.record import record
from truerank.core.values import check
from truerank.estimators.full import MeanOfUsers, without_relevant


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

    info: ClassVar[EstimatorInfo] = EstimatorInfo(
        name="holdout",
        exposures=frozenset({Exposed.HOLDOUT}),
        assumptions=("pairs that are not listed are irrelevant: a convention, nobody asked about them",),
        complete=True,
    )
    pairs_undefined: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self)

    @property
    def users(self) -> str:
        """Whom a value is about."""
        left_out = self.without_relevant is AbsentUsers.OUT
        users = "users with a relevant item" if left_out else "all users of the test set"
        return f"{users}, those without a list as 0" if self.without_list is AbsentUsers.ZERO else users

    def estimand(self, request: Request, unit: str = "user") -> str:
        return f"mean {request.metric} over {self.users}, taking unlisted pairs as irrelevant"

    def counted(self, labels: Log, ranks: Ranks) -> tuple[Bools, Bools]:
        nothing = without_relevant(labels)
        zero_list, zero_relevant = (choice is AbsentUsers.ZERO for choice in (self.without_list, self.without_relevant))
        counted = ~nothing | zero_relevant
        return counted & ranks.scored, counted & np.where(ranks.scored, nothing, zero_list)
