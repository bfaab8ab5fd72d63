"""Intervals for interim analyses: a confidence sequence for a difference over users who arrive in random order.

With σ known, mean d ± z_t σ / √t covers the truth at all numbers of users t at once with probability 1 - α, where
z_t = √(2 (tρ² + 1) / (tρ²) · ln(√(tρ² + 1) / α)) (Robbins 1970; with an estimated σ asymptotically, Waudby-Smith and
others 2021). ρ is chosen so that the interval is narrowest about the `planned` number of users. Here z_t takes the
place of Student's t in the interval of a difference (`linearization`): it allows for the degrees of freedom of
the error and for skewness, because looking often finds the moments at which the spread happens to look small.
"""

from __future__ import annotations

import math

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.record import record
from truerank.core.values import Between0And1, Count, check
from truerank.inference.moments import ends

FIRST = 100  # users who tell the models apart, before whom there is no interval
UNSEEN = 0.25  # of the largest contribution that labels could make, which two users of opposite sign have besides

Number = float | Floats


@record
class ConfidenceSequence:
    """Intervals at any number of users, with an error of about `alpha` over all of them together.

    >>> sequence = ConfidenceSequence(planned=1000, alpha=0.05)
    >>> round(float(sequence.multiplier(1000.0) / 1.96), 2)
    1.55
    """

    planned: Count
    alpha: Between0And1 = 0.05

    def __post_init__(self) -> None:
        check(self, where="a confidence sequence")

    @property
    def precision(self) -> float:
        """ρ² = (-2 ln α + ln(1 - 2 ln α)) / planned."""
        both = -2 * math.log(self.alpha)
        return (both + math.log(1 + both)) / self.planned

    def multiplier(self, users: Number) -> Floats:
        """z_t: how many standard errors an interval reaches to each side, at so many users."""
        scaled = np.asarray(users, dtype=np.float64) * self.precision
        return np.sqrt(2 * (scaled + 1) / scaled * np.log(np.sqrt(scaled + 1) / self.alpha))

    def interval(
        self, value: Number, stderr: Number, df: Number, skewness: Number, users: Number
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Low and high of a difference: [value - se max(t, G(t)), value - se min(-t, G(-t))].

        >>> low, high = ConfidenceSequence(1000).interval(0.0, 1.0, 1e9, 0.0, 1000.0)
        >>> round(float(low), 3), round(float(high), 3)
        (-3.035, 3.035)
        """
        return ends(value, stderr, as_student(self.multiplier(users), df), skewness)


def as_student(z: Floats, df: Number) -> Floats:
    """The quantile of Student's t where the normal one is z (Cornish and Fisher): the tails are beyond all tables.

    >>> as_student(np.array([1.959964]), 20.0).round(3).tolist()
    [2.086]
    """
    return np.asarray(z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * np.asarray(df) ** 2))
