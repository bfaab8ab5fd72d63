"""Values of many metrics at once: a metric enters as tables made from itself, so that none is written twice.

Without ties most metrics are Σ_j rank_table[r_j] · hit_table[j] / divisor(n) over a unit's relevant items, the j-th
from the top at rank r_j, n of them in all. One walk over the relevant items then serves all metrics and cut-offs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Ranks
from truerank.core.record import record
from truerank.metrics.discounts import Positives, divisor, unit_values

WORTH_IT = 100_000  # relevant items below which loading the compiled walk costs more than it saves


@runtime_checkable
class Walked(Metric, Protocol):
    """A metric of the order of relevant items: Σ_j by_rank(r_j) by_hit(j), divided by `divide(positives)`."""

    def by_rank(self, rank: Floats) -> Floats: ...
    def by_hit(self, hit: Floats) -> Floats: ...
    def divide(self, positives: Positives) -> Floats: ...


def unit_values_of(
    metrics: Sequence[Metric], log: Log, ranks: Ranks, *, fast: bool | None = None
) -> dict[Metric, Floats]:
    """The value of every unit for each metric, as `unit_values` gives it, in one walk where that is possible and pays.

    Both ways add up in the same order, so they agree to the last bit.
    """
    wanted = len(log) >= WORTH_IT if fast is None else fast
    tables = [entry for metric in metrics if (entry := _tables(metric)) is not None] if wanted else []
    values = _walk(tables, log, ranks) if tables else {}
    return {metric: values[metric] if metric in values else unit_values(metric, log, ranks) for metric in metrics}


@record
class _Tables:
    """How a metric enters the walk."""

    metric: Metric
    by_rank: Callable[[Floats], Floats]
    by_hit: Callable[[Floats], Floats] | None
    divide: Callable[[Positives], Floats]


def _tables(metric: Metric) -> _Tables | None:
    if metric.graded:
        return None
    if isinstance(metric, Walked):
        # where the number of the hit is of no matter the order is free, and rows are added up as they come
        counts = bool((metric.by_hit(np.arange(1.0, 4.0)) != 1).any())
        return _Tables(metric, metric.by_rank, metric.by_hit if counts else None, metric.divide)
    if isinstance(metric, Additive) and metric.denominator is not Denominator.LIST:
        denominator, k = metric.denominator, metric.cutoff
        return _Tables(metric, metric.rank_discount, None, lambda positives: divisor(denominator, k, positives))
    return None


def discount_and_divisor(metric: Metric, *, deepest: int, most: int) -> tuple[Floats, Floats] | None:
    """A metric as two tables: what a relevant item at each rank 0 ... deepest adds, and by what the sum of a user with
    0 ... most relevant items is divided. None for a metric that is no such sum; rank 0 earns nothing.

    >>> from truerank.metrics.additive import Recall
    >>> discount, divisor = discount_and_divisor(Recall(1), deepest=2, most=2)
    >>> discount.tolist(), divisor.tolist()
    ([0.0, 1.0, 0.0], [nan, 1.0, 2.0])
    """
    tables = _tables(metric)
    if tables is None or tables.by_hit is not None:
        return None
    count = np.arange(most + 1)
    one = count[1:]  # a row for each user that has any: all that a divisor looks at besides their number
    nowhere, everyone = np.zeros(most), np.ones(most + 1)
    ranks = Ranks(nowhere, nowhere, everyone, everyone, everyone > 0)
    positives = Positives(one, np.ones(most), ranks, count.astype(np.float64))
    discount = tables.by_rank(np.maximum(np.arange(deepest + 1.0), 1.0))
    discount[0] = 0.0
    return discount, tables.divide(positives)


def _walk(tables: Sequence[_Tables], log: Log, ranks: Ranks) -> dict[Metric, Floats]:
    from truerank.ranking.kernel.fast import sum_tables

    positives = Positives.of(log, ranks, gain=log.label)
    last = max(1, int(ranks.n_recommended.max(initial=1)))  # no rank is deeper
    cutoffs = [table.metric.cutoff for table in tables]
    deepest = max(last if k is None else min(k, last) for k in cutoffs)
    rank, hit = np.arange(deepest + 1.0), np.arange(deepest + 1.0)
    rank[0] = 1.0  # no rank is 0; its entry is never read
    sums = [table for table in tables if table.by_hit is None]
    walks = [(table, table.by_hit(hit)) for table in tables if table.by_hit is not None]
    total, walked = np.zeros((len(sums), log.n_units)), np.zeros((len(walks), log.n_units))
    shared = np.zeros(log.n_units, dtype=bool)
    sum_tables(
        np.concatenate([[0], np.cumsum(positives.count)]).astype(np.int64),
        positives.ranks.above, positives.ranks.tied, deepest,
        _stacked([table.by_rank(rank) for table in sums], deepest),
        _stacked([table.by_rank(rank) for table, _ in walks], deepest),
        _stacked([by_hit for _, by_hit in walks], deepest),
        total, walked, shared,
    )  # fmt: skip
    values = {
        table.metric: part / table.divide(positives)
        for table, part in zip([*sums, *(table for table, _ in walks)], [*total, *walked], strict=True)
    }
    if not shared.any():
        return values
    # units with ties need more than one rank per item: by the closed forms
    rows = np.flatnonzero(shared[log.unit])
    part, few = replace(ranks, above=ranks.above[rows], tied=ranks.tied[rows]), log.select(rows)
    return {metric: np.where(shared, unit_values(metric, few, part), whole) for metric, whole in values.items()}


def _stacked(columns: list[Floats], deepest: int) -> Floats:
    """Tables side by side: [rank or hit x metric]."""
    return np.stack(columns, axis=1) if columns else np.zeros((deepest + 1, 0))
