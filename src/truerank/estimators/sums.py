"""Pieces that estimators of sums over judged rows share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, sums_by
from truerank.core.errors import RefusedError
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Ranks, Ties
from truerank.metrics.worth import expected_worth, gains_of, known_divisor

# where a relevant item lands must not depend on labels that nobody knows
LABEL_FREE = frozenset({Ties.EXPECTED, Ties.RANDOM, Ties.STRICT})


@dataclass(frozen=True, slots=True)
class Parts:
    """The worth of each row and gain x worth, both divided by the unit's denominator; the worth of a whole list."""

    value: Floats
    worth: Floats
    total: Floats
    defined: Bools

    @classmethod
    def of(cls, log: Log, ranks: Ranks, metric: Additive) -> Parts:
        divisor = known_divisor(metric.denominator, metric.cutoff, ranks)
        defined = ~np.isnan(divisor)
        divisor = np.where(defined, divisor, 1.0)
        worth = expected_worth(metric, ranks) / divisor[log.unit]
        return cls(gains_of(metric, log) * worth, worth, worth_of_list(metric, ranks) / divisor, defined)


def additive(metric: Metric) -> Additive:
    if not isinstance(metric, Additive):
        raise RefusedError(f"{metric} is not additive over relevant items.")
    return metric


def per_unit(log: Log, values: Floats) -> Floats:
    return sums_by(log.unit, values, n=log.n_units)


def worth_of_list(metric: Additive, ranks: Ranks) -> Floats:
    """Σ w(r) over the ranks that a unit's list has: 1 ... min(K, candidates that are ever recommended)."""
    deepest = int(ranks.n_recommended.max(initial=0))
    deepest = deepest if metric.cutoff is None else min(deepest, metric.cutoff)
    running = np.concatenate([[0.0], np.cumsum(metric.worth(np.arange(1.0, deepest + 1)))])
    return running[np.minimum(ranks.n_recommended, deepest).astype(np.int64)]


def no_known_number(metric: Additive) -> str | None:
    if metric.denominator is Denominator.SMALLER:
        return (
            "it divides by the smaller of K and the number of all relevant items of a user, which is not known, and no "
            f"unbiased form exists; use {metric.name} divided by all relevant items, its default."
        )
    return None


def not_additive(metric: Metric) -> str:
    return f"partial labels cannot give {metric}: {getattr(metric, 'partial', 'it is not additive')}."
