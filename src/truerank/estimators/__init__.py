"""Layer 5: (Log, Ranks, Metric) -> Terms.

A new estimator is one new module here; `catalogue`, the command line and the law tests find it by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truerank.core.estimator import Asked, Estimator, Exposed, Learned
from truerank.core.language import Kind
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, Ranks, RankView
from truerank.core.rooms import room
from truerank.core.terms import Smooth


def _judged(cls: type[Estimator]) -> bool:
    return Exposed.RANKED not in cls.about.exposures


ESTIMATORS: Kind[Estimator] = Kind(
    "estimator",
    __name__,
    Estimator,
    deep=True,
    among=_judged,
    group="truerank.estimators",
    experimental=("corrected", "inferred", "shrunk", "weighted", "wild"),
)
catalogue = ESTIMATORS.catalogue
named = ESTIMATORS.named
parse = ESTIMATORS.parse


def _kinds() -> tuple[Kind[Any], ...]:
    from truerank.estimators.ranked import RANKED

    return ESTIMATORS, RANKED


__getattr__, __dir__ = room(__name__, _kinds)


def terms_of(
    estimator: Estimator,
    log: Log,
    ranks: Ranks,
    *,
    metrics: Sequence[Metric],
    learned: Learned | None = None,
    keep_rows: bool = False,
) -> list[Smooth]:
    """The terms of judged rows whose ranks are known: for studies, which rank a world once and look at it many times.

    >>> import numpy as np
    >>> from truerank.core.ids import Ids
    >>> from truerank.estimators.full import Full
    >>> from truerank.metrics.recall import Recall
    >>> one, two = np.zeros(2, dtype=np.int64), np.ones(1)
    >>> log = Log(Ids.of([7]), Ids.of([1, 2]), one, np.arange(2), {"label": np.array([1.0, 1.0])})
    >>> ranks = Ranks(np.array([0.0, 1.0]), np.zeros(2), 2 * two, 2 * two, two > 0)
    >>> terms_of(Full(), log, ranks, metrics=[Recall(1)])[0].value()
    0.5
    """
    chunk = JudgedChunk(log, {})
    asked = [Asked(metric) for metric in metrics]
    found = estimator.terms(
        chunk, RankView(ranks), asked=asked, learned=Learned() if learned is None else learned, keep_rows=keep_rows
    )
    return [part for part in found if isinstance(part, Smooth)]
