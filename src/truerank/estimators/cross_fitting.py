"""Means of gains among the users of other folds: what predictions of items are made of.

No user's prediction depends on that user's own rows, so sums that these correct stay unbiased. Means of other folds are
taken as fixed, so nothing is refitted: their error does not correlate with the rows that correct them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

import numpy as np

from truerank.core.arrays import Floats, Ints, two_sum
from truerank.core.estimator import Groups, Learned, Learner
from truerank.core.ids import Ids
from truerank.core.record import record


@record(eq=False)
class FoldSums:
    """Sums of values by fold and cell (an item, a group of users): a tally of a learner.

    Each is [2 x folds x cells], the sum and what rounding lost of it, so that chunks change no bit. `folds` are those
    of users, where a fit needs them; `items` are those of the cells, where chunks have different ones; `group` is the
    group of each item.

    >>> values = {"gain": (np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), 2)}
    >>> FoldSums.of(values, np.array([0, 0, 1]), 2).of_others("gain").tolist()
    [[0.0, 3.0], [1.0, 2.0]]
    """

    sums: Mapping[str, Floats]
    folds: Groups | None = None
    items: Ids | None = None
    group: Ints | None = None

    @classmethod
    def of(cls, values: Mapping[str, tuple[Ints, Floats, int]], fold: Ints, n_folds: int, **others: Any) -> FoldSums:
        """Of the cell and the value of each row, and the number of cells, by name."""
        from truerank.estimators.fast import add_cells

        sums = {}
        for name, (cell, value, width) in values.items():
            parts = np.zeros((3, n_folds * width))
            add_cells(fold * width + cell, value, *parts)
            sums[name] = parts[:2].reshape(2, n_folds, width)
        return cls(sums, **others)

    def __add__(self, more: FoldSums) -> FoldSums:
        first, second = self, more
        if self.items is not None and more.items is not None and self.items != more.items:
            items = Ids.union({"items": self.items, "more items": more.items})
            first, second = self._over(items), more._over(items)
        sums = {}
        for name, part in first.sums.items():
            total, lost = two_sum(part[0], second.sums[name][0])
            sums[name] = np.stack([total, part[1] + second.sums[name][1] + lost])
        return FoldSums(sums, first.folds, first.items, first.group)

    def _over(self, items: Ids) -> FoldSums:
        """The same over more items."""
        place = items.locate(self.items or items)
        wide = {name: np.zeros((*sums.shape[:2], len(items))) for name, sums in self.sums.items()}
        for name, sums in self.sums.items():
            wide[name][:, :, place] = sums
        return FoldSums(wide, self.folds, items, self.group)

    def without(self, group: int | None) -> FoldSums:
        """Nothing is refitted: there is one group."""
        return self

    def of_others(self, name: str) -> Floats:
        """The sums over all folds but each, [folds x cells]."""
        by_fold = self.sums[name].sum(axis=0)
        return np.stack([np.delete(by_fold, fold, axis=0).sum(axis=0) for fold in range(len(by_fold))])


@record
class CrossFitted:
    """Learns what a model of means predicts for the users of each fold; known by the model and what it `predicts`.

    The model has the two steps of a learner, `tally(learner, chunk, seed, learned)` and `fit(tally)`.
    """

    model: Any
    predicts: Any  # can be hashed
    needs: tuple[Learner, ...] = field(default=(), compare=False)
    positions: Any = field(default=None, compare=False)
    refitted: bool = field(default=False, compare=False)

    def tally(self, chunk: Any, *, groups: Groups, learned: Learned) -> FoldSums:
        sums: FoldSums = self.model.tally(self, chunk, groups.seed, learned)
        return sums

    def fit(self, tally: FoldSums) -> Any:
        return self.model.fit(tally)


def shrunk_means(gain: Floats, rows: Floats, towards: Floats | float, strength: Floats | float) -> Floats:
    """(Σ gain + s m) / (Σ rows + s): with few rows close to m, which alone counts where there is nothing else.

    >>> shrunk_means(np.array([2.0, 0.0]), np.array([2.0, 0.0]), 0.5, 2.0).tolist()
    [0.75, 0.5]
    """
    weight = rows + strength
    start = np.broadcast_to(np.asarray(towards, dtype=np.float64), weight.shape).copy()
    return np.divide(gain + strength * towards, weight, out=start, where=weight > 0)


def mean_over_cells(gain: Floats, rows: Floats) -> Floats:
    """Σ gain / Σ rows over all cells of each fold, [folds x 1]; 0 without rows."""
    total = rows.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(gain.sum(axis=1, keepdims=True), total, out=np.zeros_like(total), where=total > 0))


# ---------------------------------------------------------------------------------------------------------------- folds


@record(eq=False)
class _Population:
    """All users of an evaluation, the same object in every chunk of it."""

    users: Ids

    def __eq__(self, more: object) -> bool:
        return isinstance(more, _Population) and self.users is more.users

    def __hash__(self) -> int:
        return id(self.users)


def equal_folds(users: Ids, n: int, seed: int) -> Groups:
    """All users of an evaluation in folds of equal size, by their ids."""
    return _folds(_Population(users), n, seed)


@lru_cache(maxsize=4)
def _folds(population: _Population, n: int, seed: int) -> Groups:
    """Made once, not for every chunk."""
    return Groups.of(population.users.keys(), n=n, seed=seed, purpose="reward folds")
