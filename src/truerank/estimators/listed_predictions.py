"""Sums of predictions over lists; and whether labelled rows have the predictions of the pairs that they represent.

Labelled rows were drawn whatever is predicted of them, so Σ_S α w (ŷ - m) is 0 but for sampling error, m = Σ w ŷ / Σ w
over all places with a prediction. A judge that repeats the labels, or was fitted on them, says something else of
labelled rows than of the others, and then a slope on ŷ corrects nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.errors import RefusedError
from truerank.core.estimator import Learner, ObservedUnits, Request
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Additive
from truerank.core.options import Denominator
from truerank.core.ranking import Candidates, Pool, Ranks, RankView, Scores
from truerank.core.record import record
from truerank.core.wording import option
from truerank.estimators.predictions import Assistance, GainModel, Predicted, Prediction
from truerank.estimators.refusals import additive
from truerank.estimators.rows import per_unit, total_discount
from truerank.metrics.discounts import expected_discount, known_divisor
from truerank.ranking.kernel.rank import rank

CELLS_AT_ONCE = 2**21
FAR = 4.0  # standard errors
NEARLY_ALL = 0.8  # of the pairs with a prediction, that labelled rows must represent to be compared with all of them
ENOUGH_EQUAL = 10  # labelled rows of either label, all of which have their label as prediction
ROUNDING = 1e-9


@record
class PredictedLists:
    """Of each labelled row what is predicted; and what is predicted of lists, and of all candidates (w = 1).

    Of units [6 x units]: Σ w over places; Σ w and Σ w ŷ over those with a prediction, and Σ w², Σ w² ŷ and Σ w² ŷ² over
    these. w is divided as the metric is.
    """

    at_rows: Floats
    inside: Floats
    candidates: Floats

    @property
    def outside(self) -> Floats:
        """The first three sums of what is beside lists, where these are not divided."""
        return self.candidates[:3] - self.inside[:3]


def predicted_lists(
    name: str, prediction: Prediction | GainModel, learner: Callable[[Request], Learner | None], units: ObservedUnits
) -> dict[Request, PredictedLists]:
    """What is predicted of the lists of each question by what its learner has fitted, made once for all who ask.

    Every list is ranked once for all of them.
    """
    view, learned, chunk = units.view, units.learned, units.chunk
    log, candidates = units.log, chunk.pools[Pool.CATALOGUE]
    if view.scores is None:
        raise RefusedError(f"{name} needs the scores of whole lists, not only the ranks of labelled items.")
    if candidates.only is None and candidates.n_items != len(log.items):
        raise RefusedError(
            f"{name} predicts the label of every candidate, but not all items are known by name. "
            f"Give the catalogue with {option('items FILE')}."
        )
    keys = {request: (prediction, additive(request.metric), learner(request)) for request in units.requests}
    new = [key for key in dict.fromkeys(keys.values()) if key not in view.listed]
    predicted = {
        fitted: prediction.predicted(chunk, None if fitted is None else learned[fitted])
        for fitted in dict.fromkeys(fitted for _, _, fitted in new)
    }
    inside = {key: np.zeros((5, log.n_units)) for key in new}
    every = {fitted: np.zeros((5, log.n_units)) for fitted in predicted}
    for rows, unit, item, ranks in ranked_lists(view.scores, view, log=log, candidates=candidates) if new else ():
        values = {fitted: block(rows)[unit, item] for fitted, block in predicted.items()}
        for fitted, sums in every.items():
            sums[:, rows] = _sums_of_lists(unit, np.ones(len(unit)), values[fitted], len(rows))
        for key, sums in inside.items():
            sums[:, rows] = _sums_of_lists(unit, expected_discount(key[1], ranks), values[key[2]], len(rows))
    of_rows = {fitted: at_rows(block, log) for fitted, block in predicted.items()}
    for key in new:
        _, metric, fitted = key
        divisor, total = known_or_one(metric, view.ranks), total_discount(metric, view.ranks)
        lists = np.stack([total / divisor, *(inside[key][:2] / divisor), *(inside[key][2:] / divisor**2)])
        all_items = np.stack([view.ranks.n_candidates, *every[fitted]])
        view.listed[key] = PredictedLists(of_rows[fitted], lists, all_items)
    return {request: view.listed[key] for request, key in keys.items()}


def _sums_of_lists(unit: Ints, discount: Floats, predicted: Floats, n: int) -> list[Floats]:
    """Of a block of units: what each of their candidates earns, and what is predicted of it."""
    rows = np.flatnonzero((discount > 0) & ~np.isnan(predicted))
    unit, discount, predicted = unit[rows], discount[rows], predicted[rows]
    square = discount * discount
    columns = (discount, discount * predicted, square, square * predicted, square * predicted * predicted)
    return [sums_by(unit, values, n=n) for values in columns]


def at_rows(predicted: Predicted, log: Log) -> Floats:
    """The prediction of each row of a log."""
    predictions = np.empty(len(log))
    order = np.argsort(log.unit, kind="stable")
    start = np.searchsorted(log.unit[order], np.arange(log.n_units + 1))
    for units in _blocks(log.n_units, len(log.items)):
        rows = order[start[units[0]] : start[units[-1] + 1]]
        predictions[rows] = predicted(units)[log.unit[rows] - units[0], log.item[rows]]
    return predictions


def ranked_lists(
    scores: Scores, view: RankView, *, log: Log, candidates: Candidates
) -> Iterator[tuple[Ints, Ints, Ints, Ranks]]:
    """Blocks of units with all their candidates: the units, and of each candidate its place in the block, its item and
    its rank."""
    for units in _blocks(log.n_units, len(log.items)):
        mask = np.full((len(units), len(log.items)), candidates.only is None)
        for pairs, value in ((candidates.only, True), (candidates.exclude, False)):
            if pairs is not None:
                for place, unit in enumerate(units.tolist()):
                    mask[place, pairs.of_unit(unit)] = value
        unit, item = np.nonzero(mask)
        part = replace(
            log,
            users=Ids(log.users.values[int(units[0]) : int(units[-1]) + 1]),
            unit=unit,
            item=item,
            rewards={"label": np.zeros(len(unit))},
            propensity=None,
            position=None,
            session=None,
            time=None,
            inclusion=None,
        )
        pool = Candidates(len(units), candidates.n_items, only=Pairs.of(unit, item, n_units=len(units)))
        (ranks,) = rank(scores, part, pools=[pool], ties=view.ties, seed=view.seed, threads=1, name=view.name)
        yield units, unit, item, ranks


def known_or_one(metric: Additive, ranks: Ranks) -> Floats:
    """What sums are divided by; the number of relevant items is no constant but the other half of a ratio."""
    if metric.denominator is Denominator.POSITIVES:
        return np.ones(len(ranks.scored))
    divisor = known_divisor(metric.denominator, metric.cutoff, ranks)
    return np.where(np.isnan(divisor), 1.0, divisor)


def _blocks(n_units: int, n_items: int) -> Iterator[Ints]:
    size = max(1, CELLS_AT_ONCE // max(1, n_items))
    for start in range(0, n_units, size):
        yield np.arange(start, min(start + size, n_units))


# -------------------------------------------------------------------------------------------------------------- balance


@record
class StratumBalance:
    """Sums over units, of the places of lists or of all their candidates; those of other units add.

    In this order: Σ w, Σ w ŷ, Σ w², Σ w² ŷ and Σ w² ŷ² over places with a prediction; the sums over units of squares
    and products of what labelled rows have more of Σ w and Σ w ŷ than places; and Σ_S α w, Σ_S α w ŷ, Σ_S α w² and
    Σ_S α (α - 1) w² over labelled rows.
    """

    sums: Floats

    @classmethod
    def of(
        cls, log: Log, discount: Floats, predicted: Floats, lists: Floats, *, weight: Floats, used: Bools
    ) -> StratumBalance:
        """Of labelled rows with these discounts, predictions and weights, and the lists of the `used` units."""
        covered = ~np.isnan(predicted) & used[log.unit]
        weights = np.where(covered, weight * discount, 0.0)
        foreseen = weights * np.where(covered, predicted, 0.0)
        more = per_unit(log, weights) - lists[1], per_unit(log, foreseen) - lists[2]
        of_units = *lists[1:], more[0] ** 2, more[0] * more[1], more[1] ** 2
        of_rows = weights, foreseen, weights * discount, (weight - 1.0) * weights * discount
        return cls(np.array([*(column[used].sum() for column in of_units), *(column.sum() for column in of_rows)]))

    def __add__(self, more: StratumBalance) -> StratumBalance:
        return StratumBalance(self.sums + more.sums)

    @property
    def mean(self) -> float:
        """The mean prediction of places."""
        return float(self.sums[1] / self.sums[0]) if self.sums[0] > 0 else math.nan

    @property
    def sampled_mean(self) -> float:
        """The mean prediction of labelled rows, as they represent places."""
        return float(self.sums[9] / self.sums[8]) if self.sums[8] > 0 else math.nan

    @property
    def represents_all(self) -> bool:
        """Whether labelled rows represent about as many pairs as have a prediction."""
        return bool(NEARLY_ALL * self.sums[0] <= self.sums[8] <= self.sums[0] / NEARLY_ALL)

    @property
    def z(self) -> float:
        """How many standard errors the predictions of labelled rows are from those of places; NaN without any.

        The larger of two variances: that of independent draws from all places, by the mean of 1 / π - 1, as labelled
        rows may have no extreme prediction by chance; and what units show, as rows may be drawn together.
        """
        places, _, *squares, sampled, foreseen, weights, expanded = self.sums.tolist()
        if not (places > 0 and weights > 0):
            return math.nan
        m = self.mean
        excess = foreseen - m * sampled
        around = np.reshape(squares, (2, 3)) @ (m * m, -2 * m, 1.0)
        variance = max(float(around[0]) * (expanded / weights), float(around[1]))
        if abs(excess) <= ROUNDING * (abs(foreseen) + abs(m * sampled)):
            return 0.0
        return excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess)


def counted_equal(gain: Floats, predicted: Floats) -> Ints:
    """
    >>> counted_equal(np.array([1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.5, np.nan])).tolist()
    [1, 2, 1]
    """
    covered = ~np.isnan(predicted)
    kinds = ((gain > 0) & covered, (gain == 0) & covered, (gain != predicted) & covered)
    return np.array([np.count_nonzero(rows) for rows in kinds])


@record
class PredictionBalance:
    """The balance of what assists a metric: of its lists, and of all candidates where labelled rows represent these.

    `labelled` counts the labelled rows with a prediction: those with a gain, those without, and those whose prediction
    is another number than their gain.
    """

    kind: Assistance
    metric: Additive
    lists: StratumBalance
    candidates: StratumBalance
    labelled: Ints

    def __add__(self, more: PredictionBalance) -> PredictionBalance:
        strata = self.lists + more.lists, self.candidates + more.candidates
        return PredictionBalance(self.kind, self.metric, *strata, self.labelled + more.labelled)

    @property
    def repeats_labels(self) -> bool:
        """Whether every labelled row has its own gain as prediction, and rows of both kinds are many enough to tell."""
        hits, others, different = self.labelled.tolist()
        return bool(different == 0 and min(hits, others) >= ENOUGH_EQUAL)

    @property
    def worst(self) -> StratumBalance:
        """What is furthest off."""
        strata = [self.lists, *([self.candidates] if self.candidates.represents_all else [])]
        return max(strata, key=lambda part: -1.0 if math.isnan(part.z) else abs(part.z))

    @property
    def failed(self) -> bool:
        return abs(self.worst.z) > FAR
