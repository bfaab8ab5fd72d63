"""Estimators of impressions, and their sums under position models that were fitted without each group of clusters.

A row's weight depends on the model only through the places where the target and the log put its item. So rewards are
counted once by (group, target's place, logged place), and the sums under every model and clip follow from the counts.
Where a policy is given by exposures, or mixes several loggers, terms are made anew under every model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.estimator import Estimator, Learned, ObservedUnits, Request
from truerank.core.ids import Keys
from truerank.core.record import record
from truerank.core.rows import Column
from truerank.core.terms import Smooth, Terms, Totals
from truerank.estimators.impressions import Counted, Exposures, Limited, Normaliser, Refits, blocks, limited_by
from truerank.exposure.policies import Policy, Rows, WholeList, tables_of
from truerank.exposure.positions.position_models import Positions

MOST_CELLS = 2**22  # counts that are looked up, not sorted


FIVE = (
    "rewards in one session do not depend on other sessions",
    "views depend on the position alone (position-based model)",
    "the reward of an item does not depend on the other items shown",
    "a reward needs a view and else depends on user and item alone (examination hypothesis)",
    "whatever the target would show, the logging policy shows with some probability (support)",
)
CHOSEN = (
    "rewards in one impression do not depend on other impressions",
    "the logged propensities are the true probabilities that the item was chosen",
    "whatever the target would choose, the logging policy chooses with some probability (support)",
)


class RankedEstimator(Estimator):
    """How logged sessions represent those of another policy; a new one writes `metric` and `make`.

    `clip` is where its weights are cut; None where the question says. `columns` of the log are those that it reads
    beside those of every log.
    """

    __slots__ = ()

    clip: float | None

    @property
    def metric(self) -> Counted:
        """What it counts, and what it assumes beside what every estimator of a log does."""
        return Normaliser.SESSION.counted

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        """The terms of one reward for each clip."""
        raise NotImplementedError

    def counted_columns(self) -> Sequence[Column]:
        """The columns of its form, where their totals under other position models follow from counts of places."""
        return ()

    def term(self, units: ObservedUnits, request: Request) -> Terms:
        """The terms of one question, found at once for all clips of a metric or reward."""
        counted, limit = (request.metric, request.reward), getattr(self, "clip", None)
        requests = [other for other in units.requests if (other.metric, other.reward) == counted]
        clips = np.array([other.clip if limit is None else limit for other in requests])
        terms = units.once(counted, lambda: self.make(self.observed(units, request), counted[1], clips, units.learned))
        return terms[requests.index(request)]

    def observed(self, units: ObservedUnits, request: Request) -> Any:
        """The rows of a question, as the estimator's weights need them."""
        return units.view

    def totals_without(
        self, view: Exposures, requests: Sequence[Request], pattern: Keys
    ) -> list[dict[int, Totals]] | None:
        """From counts of places, where the weights of rows depend on these alone."""
        refits = view.refits
        if refits is None or not self.counted_columns() or not _by_places(view):
            return None
        columns, limits = self.counted_columns(), limited_by(self)
        without, defined = [dict[int, Totals]() for _ in requests], view.target.defined()
        for reward in dict.fromkeys(request.reward for request in requests):
            numbers = [number for number, request in enumerate(requests) if request.reward == reward]
            clips = np.array([requests[number].clip for number in numbers])
            for code in np.unique(pattern[defined]).tolist():
                units = defined & (pattern == code)
                parts = [
                    _outside(column, view, refits, units, reward=reward, clips=clips, limits=limits)
                    for column in columns
                ]
                for place, number in enumerate(numbers):
                    sums, rest = np.stack([part[:, :, place] for part in parts], axis=2)
                    without[number][code] = sums, rest
        return without


# ------------------------------------------------------------------------------------------------------------ by places


def _by_places(view: Exposures) -> bool:
    """Whether both policies put items at ranks that a position model views."""
    return all(
        policy.rank is not None and policy.positions is not None and policy.values is None
        for policy in (view.target, view.logging)
    )


