"""Resamples of users and repetitions, keyed so that any division in blocks gives the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.chance import generator
from truerank.core.ids import Keys
from truerank.uncertainty.resampling import weights_of


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many resamples, of which level intervals are, and the chance behind them."""

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0

    def of_users(self, key: Keys) -> Floats:
        """How often each user counts, [1 + resamples x users]; row 0 is the data itself.

        >>> Resampling(3).of_users(np.arange(4, dtype=np.uint64))[0].tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        return self._poisson("resample users", key)

    def of_groups(self, n: int) -> Floats:
        """How often each of n groups of users counts."""
        return self._poisson("resample groups of users", np.arange(n, dtype=np.uint64))

    def of_repetitions(self, n: int) -> Floats:
        """How often each of n repetitions counts; once each where there is only one."""
        drawn = np.ones((self.resamples + 1, n))
        if n > 1:
            drawn[1:] = generator(self.seed, "resample repetitions").multinomial(n, [1 / n] * n, size=self.resamples)
        return drawn

    def _poisson(self, purpose: str, key: Keys) -> Floats:
        number = np.arange(1, self.resamples + 1, dtype=np.uint64)
        drawn = weights_of(key, number, seed=self.seed, purpose=purpose)
        return np.concatenate([np.ones((1, len(key))), drawn])


def quantiles(values: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentiles of each column, leaving out resamples in which nothing was defined."""
    asked = [(1 - level) / 2, (1 + level) / 2]
    known = ~np.isnan(values)
    found = np.full((2, values.shape[1]), np.nan)
    whole = known.all(axis=0)
    if whole.any():
        found[:, whole] = np.quantile(values[:, whole], asked, axis=0)
    for at in np.flatnonzero(~whole & (known.sum(axis=0) > 1)):
        found[:, at] = np.quantile(values[known[:, at], at], asked)
    return found[0], found[1]
