"""Recall at many cutoffs: on all candidates, by URE, among the sample alone; and agreement over models."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.uncertainty.agreement import correlation, rank_correlation
from truerank_research.claims import Cell
from truerank_research.estimators.weighted import kept_chance
from truerank_research.papers.ure.data import Split


def recall_at(position: Ints, label: Bools, cutoffs: Sequence[int]) -> Floats:
    """Mean over rows with a positive of the share of its positives at positions up to K, for ascending cutoffs.

    >>> position, label = np.array([[1, 2, 3], [3, 1, 2]]), np.array([[True, False, True], [True, False, False]])
    >>> recall_at(position, label, [1, 2, 3]).tolist()
    [0.25, 0.25, 1.0]
    """
    row, column = np.nonzero(label)
    number = label.sum(axis=1)
    n_users = np.count_nonzero(number)
    if n_users == 0:
        return np.full(len(cutoffs), np.nan)
    first = np.searchsorted(np.asarray(cutoffs), position[row, column])
    return np.cumsum(np.bincount(first, weights=1 / number[row], minlength=len(cutoffs) + 1)[:-1]) / n_users


def among(position: Ints, label: Bools) -> Ints:
    """The position of each positive among the columns of its own row alone, from 1; of others 0.

    >>> among(np.array([[40, 7, 900]]), np.array([[True, False, True]])).tolist()
    [[2, 0, 3]]
    """
    row, column = np.nonzero(label)
    rank = np.zeros(position.shape, dtype=np.int64)
    rank[row, column] = 1 + (position[row] < position[row, column][:, None]).sum(axis=1)
    return rank


def traditional(position: Ints, label: Bools, cutoffs: Sequence[int]) -> Floats:
    """Recall@K-bar: recall where only labelled items are candidates, at each of these cutoffs."""
    return recall_at(among(position, label), label, cutoffs)


@dataclass(frozen=True, slots=True)
class SampledRecall:
    """Recall of models: `truth` [models x K], `ure` [models x draws x N-bar x K], `traditional` [... x K-bar]."""

    truth: Floats
    ure: Floats
    traditional: Floats


@dataclass(frozen=True, slots=True)
class RecallGrid:
    """Cutoffs, sizes of samples, cutoffs within the sample, and number of draws."""

    cutoffs: tuple[int, ...]
    judged: tuple[int, ...]
    within: tuple[int, ...]  # K-bar
    draws: int

    def measure(self, split: Split, positions: Sequence[Ints], *, seed: int) -> SampledRecall:
        """Recall of all models on the same draws."""
        truth = np.array([recall_at(position, split.label, self.cutoffs) for position in positions])
        shape = (len(positions), self.draws, len(self.judged))
        ure, old = np.empty((*shape, len(self.cutoffs))), np.empty((*shape, len(self.within)))
        for number in range(self.draws):
            column = split.draw(max(self.judged), seed=seed, number=number)
            label = np.take_along_axis(split.label, column, axis=1)
            for model, every in enumerate(positions):
                position = np.take_along_axis(every, column, axis=1)
                for at, n in enumerate(self.judged):
                    ure[model, number, at] = recall_at(position[:, :n], label[:, :n], self.cutoffs)
                    old[model, number, at] = traditional(position[:, :n], label[:, :n], self.within)
        return SampledRecall(truth, ure, old)


def cutoffs_up_to(n: int, *, per_doubling: int = 2) -> tuple[int, ...]:
    """Cutoffs from 1 to n in equal ratios, each whole number once.

    >>> cutoffs_up_to(8)
    (1, 2, 3, 4, 6, 8)
    """
    number = int(np.ceil(np.log2(n) * per_doubling)) + 1
    return tuple(int(k) for k in np.unique(np.round(np.geomspace(1, n, number))))


@dataclass(frozen=True, slots=True)
class AgreementCurve:
    """Over cutoffs K: the mean coefficient of all draws, the range of nine tenths of them, the largest p of any."""

    mean: Floats
    low: Floats
    high: Floats
    p: Floats

    @property
    def best(self) -> int:
        """The index of K_max: where the mean is highest, the first of equals."""
        return int(np.where(np.isnan(self.mean), -np.inf, self.mean).argmax())

    def cells(self, table: str, column: str, cutoffs: Sequence[int]) -> list[Cell]:
        values = zip(cutoffs, self.mean, self.low, self.high, strict=False)
        return [Cell(table, f"K = {k}", column, mean, low=low, high=high) for k, mean, low, high in values]


def coefficient(x: Floats, y: Floats, *, kendall: bool) -> tuple[float, float]:
    """Pearson's r or Kendall's τ with its two-sided p; NaN where a series does not vary.

    >>> x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3])
    >>> [round(coefficient(x, y, kendall=kendall)[0], 3) for kendall in (False, True)]
    [0.8, 0.667]
    """
    if kendall:
        order = rank_correlation(x, y)
        return order.tau, order.p
    linear = correlation(x, y)
    return linear.r, linear.p


def curve(estimate: Floats, truth: Floats, *, kendall: bool) -> AgreementCurve:
    """Pearson's r or Kendall's τ over models of an estimate [models x draws] with truth at each cutoff [models x K].

    An estimate for each cutoff is [models x draws x K].
    """
    n_draws, n_cutoffs = estimate.shape[1], truth.shape[1]
    value, p = np.empty((n_draws, n_cutoffs)), np.empty((n_draws, n_cutoffs))
    for draw in range(n_draws):
        for at in range(n_cutoffs):
            x, y = estimate[:, draw, at] if estimate.ndim == 3 else estimate[:, draw], truth[:, at]
            value[draw, at], p[draw, at] = coefficient(x, y, kendall=kendall)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cutoff at which every draw is constant has no number
        low, high = np.nanquantile(value, [0.05, 0.95], axis=0)
        return AgreementCurve(np.nanmean(value, axis=0), low, high, np.nanmax(p, axis=0))


def inclusion_chance(positives: Floats | Ints, size: Floats | Ints, *, judged: int) -> Floats:
    """The probability that a user has a labelled positive: π = 1 - C(N - N⁺, N-bar) / C(N, N-bar).

    >>> inclusion_chance(np.array([1, 0, 3]), np.array([4, 4, 4]), judged=2).round(6).tolist()
    [0.5, 0.0, 1.0]
    """
    n = size.astype(np.float64)
    return kept_chance(positives, n_candidates=n, n_judged=np.full(len(n), float(judged)))


def weighted_mean(ratio: Floats, chance: Floats) -> float:
    """Σ (m / n) / π over users with a labelled positive, over the number of users with π > 0: exactly unbiased.

    `ratio` is m / n, 0 for users without a labelled positive. Needs N⁺ of every user.

    >>> weighted_mean(np.array([1.0, 0.0]), np.array([0.5, 1.0]))
    1.0
    """
    can = chance > 0
    return float(np.sum(ratio[can] / chance[can]) / np.count_nonzero(can))
