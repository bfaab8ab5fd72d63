"""Rows of users and items: what was observed, and sets of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.record import record
from truerank.core.wording import columns_option, positive_option


@record
class Pairs:
    """Items of each unit, as compressed rows: unit u has `item[start[u]:start[u + 1]]`, sorted."""

    start: Ints
    item: Ints

    @classmethod
    def of(cls, unit: Ints, item: Ints, *, n_units: int) -> Pairs:
        """From rows in any order; repeated pairs count once.

        >>> Pairs.of(np.array([1, 0, 1, 1]), np.array([7, 3, 2, 7]), n_units=2)
        Pairs(start=array([0, 1, 3]), item=array([3, 2, 7]))
        """
        width = int(item.max()) + 1 if len(item) else 1
        cell = unit.astype(np.int64) * width + item
        if not (cell[1:] > cell[:-1]).all():
            cell = np.sort(cell)
            cell = cell[np.concatenate([[True], cell[1:] != cell[:-1]])]
        count = np.bincount(cell // width, minlength=n_units)
        return cls(frozen(np.concatenate([[0], np.cumsum(count)]).astype(np.int64)), frozen(cell % width))

    def of_units(self, first: int, last: int) -> Pairs:
        """The pairs of units first ... last - 1, numbered from 0."""
        begin, end = int(self.start[first]), int(self.start[last])
        return Pairs(frozen(self.start[first : last + 1] - begin), frozen(self.item[begin:end]))

    def of_unit(self, unit: int) -> Ints:
        return self.item[self.start[unit] : self.start[unit + 1]]

    @property
    def count(self) -> Ints:
        return np.diff(self.start)


@record
class Log:
    """Rows of (user, item) with what was observed: training data, judged test data and impressions alike.

    `user` and `item` are positions in the populations `users` and `items`; a user without a row still counts. `rewards`
    are named columns; the one called `label` is 0 or 1. `inclusion` is a row's chance to be drawn into an intervened
    test set. `complete` says that a pair which is not listed is a known negative; otherwise it is unknown.
    """

    users: Ids
    items: Ids
    user: Ints
    item: Ints
    rewards: Mapping[str, Floats]
    propensity: Floats | None = None
    position: Ints | None = None
    session: npt.NDArray[Any] | None = None
    time: npt.NDArray[Any] | None = None
    inclusion: Floats | None = None
    complete: bool = False
    source: str = "labels"
    notes: tuple[str, ...] = field(default=(), compare=False)  # what to say of how it was read

    def __len__(self) -> int:
        return len(self.user)

    @property
    def label(self) -> Floats:
        """The binary label of each row."""
        self.check_labels()
        return self.rewards["label"]

    def check_labels(self) -> None:
        """Refuse a log without binary labels."""
        if not self.rewards:
            raise InputError(
                f"{self.source}: no value column; labels are needed, in a column label, reward, rating or value. "
                f"Name it: {columns_option('label')}; if each row is a positive, say "
                f"{positive_option('all')}."
            )
        if "label" not in self.rewards:
            raise InputError(
                f"{self.source}: labels are needed, but {', '.join(self.rewards)} has other values than 0 and 1. "
                f"Say which values are positive: {positive_option('>3')}, or all."
            )

    @property
    def unit(self) -> Ints:
        """The unit of each row: its user."""
        return self.user

    @property
    def n_units(self) -> int:
        return len(self.users)

    def select(self, rows: Ints | Bools | slice) -> Self:
        """The given rows, in that order; the populations stay."""
        optional: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else frozen(column[rows])
            for name in ("propensity", "position", "session", "time", "inclusion")
        }
        return replace(
            self,
            user=frozen(self.user[rows]),
            item=frozen(self.item[rows]),
            rewards={name: frozen(column[rows]) for name, column in self.rewards.items()},
            **optional,
        )
