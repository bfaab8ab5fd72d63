"""What metrics of lists look at: the top K of every unit of a chunk, and what is known of items."""

from __future__ import annotations

import math

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.errors import RefusedError
from truerank.core.log import Pairs
from truerank.core.ranking import TopLists
from truerank.core.record import record
from truerank.core.wording import option


@record(eq=False)
class TrainCounts:
    """How many of `n_users` users of a training log have each item of the catalogue; repeated pairs count once."""

    users: Ints
    n_users: int

    @property
    def place(self) -> Ints:
        """1 for the items that most users have, 2 for those with the next smaller number, ...; 0 for none.

        >>> TrainCounts(np.array([5, 0, 9, 5]), 10).place.tolist()
        [2, 0, 1, 2]
        """
        seen = np.unique(self.users[self.users > 0])
        return np.where(self.users > 0, len(seen) - np.searchsorted(seen, self.users), 0)


@record(eq=False)
class ListFacts:
    """What is known of items beside lists: how many there are, who has them in the training log, their features."""

    n_items: float
    train: TrainCounts | None = None
    features: Floats | None = None  # [items x columns]

    def counts(self) -> TrainCounts:
        if self.train is None:
            raise RefusedError(f"how popular items are is not known; give the training log, {option('exclude TRAIN')}.")
        return self.train


@record(eq=False)
class ListedItems:
    """The top lists of the units of a chunk: for each listed item whether it is relevant; for each unit its history."""

    lists: TopLists
    relevant: Bools
    facts: ListFacts
    history: Pairs | None = None

    def means(self, values: Floats) -> Floats:
        """The mean of values of listed items over each unit's list, NaN where it is empty."""
        n = self.lists.length
        total = sums_by(self.lists.unit, values, n=len(n))
        return np.asarray(np.divide(total, n, out=np.full(len(n), math.nan), where=n > 0))


def mean_of(values: Floats) -> tuple[Floats, Floats]:
    """Values of units as the two sums of their mean."""
    return values, np.where(np.isnan(values), math.nan, 1.0)
