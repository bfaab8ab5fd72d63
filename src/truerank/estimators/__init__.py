"""Layer 5: (Log, Ranks, Metric) -> Terms.

A new estimator is one new module here; `catalogue`, the command line and the law tests find it by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from truerank.core.estimator import Estimator
from truerank.core.language import Kind
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Ranks
from truerank.core.terms import Terms

ESTIMATORS: Kind[Estimator] = Kind("estimator", __name__, Estimator, deep=True)
catalogue = ESTIMATORS.catalogue
named = ESTIMATORS.named
parse = ESTIMATORS.parse


def terms_of(
    estimator: Estimator, log: Log, ranks: Ranks, *, metrics: Sequence[Metric], keep_rows: bool
) -> list[Terms]:
    """The terms of several metrics, in one pass where the estimator can."""
    together = getattr(estimator, "all_terms", None)
    if together is not None:
        found: list[Terms] = together(log, ranks, metrics=metrics)
        return found
    return [estimator.terms(log, ranks, metric=metric, keep_rows=keep_rows) for metric in metrics]
