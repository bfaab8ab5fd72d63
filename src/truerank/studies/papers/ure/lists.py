"""Recall at many cutoffs at once: on all candidates, by the URE paper's estimate, and among the sample alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.studies.papers.ure.block import UreSplit


def recall_at(position: Ints, label: Bools, cutoffs: Sequence[int]) -> Floats:
    """Mean over rows with a positive of the share of its positives at positions up to K, for ascending cutoffs.

    >>> position, label = np.array([[1, 2, 3], [3, 1, 2]]), np.array([[True, False, True], [True, False, False]])
    >>> recall_at(position, label, [1, 2, 3]).tolist()
    [0.25, 0.25, 1.0]
    """
    row, column = np.nonzero(label)
    number = label.sum(axis=1)
    kept = np.count_nonzero(number)
    if kept == 0:
        return np.full(len(cutoffs), np.nan)
    first = np.searchsorted(np.asarray(cutoffs), position[row, column])
    return np.cumsum(np.bincount(first, weights=1 / number[row], minlength=len(cutoffs) + 1)[:-1]) / kept


def among(position: Ints, label: Bools) -> Ints:
    """The position of each positive among the columns of its own row alone, from 1; of others 0.

    >>> among(np.array([[40, 7, 900]]), np.array([[True, False, True]])).tolist()
    [[2, 0, 3]]
    """
    row, column = np.nonzero(label)
    found = np.zeros(position.shape, dtype=np.int64)
    found[row, column] = 1 + (position[row] < position[row, column][:, None]).sum(axis=1)
    return found


def traditional(position: Ints, label: Bools, cutoffs: Sequence[int]) -> Floats:
    """Recall@K-bar: recall where the judged items alone compete, at each of these cutoffs."""
    return recall_at(among(position, label), label, cutoffs)


@dataclass(frozen=True, slots=True)
class SampledRecall:
    """Recall of models: `truth` [models x K], `ure` [models x draws x N-bar x K], `traditional` [... x K-bar]."""

    truth: Floats
    ure: Floats
    traditional: Floats


@dataclass(frozen=True, slots=True)
class RecallGrid:
    """Which cutoffs, sizes of samples and how many draws are asked for."""

    cutoffs: tuple[int, ...]
    judged: tuple[int, ...]
    within: tuple[int, ...]  # K-bar
    draws: int

    def measured(self, split: UreSplit, positions: Sequence[Ints], *, seed: int) -> SampledRecall:
        """All of it; every model sees the same draws."""
        truth = np.array([recall_at(each, split.label, self.cutoffs) for each in positions])
        shape = (len(positions), self.draws, len(self.judged))
        ure, old = np.empty((*shape, len(self.cutoffs))), np.empty((*shape, len(self.within)))
        for number in range(self.draws):
            place = split.drawn(max(self.judged), seed=seed, number=number)
            label = np.take_along_axis(split.label, place, axis=1)
            for model, each in enumerate(positions):
                position = np.take_along_axis(each, place, axis=1)
                for at, n in enumerate(self.judged):
                    ure[model, number, at] = recall_at(position[:, :n], label[:, :n], self.cutoffs)
                    old[model, number, at] = traditional(position[:, :n], label[:, :n], self.within)
        return SampledRecall(truth, ure, old)


def steps(n: int, *, per_doubling: int = 2) -> tuple[int, ...]:
    """Cutoffs from 1 to n in equal ratios, each whole number once.

    >>> steps(8)
    (1, 2, 3, 4, 6, 8)
    """
    number = int(np.ceil(np.log2(n) * per_doubling)) + 1
    return tuple(int(each) for each in np.unique(np.round(np.geomspace(1, n, number))))
