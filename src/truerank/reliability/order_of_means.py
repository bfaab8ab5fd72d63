"""The order of the models' means over users: how well it agrees with the true one, and what more users would change.

A user's values are not kept; they are added up in random groups of users (each its own group where there are few). A
resample counts each group a Poisson number of times. All sums are whole numbers below 2^53, so they are exact and the
same bits in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import ceil, log2

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_keys, generator
from truerank.core.ids import Keys
from truerank.inference.intervals import weights_of
from truerank.reliability.scenarios import TAUS, reference, tau_b

GROUPS = 128  # their sums say how means vary between draws of users, give or take 1 / sqrt(2 * 128) = 6 %
LEAST_GROUPS = 2  # one user says nothing about others
COUNTS = ("ties", *TAUS)


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


def grouped(units: Ints, key: Keys, *, seed: int) -> tuple[Ints, Ints]:
    """Users in random order by (seed, user), and the group of each: equal sizes, give or take one.

    >>> units, group = grouped(np.arange(300), np.arange(300, dtype=np.uint64), seed=0)
    >>> int(group[-1]) + 1, sorted(set(np.bincount(group).tolist())), sorted(units.tolist()) == list(range(300))
    (128, [2, 3], True)
    """
    n = len(units)
    place = np.argsort(cell_keys(seed, "groups of users", key, np.zeros(n, dtype=np.uint64)), kind="stable")
    return units[place], np.arange(n) * min(GROUPS, n) // max(n, 1)


@dataclass(frozen=True, slots=True)
class GroupSums:
    """Sums of values [groups x sparsities x candidates x models] of one metric, and how many users each group has."""

    sums: Ints
    users: Ints

    def coarse(self, shift: int) -> Floats:
        """The sums in units of 2^shift, flat for each group."""
        return np.rint(self.sums.reshape(len(self.sums), -1) / 2.0**shift)


@dataclass(frozen=True)
class OrderOfMeans:
    """What one logger and one metric say, from the sums of every repetition."""

    repetitions: tuple[GroupSums, ...]
    resampling: Resampling
    scale: float  # sums are in units of 1 / scale

    @property
    def shape(self) -> tuple[int, int, int]:
        n_sparsities, n_candidates, n_models = self.repetitions[0].sums.shape[1:]
        return n_sparsities, n_candidates, n_models

    @cached_property
    def _taus(self) -> dict[str, dict[str, Floats]]:
        n_sparsities, n_candidates, n_models = self.shape
        n_scenarios, n_pairs = n_sparsities * n_candidates, n_models * (n_models - 1) // 2
        weight = self.resampling.of_groups(len(self.repetitions[0].users))
        of_repetition = self.resampling.of_repetitions(len(self.repetitions))
        shape = (len(TAUS), len(weight), n_scenarios)
        total, known = np.zeros(shape), np.zeros(shape)
        points = np.empty((len(self.repetitions), len(TAUS), n_scenarios))
        for at, each in enumerate(self.repetitions):
            count = self._counts(each, weight)
            ties = count[..., 0]
            for q, question in enumerate(TAUS):
                other = reference(question, ties)
                tau, defined = tau_b(count[..., 1 + q], ties, other, n_pairs=n_pairs)
                tau, defined = tau.reshape(len(weight), -1), defined.reshape(len(weight), -1)
                points[at, q] = tau[0]
                total[q] += of_repetition[:, at, None] * np.where(defined, tau, 0.0)
                known[q] += of_repetition[:, at, None] * defined
        with np.errstate(invalid="ignore"):
            mean = total / known  # NaN where all models tie in every repetition
            spread = points.std(axis=0, ddof=1) if len(points) > 1 else np.full(points.shape[1:], np.nan)
        found = {}
        for q, question in enumerate(TAUS):
            low, high = quantiles(mean[q, 1:], self.resampling.level)
            if max(int((each.users > 0).sum()) for each in self.repetitions) < LEAST_GROUPS:
                low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
            found[question] = {
                "tau_of_means": mean[q, 0].copy(),  # a view would keep all resamples in memory
                "tau_of_means_low": low,
                "tau_of_means_high": high,
                "tau_of_means_sd": spread[q],
            }
        return found

    def columns(self, question: str) -> dict[str, Floats]:
        """Kendall's τ-b of the models' means with the reference's: mean over repetitions, interval, and spread."""
        if question in TAUS:
            return self._taus[question]
        nothing = np.full(int(np.prod(self.shape[:2])), np.nan)
        return dict.fromkeys(self._taus[TAUS[0]], nothing)

    def _counts(self, each: GroupSums, weight: Floats) -> npt.NDArray[np.int32]:
        """Of every resample and scenario the tied pairs of models, and the agreement with each question's reference."""
        from truerank.reliability import kernels

        largest = float(np.abs(each.sums).sum(axis=0).max(initial=1)) * float(weight.max())
        shift = max(0, ceil(log2(largest)) - 52)
        means = (weight @ each.coarse(shift)).reshape(len(weight), *self.shape)
        # both roundings, of each user's value and of each group's sum: what differs by less may be equal
        rounding = weight @ (1 + each.users / 2.0**shift)
        out = np.empty((len(weight), *self.shape[:2], len(COUNTS)), dtype=np.int32)
        kernels.count_pairs(means, rounding, out)
        return out

    def pairs(self, models: tuple[str, ...], axes: pl.DataFrame) -> pl.DataFrame:
        """The difference of every pair of models, and its standard deviation between users.

        With D_g the sum of a group's differences, n_g its users and d the mean over all, the variance between users is
        Σ_g n_g (D_g / n_g - d)² / (groups - 1) (users are drawn independently), its mean over repetitions.

        >>> sums = np.array([[[[3, 1]]], [[[1, 1]]]])  # two users, one scenario, two models: differences 2 and 0
        >>> of = OrderOfMeans((GroupSums(sums, np.ones(2, dtype=np.int64)),), Resampling(2), 1.0)
        >>> of.pairs(("a", "b"), pl.DataFrame({"sparsity": [0.0]})).row(0)[:5]
        (0.0, 'a', 'b', 1.0, 1.4142135623730951)
        """
        found = []
        n_users = [int(each.users.sum()) for each in self.repetitions]
        for a, b in combinations(range(len(models)), 2):
            total, variance = np.zeros(axes.height), []
            for each in self.repetitions:
                kept = each.users > 0
                of_group = (each.sums[kept, ..., a] - each.sums[kept, ..., b]).reshape(-1, axes.height) / self.scale
                users = each.users[kept, None]
                total += of_group.sum(axis=0)
                if len(of_group) > 1:
                    apart = of_group / users - of_group.sum(axis=0) / users.sum()
                    variance.append((users * apart**2).sum(axis=0) / (len(of_group) - 1))
            found.append(
                axes.with_columns(
                    model=pl.lit(models[a]),
                    other=pl.lit(models[b]),
                    difference=total / sum(n_users) if sum(n_users) else np.full(axes.height, np.nan),
                    sd=np.sqrt(np.mean(variance, axis=0)) if variance else np.full(axes.height, np.nan),
                    users=pl.lit(max(n_users)),
                    repetitions=pl.lit(len(n_users)),
                )
            )
        return pl.concat(found)
