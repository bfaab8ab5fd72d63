"""Values of many metrics at once: a metric enters as tables made from itself, so that none is written twice.

Without ties most metrics are Σ_j rank_table[r_j] · hit_table[j] / divisor(n) over a unit's relevant items, the j-th
from the top at rank r_j, n of them in all. One walk over the relevant items then serves all metrics and cut-offs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.core import Additive, Log, Metric, Ranks
from truerank.metrics.gains import Graded
from truerank.metrics.worth import Positives, divisor, unit_values
from truerank.options import Denominator

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
    tabular = [each for each in metrics if isinstance(each, Walked | Additive) and _is_tabular(each)]
    wanted = len(log) >= WORTH_IT and find_spec("numba") is not None if fast is None else fast
    if not tabular or not wanted:
        return {each: unit_values(each, log, ranks) for each in metrics}
    found = _walk(tabular, log, ranks)
    return {each: found[each] if each in found else unit_values(each, log, ranks) for each in metrics}


def _is_tabular(metric: Walked | Additive) -> bool:
    if isinstance(metric, Graded) and metric.graded:
        return False
    return isinstance(metric, Walked) or metric.denominator is not Denominator.LIST


def _walk(metrics: Sequence[Walked | Additive], log: Log, ranks: Ranks) -> dict[Metric, Floats]:
    from truerank.ranks.fast_tables import sum_tables

    positives = Positives.of(log, ranks, gain=log.label)
    above, tied = positives.ranks.above, positives.ranks.tied
    last = int((above + tied)[np.isfinite(above)].max(initial=0)) + 1
    deepest = max(last if each.cutoff is None else min(each.cutoff, last) for each in metrics)
    rank, hit = np.arange(deepest + 1.0), np.arange(deepest + 1.0)
    rank[0] = 1.0  # no rank is 0; its entry is never read
    # where the number of the hit is of no matter the order is free, and rows are added up as they come
    walks = [each for each in metrics if isinstance(each, Walked) and (each.by_hit(hit) != 1).any()]
    sums = [each for each in metrics if each not in walks]
    total, walked = np.zeros((log.n_units, len(sums))), np.zeros((log.n_units, len(walks)))
    shared = np.zeros(log.n_units, dtype=bool)
    start = np.concatenate([[0], np.cumsum(positives.count)]).astype(np.int64)
    sum_tables(
        start, above, tied, deepest,
        _table([each.worth(rank) if isinstance(each, Additive) else each.by_rank(rank) for each in sums], deepest),
        _table([each.by_rank(rank) for each in walks], deepest),
        _table([each.by_hit(hit) for each in walks], deepest),
        total, walked, shared,
    )  # fmt: skip
    found: dict[Metric, Floats] = {each: total[:, at] / _divide(each, positives) for at, each in enumerate(sums)}
    found |= {each: walked[:, at] / _divide(each, positives) for at, each in enumerate(walks)}
    return _with_ties(found, log, ranks, np.flatnonzero(shared)) if shared.any() else found


def _divide(metric: Walked | Additive, positives: Positives) -> Floats:
    if isinstance(metric, Walked):
        return metric.divide(positives)
    return divisor(metric.denominator, metric.cutoff, positives)


def _with_ties(found: dict[Metric, Floats], log: Log, ranks: Ranks, units: Ints) -> dict[Metric, Floats]:
    """The values of units with ties, which need more than one rank per item, by the closed forms."""
    tied = np.zeros(log.n_units, dtype=bool)
    tied[units] = True
    rows = np.flatnonzero(tied[log.unit])
    part = replace(ranks, above=ranks.above[rows], tied=ranks.tied[rows])
    few = log.select(rows)
    return {each: np.where(tied, unit_values(each, few, part), values) for each, values in found.items()}


def _table(columns: list[Floats], deepest: int) -> Floats:
    return np.column_stack(columns) if columns else np.zeros((deepest + 1, 0))
