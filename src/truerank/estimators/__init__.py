"""Layer 5: (Log, Ranks, Metric) -> Terms.

A new estimator is one new class here; `catalogue`, the command line and the law tests find it by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from truerank.core.estimator import Estimator, Exposed, Learned, Request
from truerank.core.language import Kind
from truerank.core.lazy_imports import export_classes
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, Ranks, RankView
from truerank.core.terms import Smooth
from truerank.estimators.refitting import RankedEstimator

RANKED: Kind[RankedEstimator] = Kind(
    "estimator",
    __name__,
    RankedEstimator,
    among=lambda cls: Exposed.RANKED in cls.info.exposures,
    group="truerank.estimators",
)
ESTIMATORS: Kind[Estimator] = Kind(
    "estimator",
    __name__,
    Estimator,
    among=lambda cls: cls.info.exposures != {Exposed.RANKED},
    group="truerank.estimators",
    experimental=("corrected", "weighted"),
)
catalogue = ESTIMATORS.catalogue
named = ESTIMATORS.named
parse = ESTIMATORS.parse


__getattr__, __dir__ = export_classes(__name__, lambda: (ESTIMATORS, RANKED))


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
    >>> from truerank.metrics.additive import Recall
    >>> one, two = np.zeros(2, dtype=np.int64), np.ones(1)
    >>> log = Log(Ids.of([7]), Ids.of([1, 2]), one, np.arange(2), {"label": np.array([1.0, 1.0])})
    >>> ranks = Ranks(np.array([0.0, 1.0]), np.zeros(2), 2 * two, 2 * two, two > 0)
    >>> terms_of(Full(), log, ranks, metrics=[Recall(1)])[0].value()
    0.5
    """
    chunk = JudgedChunk(log, {})
    requests = [Request(metric) for metric in metrics]
    terms = estimator.terms(
        chunk, RankView(ranks), requests=requests, learned=learned or Learned(), keep_rows=keep_rows
    )
    return [part.whole for part in terms]
