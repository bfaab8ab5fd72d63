"""Several comparisons at once: one single-step adjustment for their p-values and their intervals.

A family of n comparisons has n correlated statistics. Let Z be multivariate normal, with the correlation of the
differences' influences. The adjusted p of a comparison is A(p) = P(max_j |Z_j| >= z(p)), z(p) the two-sided critical
value of p. The intervals of the family have level 1 - a with A(a) = 1 - level, so that an adjusted p is below 1 - level
exactly where the interval excludes 0, and all intervals cover together with probability `level`.

p and interval of every comparison keep their own Student's t and correction for skewness; Z only joins them. One t for
all, with the smallest degrees of freedom, would let two nearly equal models take the verdicts from all others; a joint
t with few of them has dependent tails that separate standard errors do not have. With many users all are the same. One
comparison is adjusted by nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from truerank.core import special
from truerank.core.arrays import Floats, smallest_that
from truerank.core.ids import Keys
from truerank.core.record import record
from truerank.core.rng import generator
from truerank.core.threads import one_blas_thread

MOST_COMPARISONS = 200  # beyond which Bonferroni's bound is taken
N_DIRECTIONS = 2**15  # for an error of adjusted p below .001
N_GROUPS = 256  # of directions with nearly the same largest statistic
CLUSTERS_AT_ONCE = 2**14
SMALLEST_EIGENVALUE = 1e-10  # of the largest
PURPOSE = "several comparisons"


@record
class ComparisonFamily:
    """Comparisons that are adjusted together: how many, and the distribution of the largest of their statistics.

    max_j |Z_j| = R max_j |B_j w|, with w a direction in `rank` dimensions and R² chi-squared. `largest` has
    max_j |B_j w| of many directions, as means of groups; None where the correlation is not available (Bonferroni).
    """

    n: int
    rank: int = 0
    largest: Floats | None = None

    @classmethod
    def correlated(cls, correlation: Floats) -> ComparisonFamily:
        """Comparisons with this correlation of their statistics."""
        n = len(correlation)
        with one_blas_thread():
            values, vectors = np.linalg.eigh(correlation)
            large = values > SMALLEST_EIGENVALUE * values[-1]
            loadings = vectors[:, large] * np.sqrt(values[large])
            loadings /= np.sqrt((loadings * loadings).sum(axis=1))[:, None]
            rank = loadings.shape[1]
            blocks = (part @ loadings.T for part in np.array_split(_directions(rank), 16))
            largest = np.concatenate([np.abs(part).max(axis=1) for part in blocks])
        return cls(n, rank, np.sort(largest).reshape(N_GROUPS, -1).mean(axis=1))

    def adjust(self, p: Floats) -> Floats:
        """A(p), between p and n p.

        >>> ComparisonFamily(3).adjust(np.array([0.01, 0.5])).tolist()
        [0.03, 1.0]
        >>> alike = ComparisonFamily.correlated(np.ones((3, 3)))
        >>> alike.adjust(np.array([0.01, 0.5])).round(12).tolist()
        [0.01, 0.5]
        """
        highest = np.minimum(1.0, self.n * p)
        if self.largest is None or self.n == 1:
            return highest
        radius = special.ndtri(p / 2.0)[:, None] / self.largest
        reached = special.chdtrc(self.rank, radius * radius).mean(axis=1)
        return np.asarray(np.clip(reached, p, highest))

    def level_alone(self, level: float) -> float:
        """The level of each interval at which all of them cover together with probability `level`.

        >>> round(ComparisonFamily(5).level_alone(0.95), 12), ComparisonFamily(1).level_alone(0.95)
        (0.99, 0.95)
        """
        if self.n <= 1:
            return level
        significance = round(1.0 - level, 12)
        low = significance / self.n
        if self.largest is None:
            return 1.0 - low
        return 1.0 - smallest_that(
            lambda p: bool(self.adjust(np.array([p]))[0] >= significance), low, significance, steps=60
        )


def correlation_of(pairs: Sequence[tuple[Floats, Floats]], key: Keys | None) -> Floats | None:
    """The correlation of differences, from the influences of clusters on the two values of each; None without spread.

    Clusters are summed over in the order of their keys, so that the order of rows changes no bit.
    """
    n_clusters = len(pairs[0][0])
    order = np.argsort(key, kind="stable") if key is not None and len(key) == n_clusters else np.arange(n_clusters)
    unit = np.array([np.abs(first - second).max(initial=0.0) for first, second in pairs])
    if not (np.isfinite(unit) & (unit > 0)).all():
        return None
    total = np.zeros((len(pairs), len(pairs)))
    with one_blas_thread():
        for start in range(0, n_clusters, CLUSTERS_AT_ONCE):
            block = order[start : start + CLUSTERS_AT_ONCE]
            effects = np.stack([first[block] - second[block] for first, second in pairs]) / unit[:, None]
            total += effects @ effects.T
    scale = np.sqrt(np.diag(total))
    return np.asarray(total / (scale[:, None] * scale))


@lru_cache(maxsize=2)
def _directions(rank: int) -> Floats:
    """Directions in `rank` dimensions by a lattice of square roots of primes with a keyed shift (Richtmyer)."""
    shift = generator(0, PURPOSE).random(rank)
    place = np.arange(1, N_DIRECTIONS + 1, dtype=np.float64)[:, None]
    uniform = (place * np.sqrt(_primes(rank)) + shift) % 1.0
    normal = special.ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))
    return np.asarray(normal / np.sqrt((normal * normal).sum(axis=1))[:, None])


def _primes(n: int) -> Floats:
    """
    >>> _primes(4).tolist()
    [2.0, 3.0, 5.0, 7.0]
    """
    candidates = np.arange(2, 20 + 15 * n)  # beyond the n-th prime up to n = 10^6
    for candidate in candidates[: math.isqrt(len(candidates))]:
        candidates = candidates[(candidates % candidate != 0) | (candidates <= candidate)]
    return candidates[:n].astype(np.float64)
