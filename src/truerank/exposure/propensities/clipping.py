"""Propensities from below: none smaller than a stated value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats
from truerank.core import Log
from truerank.errors import InputError
from truerank.exposure.propensities import Fitted


@dataclass(frozen=True, slots=True)
class Clipped:
    """max(p, low): no row weighs more than 1 / low. Trades a bias, where p < low, for less variance.

    >>> from truerank.exposure.propensities.given import GivenValues
    >>> clipped(GivenValues("propensity", np.array([0.001, 0.5])), 0.05).value.tolist()
    [0.05, 0.5]
    """

    inner: Fitted
    low: float

    @property
    def description(self) -> str:
        n = int(np.count_nonzero(self.inner.value < self.low))
        return f"{self.inner.description}; clipped from below at {self.low:g} ({n:,} rows)"

    @property
    def fitted(self) -> bool:
        return self.inner.fitted

    @property
    def value(self) -> Floats:
        return np.maximum(self.inner.value, self.low)

    def under(self, weight: Floats) -> Floats:
        return np.maximum(self.inner.under(weight), self.low)

    def at(self, cells: Log) -> Floats:
        return np.maximum(self.inner.at(cells), self.low)


def clipped(fitted: Fitted, low: float | None) -> Fitted:
    """The same propensities, none below `low`; None clips nothing."""
    if low is None:
        return fitted
    if not 0 < low <= 1:
        raise InputError(f"propensities clipped at {low:g}; expected a probability in (0, 1].")
    return Clipped(fitted, low)