@record(eq=False)
class PlaceCounts:
    """Σ of a value, and how many rows, by group and place: [groups x places]; `low` is what rounding lost in `high`."""

    place: Ints
    high: Floats
    low: Floats
    count: Floats

    @classmethod
    def of(
        cls,
        refits: Refits,
        unit: Ints,
        rows: Ints | None,
        *,
        width: int,
        code: Callable[[Any], Ints],
        value: Any = None,
    ) -> PlaceCounts:
        """Of rows whose place is below `width`; a value of None counts each row once."""
        from truerank.estimators.fast import add_cells

        n_groups = len(refits.positions)
        distinct, inverse = None, np.zeros(0, dtype=np.int64)
        if width * n_groups > MOST_CELLS:
            distinct, inverse = np.unique(code(slice(None) if rows is None else rows), return_inverse=True)
            width = len(distinct)
        sums = np.zeros((3, n_groups * width))
        start = 0
        for block in blocks(len(unit), rows):
            groups = refits.group[unit[block]]
            place = code(block) if distinct is None else inverse[start : start + len(groups)]
            start += len(groups)
            values = np.ones(len(groups)) if value is None else value[block].astype(np.float64)
            add_cells(groups * width + place, values, *sums)
        high, low, count = sums.reshape(3, n_groups, width)
        used = np.flatnonzero(count.any(axis=0))
        return cls(used if distinct is None else distinct[used], high[:, used], low[:, used], count[:, used])

    def totals(self, refits: Refits, weights: Callable[[Positions, Ints], Floats], n: int) -> Floats:
        """Σ value · weight over rows outside each group, by n weights of its model: [2 x groups x n], with the rest."""
        wide = (self.high.astype(np.longdouble) + self.low).sum(axis=0)
        rows = self.count.sum(axis=0)
        outside = np.full((2, len(refits.positions), n), np.nan)
        for group, positions in enumerate(refits.positions):
            if positions is not None:
                left = rows - self.count[group] > 0
                value = (wide - self.high[group] - self.low[group])[left]
                total = (weights(positions, self.place[left]) * value).sum(axis=1)
                outside[0, group] = total
                outside[1, group] = total - outside[0, group].astype(np.longdouble)
        return outside


def _outside(
    column: Column, view: Exposures, refits: Refits, units: Bools, *, reward: str, clips: Floats, limits: Limited
) -> Floats:
    """The totals of one column over these units outside each group, [2 x groups x clips], with what rounding left."""
    if column is Column.GAIN:
        return _weighted(
            view, refits, units, view.rewarded(reward), view.log.reward(reward), clips=clips, limits=limits
        )
    if column is Column.DISCOUNT:
        return _weighted(view, refits, units, view.viewed_rows(), None, clips=clips, limits=limits)
    target, whole = view.target, view.target.whole
    if column is Column.TOTAL and target.viewed is None and (whole is None or whole.rank is not None):
        totals = _listed(view, refits, units)
    else:
        value = np.where(units, view.unit_column(column), 0.0)
        by_group = np.bincount(refits.group, value, minlength=len(refits.positions))
        totals = np.zeros((2, len(by_group), 1))
        totals[0, :, 0] = by_group.sum() - by_group
    return np.repeat(totals, len(clips), axis=2)


def _weighted(
    view: Exposures, refits: Refits, units: Bools, rows: Ints | None, value: Any, *, clips: Floats, limits: Limited
) -> Floats:
    """Σ value · w of the given rows of these units."""
    log, last, width = view.log, _last(view.target.rank), _last(view.logging.rank)
    n_logged = (width + 1) * _n_rules(view.logging)

    def code(rows: Rows) -> Ints:
        return _place(view.target, rows, last) * n_logged + _place(view.logging, rows, width)

    def weights(positions: Positions, place: Ints) -> Floats:
        target = tables_of(positions, last).ravel()[place // n_logged]
        logged = tables_of(positions, width).ravel()[place % n_logged]
        inverse = np.divide(1.0, logged, out=np.zeros(len(logged)), where=logged > 0)
        return limits.weights(target, inverse, clips[:, None])

    if not units.all():
        every = np.arange(len(log)) if rows is None else rows
        rows = every[units[log.unit[every]]]
    n_places = (last + 1) * _n_rules(view.target) * n_logged
    return PlaceCounts.of(refits, log.unit, rows, width=n_places, code=code, value=value).totals(
        refits, weights, len(clips)
    )


def _listed(view: Exposures, refits: Refits, units: Bools) -> Floats:
    """Σ over these units of Σ_a ε(x, a)."""
    target, whole = view.target, view.target.whole
    if whole is None:
        place = np.zeros(0, dtype=np.int64) if target.places is None else target.places
        unit, last = np.arange(len(units)), _last(place)
        width = last + 1
    else:
        unit, last = whole.unit, _last(whole.rank)
        place, width = _place(whole, slice(None), last), (last + 1) * _n_rules(target)

    def exposures(positions: Positions, place: Ints) -> Floats:
        tables = tables_of(positions, last)
        return (np.cumsum(tables[0]) if whole is None else tables.ravel())[place][None]

    counts = PlaceCounts.of(refits, unit, np.flatnonzero(units[unit]), width=width, code=lambda rows: place[rows])
    return counts.totals(refits, exposures, 1)


def _last(rank: Any) -> int:
    return 0 if rank is None else int(rank.max(initial=0))


def _n_rules(policy: Policy) -> int:
    return 1 if policy.positions is None else len(policy.positions.rules)


def _place(policy: Policy | WholeList, rows: Rows, last: int) -> Ints:
    """The place of each row: the number of its position model and its rank."""
    rank: Any = policy.rank
    if policy.rule is None:
        return np.asarray(rank[rows], dtype=np.int64)
    return np.asarray(policy.rule[rows] * (last + 1) + rank[rows])
