"""What ranked rows are worth, and the values of units: the one place where worth meets ties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from truerank.arrays import Floats, Ints, sums_by
from truerank.core import Additive, Listwise, Log, Metric, Ranks
from truerank.errors import InputError


class _AtCutoff(Protocol):
    name: ClassVar[str]

    @property
    def k(self) -> int | None: ...


def check_cutoff(metric: _AtCutoff) -> None:
    """Cut-offs are whole numbers from 1."""
    k = metric.k
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise InputError(f"{metric.name}@{k}: the cut-off is {k}; expected a whole number from 1.")


def cutoff(metric: _AtCutoff) -> int | None:
    """The deepest rank that counts."""
    return metric.k


def text_form(metric: _AtCutoff) -> str:
    """The form that `metrics.parse` reads, such as Recall@50."""
    return metric.name if metric.k is None else f"{metric.name}@{metric.k}"


def expected_worth(metric: Additive, ranks: Ranks) -> Floats:
    """The worth of each row, averaged over the ranks it can have: above + 1 ... above + 1 + tied.

    From a table by rank, so that equal ranks are equal bits whatever the size of the array.
    """
    last = (ranks.above + ranks.tied)[np.isfinite(ranks.above)]
    deepest = int(min(last.max(initial=0) + 1, np.inf if metric.cutoff is None else metric.cutoff))
    single = np.append(metric.worth(np.arange(1.0, deepest + 1)), 0.0)
    worth = single[np.minimum(ranks.above, deepest).astype(np.int64)]
    shared = np.flatnonzero(ranks.tied > 0)
    if len(shared):
        running = np.concatenate([[0.0], np.cumsum(single[:-1])])
        first = np.minimum(ranks.above[shared], deepest).astype(np.int64)
        last = np.minimum(ranks.above[shared] + ranks.tied[shared] + 1, deepest).astype(np.int64)
        worth[shared] = (running[last] - running[first]) / (ranks.tied[shared] + 1)
    return worth


@dataclass(frozen=True, slots=True)
class Positives:
    """The relevant items of every unit with their ranks; `count` includes those that are never recommended."""

    unit: Ints
    ranks: Ranks
    count: Floats

    @classmethod
    def of(cls, log: Log, ranks: Ranks) -> Positives:
        rows = np.flatnonzero(log.label == 1)
        chosen = replace(ranks, above=ranks.above[rows], tied=ranks.tied[rows])
        unit = log.unit[rows]
        return cls(unit, chosen, np.bincount(unit, minlength=log.n_units).astype(np.float64))

    def sums(self, values: Floats) -> Floats:
        """Sums per unit, in the order of rows."""
        return sums_by(self.unit, values, n=len(self.count))

    def groups(self) -> TieGroups:
        """The relevant items of each unit that share a score, best first."""
        kept = np.flatnonzero(np.isfinite(self.ranks.above))
        unit, above, tied = self.unit[kept], self.ranks.above[kept], self.ranks.tied[kept]
        order = np.lexsort((above, unit))
        unit, above, tied = unit[order], above[order], tied[order]
        new_unit = np.append(True, np.diff(unit) != 0)[: len(unit)]
        new_group = new_unit | np.append(True, np.diff(above) != 0)[: len(unit)]
        first = np.flatnonzero(new_group)
        size = np.diff(np.append(first, len(unit))).astype(np.float64)
        seen = np.arange(len(unit)) - np.maximum.accumulate(np.where(new_unit, np.arange(len(unit)), 0))
        return TieGroups(
            unit[first], above[first], tied[first] + 1, size, seen[first].astype(np.float64), new_unit[first]
        )


@dataclass(frozen=True, slots=True)
class TieGroups:
    """Groups of candidates with one score that hold a relevant item.

    Of `size` candidates after `above` better ones, `positives` are relevant; `before` relevant items are better;
    `first` marks the best group of a unit. A size below the number of positives means that they share one rank.
    """

    unit: Ints
    above: Floats
    size: Floats
    positives: Floats
    before: Floats
    first: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def unit_values(metric: Metric, positives: Positives) -> Floats:
    """The value of every unit on full labels, NaN where it is undefined."""
    if isinstance(metric, Additive):
        total = positives.sums(expected_worth(metric, positives.ranks))
        if not metric.per_positive:
            return total
        return with_positives(positives, total / np.maximum(positives.count, 1.0))
    if isinstance(metric, Listwise):
        values: Floats = metric.values(positives)
        return values
    raise InputError(f"{metric} is neither additive nor listwise: it needs worth(rank) or values(positives).")


def with_positives(positives: Positives, values: Floats) -> Floats:
    """NaN for units without a relevant item."""
    return np.where(positives.count > 0, values, np.nan)
