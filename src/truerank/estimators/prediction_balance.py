"""Whether labelled rows have the predictions of the pairs that they represent.

Labelled rows were drawn whatever is predicted of them, so Σ_S α w (ŷ - m) is 0 but for sampling error, m = Σ w ŷ / Σ w
over all places with a prediction. A judge that repeats the labels, or was fitted on them, says something else of
labelled rows than of the others, and then a slope on ŷ corrects nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.log import Log
from truerank.core.metric import Additive
from truerank.estimators.assistance import ListedPredictions
from truerank.estimators.predictions import Assistance
from truerank.estimators.rows import per_unit

FAR = 4.0  # standard errors
NEARLY_ALL = 0.8  # of the pairs with a prediction, that labelled rows must represent to be compared with all of them
ENOUGH_EQUAL = 10  # labelled rows of either label, all of which have their label as prediction
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class StratumBalance:
    """Sums over units, of the places of lists or of all their candidates; those of other units add.

    `places` are Σ w and Σ w ŷ over places with a prediction, `sampled` the same over labelled rows, each times α.
    `squares` are Σ w², Σ w² ŷ and Σ w² ŷ² over places; `more` the sums over units of squares and products of what
    labelled rows have more than places; `weights` are Σ_S α w² and Σ_S α (α - 1) w².
    """

    places: Floats
    sampled: Floats
    squares: Floats
    more: Floats
    weights: Floats

    @classmethod
    def of(
        cls, log: Log, worth: Floats, predicted: Floats, lists: ListedPredictions, *, weight: Floats, used: Bools
    ) -> StratumBalance:
        """Of labelled rows with these discounts, predictions and weights, and the lists of the `used` units."""
        known = ~np.isnan(predicted) & used[log.unit]
        one = np.where(known, weight * worth, 0.0)
        foreseen = one * np.where(known, predicted, 0.0)
        more = per_unit(log, one) - lists.sums[1], per_unit(log, foreseen) - lists.sums[2]
        square = one * worth
        return cls(
            _sums(*(each[used] for each in lists.sums[1:])),
            _sums(one, foreseen),
            _sums(*(each[used] for each in lists.squares)),
            _sums(*(each[used] for each in (more[0] ** 2, more[0] * more[1], more[1] ** 2))),
            _sums(square, (weight - 1.0) * square),
        )

    def __add__(self, other: StratumBalance) -> StratumBalance:
        return StratumBalance(
            self.places + other.places,
            self.sampled + other.sampled,
            self.squares + other.squares,
            self.more + other.more,
            self.weights + other.weights,
        )

    @property
    def mean(self) -> float:
        """The mean prediction of places."""
        return float(self.places[1] / self.places[0]) if self.places[0] > 0 else math.nan

    @property
    def sampled_mean(self) -> float:
        """The mean prediction of labelled rows, as they represent places."""
        return float(self.sampled[1] / self.sampled[0]) if self.sampled[0] > 0 else math.nan

    @property
    def represents_all(self) -> bool:
        """Whether labelled rows represent about as many pairs as have a prediction."""
        return bool(NEARLY_ALL * self.places[0] <= self.sampled[0] <= self.places[0] / NEARLY_ALL)

    @property
    def z(self) -> float:
        """How many standard errors the predictions of labelled rows are from those of places; NaN without any.

        The larger of two variances: that of independent draws from all places, by the mean of 1 / π - 1, as labelled
        rows may have no extreme prediction by chance; and what units show, as rows may be drawn together.
        """
        if not (self.places[0] > 0 and self.weights[0] > 0):
            return math.nan
        m = self.mean
        excess = float(self.sampled[1] - m * self.sampled[0])
        design = float(self.squares @ (m * m, -2 * m, 1.0)) * float(self.weights[1] / self.weights[0])
        variance = max(design, float(self.more @ (m * m, -2 * m, 1.0)))
        if abs(excess) <= ROUNDING * float(abs(self.sampled[1]) + abs(m * self.sampled[0])):
            return 0.0
        return excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess)


def counted_equal(gain: Floats, predicted: Floats) -> Ints:
    """
    >>> counted_equal(np.array([1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.5, np.nan])).tolist()
    [1, 2, 1]
    """
    known = ~np.isnan(predicted)
    kinds = ((gain > 0) & known, (gain == 0) & known, (gain != predicted) & known)
    return np.array([np.count_nonzero(each) for each in kinds])


def _sums(*columns: Floats) -> Floats:
    return np.array([column.sum() for column in columns])


@dataclass(frozen=True, slots=True)
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

    def __add__(self, other: PredictionBalance) -> PredictionBalance:
        return PredictionBalance(
            self.kind,
            self.metric,
            self.lists + other.lists,
            self.candidates + other.candidates,
            self.labelled + other.labelled,
        )

    @property
    def repeats_labels(self) -> bool:
        """Whether every labelled row has its own gain as prediction, and rows of both kinds are many enough to tell."""
        hits, others, different = self.labelled.tolist()
        return bool(different == 0 and min(hits, others) >= ENOUGH_EQUAL)

    @property
    def worst(self) -> StratumBalance:
        """What is furthest off."""
        strata = [self.lists, *([self.candidates] if self.candidates.represents_all else [])]
        return max(strata, key=lambda each: -1.0 if math.isnan(each.z) else abs(each.z))

    @property
    def failed(self) -> bool:
        return abs(self.worst.z) > FAR
