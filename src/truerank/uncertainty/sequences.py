"""Intervals that hold at every look: a confidence sequence for a mean of users who arrive one after the other.

With d the paired contribution of a user and t users so far, mean d ± σ √(2 (tρ² + 1) / (t²ρ²) · ln(√(tρ² + 1) / α))
holds for all t at once with probability about 1 - α (Robbins 1970; for estimated σ asymptotically, Waudby-Smith and
others 2021). ρ is chosen so that the interval is narrowest about the `planned` number of users, and holds at any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError

FIRST = 30  # users who tell the models apart, from which the sequence is known to hold


@dataclass(frozen=True, slots=True)
class ConfidenceSequence:
    """Half-widths of an interval that holds at every look, with an error of `alpha` over all of them together.

    >>> sequence = ConfidenceSequence(planned=1000, alpha=0.05)
    >>> round(float(sequence.half_width(1.0, np.array([1000.0]))[0] / (1.96 / math.sqrt(1000))), 2)
    1.55
    """

    planned: int
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if self.planned < 1:
            raise InputError(f"{self.planned} users are planned; expected a whole number from 1.")
        if not 0 < self.alpha < 1:
            raise InputError(f"an error of {self.alpha:g}; expected a number between 0 and 1.")

    @property
    def precision(self) -> float:
        """ρ² = (-2 ln α + ln(1 - 2 ln α)) / planned."""
        both = -2 * math.log(self.alpha)
        return (both + math.log(1 + both)) / self.planned

    def half_width(self, sd: float | Floats, t: Floats) -> Floats:
        """At t users whose contributions have that standard deviation."""
        grown = t * self.precision + 1
        return np.asarray(sd * np.sqrt(2 * grown / (t**2 * self.precision) * np.log(np.sqrt(grown) / self.alpha)))


@dataclass(frozen=True, slots=True, eq=False)
class RunningMean:
    """The mean of the first t of numbers that arrive in order, their standard deviation, and how many are not 0.

    >>> found = RunningMean.of(np.array([1.0, 0.0, 2.0]))
    >>> found.mean.tolist(), found.informative.tolist()
    ([1.0, 0.5, 1.0], [1, 1, 2])
    """

    mean: Floats
    sd: Floats
    informative: np.ndarray

    @classmethod
    def of(cls, values: Floats) -> RunningMean:
        """Along the last axis: one run, or several at once."""
        t = np.arange(1, values.shape[-1] + 1)
        centre = values.mean(axis=-1, keepdims=True)  # sums of squares around it lose no digits
        total, squares = (np.cumsum((values - centre) ** power, axis=-1) for power in (1, 2))
        variance = np.maximum(squares - total**2 / t, 0.0) / np.maximum(t - 1, 1)
        return cls(centre + total / t, np.sqrt(variance), np.cumsum(values != 0, axis=-1))

    def interval(self, sequence: ConfidenceSequence) -> tuple[Floats, Floats]:
        """Low and high at every t; NaN before enough users tell the models apart."""
        t = np.arange(1.0, self.mean.shape[-1] + 1)
        half = np.where((self.informative >= FIRST) & (self.sd > 0), sequence.half_width(self.sd, t), math.nan)
        return self.mean - half, self.mean + half
