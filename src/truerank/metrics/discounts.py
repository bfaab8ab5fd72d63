"""What ranked rows earn, and the values of units: the one place where discounts meet ties."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.metric import Additive, BaseMetric, Listwise, Metric, OfLists
from truerank.core.options import Denominator, Gain
from truerank.core.ranking import Ranks
from truerank.core.record import record

DEEPEST = 1_000_000  # ranks over which the discounts of a list are summed


class GradedMetric(BaseMetric):
    """A metric with an option `gain`: what it makes of grades."""

    __slots__ = ()

    gain: Gain

    @property
    def graded(self) -> bool:
        return self.gain is not Gain.BINARY

    def gains(self, log: Log) -> Floats:
        return gains(log, self.gain)


class TopMetric(BaseMetric):
    """A metric that counts relevant items in the top K, wherever they are there."""

    __slots__ = ()

    k: int

    def rank_discount(self, rank: Floats) -> Floats:
        """1 in the top K, else 0.

        >>> from truerank.metrics.additive import Recall
        >>> Recall(2).rank_discount(np.array([1.0, 2.0, 3.0])).tolist()
        [1.0, 1.0, 0.0]
        """
        return (rank <= self.k).astype(np.float64)


def reward_of(metric: Metric, log: Log) -> str:
    """The name of the column that a metric reads."""
    return grade_column(log) if metric.graded else "label"


def relevant(log: Log) -> Bools:
    """The rows that count as relevant where no metric is meant: by label, or a grade above 0 where there is none."""
    return log.label == 1 if "label" in log.rewards else grades(log) > 0


def gains(log: Log, gain: Gain) -> Floats:
    """The gain of each row.

    >>> from truerank.core.ids import Ids
    >>> one = np.zeros(2, dtype=np.int64)
    >>> log = Log(Ids.of(one[:1]), Ids.of(np.arange(2)), one, np.arange(2), {"rating": np.array([0.0, 3.0])})
    >>> gains(log, Gain.LINEAR).tolist(), gains(log, Gain.EXPONENTIAL).tolist()
    ([0.0, 3.0], [0.0, 7.0])
    """
    if gain is Gain.BINARY:
        return log.label
    grade = grades(log)
    if gain is Gain.LINEAR:
        return grade
    if grade.max(initial=0.0) > 1000:
        raise InputError(
            f"{log.source}: the largest {grade_column(log)} is {grade.max():g}, too large for gains of 2^grade - 1; "
            "use gain=linear."
        )
    return np.exp2(grade) - 1.0


def grades(log: Log) -> Floats:
    """The grade of each row: the value as it was read, or the label where that is all there is."""
    name = grade_column(log)
    result = log.rewards[name]
    if result.min(initial=0.0) < 0:
        row = int(np.argmin(result))
        user, item = log.users.texts(log.user[[row]])[0], log.items.texts(log.item[[row]])[0]
        raise InputError(
            f"{log.source}: the {name} of user {user}, item {item} is {result[row]:g}; gains need grades of 0 or more. "
            "Shift the values, or use binary gains with a rule for what is positive."
        )
    return result


def grade_column(log: Log) -> str:
    """The name of the column that holds grades."""
    if not log.rewards:
        log.check_labels()
    names = [name for name in log.rewards if name != "label"] or ["label"]
    if len(names) > 1:
        raise InputError(f"{log.source}: several columns could be the grade ({', '.join(names)}); expected one.")
    return names[0]


@runtime_checkable
class Pairwise(Listwise, Protocol):
    """A metric of pairs of candidates: among a uniform sample of them it is unbiased for every unit that has it.

    `judged_only` says in words what its mean over those units estimates.
    """

    judged_only: ClassVar[str]


@record
class PairSums:
    """A ratio of sums over relevant items and over pairs of them, by unit.

    Numerator `single` + `pair`, denominator `known` + `below_single` + `below_pair`. From a uniform sample of the items
    of a unit each has an unbiased expansion: N / N-bar for sums over items, N (N - 1) / (N-bar (N-bar - 1)) over pairs.
    """

    single: Floats
    pair: Floats
    known: Floats
    below_single: Floats
    below_pair: Floats


@runtime_checkable
class OfPairs(Listwise, Protocol):
    """A metric of which numerator and denominator are sums over relevant items and over pairs of them.

    `pair_sums` gives both, and `pooled` says in words what the ratio of their totals is; `no_sums` why some settings
    have none, None where they have.
    """

    @property
    def no_sums(self) -> str | None: ...
    @property
    def pooled(self) -> str: ...
    def pair_sums(self, positives: Positives) -> PairSums: ...


def bounds_of(metric: Metric, *, n_items: float = np.inf) -> tuple[float, float]:
    """What a value lies between: 0 and 1, or the discount of a list of relevant items alone, which grades exceed."""
    if isinstance(metric, OfLists):
        return metric.bounds
    if not isinstance(metric, Additive) or metric.denominator is not Denominator.NOTHING:
        return 0.0, 1.0
    if metric.graded:
        return 0.0, np.inf
    if metric.cutoff is None:
        return 0.0, 1.0
    deepest = min(metric.cutoff, n_items)
    if deepest > DEEPEST:  # no list is so long, and the sum would be
        return 0.0, np.inf
    return 0.0, float(metric.rank_discount(np.arange(1.0, deepest + 1)).sum())


def expected_discount(metric: Additive, ranks: Ranks) -> Floats:
    """The discount of each row, averaged over the ranks it can have: above + 1 ... above + 1 + tied.

    From a table by rank, so that equal ranks are equal bits whatever the size of the array.
    """
    last = (ranks.above + ranks.tied)[np.isfinite(ranks.above)]
    deepest = int(min(last.max(initial=0) + 1, np.inf if metric.cutoff is None else metric.cutoff))
    single = np.append(metric.rank_discount(np.arange(1.0, deepest + 1)), 0.0)
    discount = single[np.minimum(ranks.above, deepest).astype(np.int64)]
    shared = np.flatnonzero(ranks.tied > 0)
    if len(shared):
        running = np.concatenate([[0.0], np.cumsum(single[:-1])])
        first = np.minimum(ranks.above[shared], deepest).astype(np.int64)
        last = np.minimum(ranks.above[shared] + ranks.tied[shared] + 1, deepest).astype(np.int64)
        discount[shared] = (running[last] - running[first]) / (ranks.tied[shared] + 1)
    return discount


@record
class Positives:
    """The relevant items of every unit, with what each adds and their ranks.

    `count`, the number of relevant items of each unit, includes those that are never recommended.
    """

    unit: Ints
    gain: Floats
    ranks: Ranks
    count: Floats

    @classmethod
    def of(cls, log: Log, ranks: Ranks, *, gain: Floats) -> Positives:
        """The rows that add something."""
        unit = log.unit
        if not (gain > 0).all():
            rows = np.flatnonzero(gain > 0)
            ranks = replace(ranks, above=ranks.above[rows], tied=ranks.tied[rows])
            unit, gain = unit[rows], gain[rows]
        return cls(unit, gain, ranks, np.bincount(unit, minlength=log.n_units).astype(np.float64))

    def sums(self, values: Floats) -> Floats:
        """Sums per unit, in the order of rows."""
        return sums_by(self.unit, values, n=len(self.count))

    def best_first(self) -> tuple[Ints, Floats]:
        """The items of each unit in falling order of gain, and the place of each from 0."""
        order = np.lexsort((-self.gain, self.unit))
        start = np.cumsum(self.count) - self.count
        return order, np.arange(len(order)) - start[self.unit[order]]

    def groups(self) -> TieGroups:
        """The relevant items of each unit that share a score, best first."""
        kept = np.flatnonzero(np.isfinite(self.ranks.above))
        kept = kept[np.lexsort((self.ranks.above[kept], self.unit[kept]))]
        unit, above, tied = self.unit[kept], self.ranks.above[kept], self.ranks.tied[kept]
        new_unit = np.append(True, np.diff(unit) != 0)[: len(unit)]
        new_group = new_unit | np.append(True, np.diff(above) != 0)[: len(unit)]
        first = np.flatnonzero(new_group)
        size = np.diff(np.append(first, len(unit))).astype(np.float64)
        seen = np.arange(len(unit)) - np.maximum.accumulate(np.where(new_unit, np.arange(len(unit)), 0))
        return TieGroups(
            unit[first],
            above[first],
            tied[first] + 1,
            size,
            seen[first].astype(np.float64),
            new_unit[first],
            np.append(first, len(unit)),
            self.gain[kept],
        )


@record
class TieGroups:
    """Groups of candidates with one score that hold a relevant item.

    Of `size` candidates after `above` better ones, `positives` are relevant; `before` relevant items are better;
    `first` marks the best group of a unit. A size below the number of positives means that they share one rank. The
    relevant items of group i add `gain[start[i]:start[i + 1]]`.
    """

    unit: Ints
    above: Floats
    size: Floats
    positives: Floats
    before: Floats
    first: Bools
    start: Ints
    gain: Floats

    @property
    def share_one_rank(self) -> Bools:
        """Whether the relevant items of a group all stand at above + 1: a single candidate, or the strict rule."""
        return np.asarray(self.size == 1)


def unit_values(metric: Metric, log: Log, ranks: Ranks) -> Floats:
    """The value of every unit on full labels, NaN where it is undefined."""
    positives = Positives.of(log, ranks, gain=metric.gains(log))
    if isinstance(metric, Additive):
        total = positives.sums(positives.gain * expected_discount(metric, positives.ranks))
        return total / divisor(metric.denominator, metric.cutoff, positives)
    if isinstance(metric, Listwise):
        return metric.values(positives)
    raise InputError(f"{metric} is neither additive nor listwise: it needs rank_discount(rank) or values(positives).")


def divisor(denominator: Denominator, k: int | None, positives: Positives) -> Floats:
    """What the sum of each unit is divided by, NaN where that would be nothing."""
    if not denominator.needs_every_label:
        return known_divisor(denominator, k, positives.ranks)
    count = positives.count
    if denominator is Denominator.SMALLER and k is not None:
        count = np.minimum(count, k)
    return with_positives(positives, count)


def known_divisor(denominator: Denominator, k: int | None, ranks: Ranks) -> Floats:
    """The same where it does not depend on labels."""
    if denominator is Denominator.NOTHING or k is None:
        return np.ones(len(ranks.scored))
    if denominator is Denominator.CUTOFF:
        return np.full(len(ranks.scored), float(k))
    length = np.minimum(ranks.n_recommended, k)
    return np.where(length > 0, length, np.nan)


def with_positives(positives: Positives, values: Floats) -> Floats:
    """NaN for units without a relevant item."""
    return np.where(positives.count > 0, values, np.nan)
