"""What a strategy amounts to: a sampling design over the rows of a log, as far as users and items tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Keys
from truerank.core.language import Kind
from truerank.core.log import Log
from truerank.core.values import Value
from truerank.exposure.counts import Margins
from truerank.sampling.designs import SamplingDesign, UniformDesign, WeightedDesign
from truerank.sampling.pools import Members, row_keys

PAIR = "pair"
PURPOSE = "intervene"  # one for all strategies: with equal weights they draw the same rows, and differ by weights alone


@dataclass(frozen=True, slots=True)
class RowDesign:
    """The rows of a log that can be drawn, as members of pools, and the design that draws from them."""

    rows: Ints
    members: Members
    design: SamplingDesign

    def draw(self, *, seed: int) -> Ints:
        """The rows that are drawn, ascending."""
        return self.rows[self.design.draw(self.members, seed=seed, purpose=PURPOSE)]

    def inclusion(self, n: int) -> Floats:
        """The probability of each of the n rows of the log to be drawn."""
        found = np.zeros(n)
        found[self.rows] = self.design.inclusion(self.members)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class DrawingRule:
    """How rows are drawn, as far as users and items tell: `n` of each pool, uniformly or by the weights of both.

    `pool` is the pool of each item, -1 where its rows are never drawn; None where all rows are one pool. It serves for
    all rows at once and for those of any chunk.
    """

    n: int
    pool: Ints | None = None
    of_user: Floats | None = None
    of_item: Floats | None = None

    @property
    def weighs(self) -> bool:
        return self.of_item is not None

    @property
    def n_pools(self) -> int:
        return 1 if self.pool is None else int(self.pool.max(initial=-1)) + 1

    def sizes(self, log: Margins) -> Ints:
        """How many rows each pool has."""
        pool = np.zeros(len(log.items), dtype=np.int64) if self.pool is None else self.pool
        count = np.bincount(pool + 1, weights=log.by_item, minlength=self.n_pools + 1)
        return count[1:].astype(np.int64)

    def weights(self, log: Log, unit: Ints | None = None) -> Floats:
        """Of each row; `unit` are the places of the log's users, where it has some of them alone."""
        if self.of_item is None:
            return np.ones(len(log))
        of_item = self.of_item[log.item]
        if self.of_user is None:
            return of_item
        return np.asarray(self.of_user[log.user if unit is None else unit[log.user]] * of_item)

    def members(self, log: Log, key: Keys, *, largest: float, unit: Ints | None = None) -> tuple[Ints, Members]:
        """The rows that can be drawn, as members of pools, by keys of pairs; `largest` is the largest of all weights.

        The scale of weights is free; far from 1 they could leave the range of numbers.
        """
        if self.weighs:
            return np.arange(len(log)), Members.together(key, weight=self.weights(log, unit) / largest)
        if self.pool is None:
            return np.arange(len(log)), Members.together(key)
        pool = self.pool[log.item]
        rows = np.flatnonzero(pool >= 0)
        return rows, Members(pool[rows].astype(np.uint64), key[rows])

    def design(self, log: Log) -> RowDesign:
        """The rows of a log in memory."""
        largest = float(self.weights(log).max(initial=0.0))
        check_largest(largest, log.source)
        way = WeightedDesign(self.n) if self.weighs else UniformDesign(self.n)
        return RowDesign(*self.members(log, pair_keys(log), largest=largest), way)


def check_largest(largest: float, source: str) -> None:
    """Refuse rows of which none can be drawn."""
    if not largest > 0:
        raise InputError(
            f"{source}: no row has a positive weight, so nothing can be drawn; give a floor above 0 for users and "
            "items without a row in the random slice."
        )


class Strategy(Value):
    """A frozen value that says how likely each row of a biased log enters the intervened test set.

    `margins` are the counts it reads in the training log, `needs_random` says whether it also needs a randomly shown
    slice. `published` is what the paper says, `released` what its code does.
    """

    __slots__ = ()

    margins: ClassVar[tuple[str, ...]] = ()
    needs_random: ClassVar[bool] = False

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()

    def rule(self, log: Margins, *, train: Margins, random: Margins | None, fraction: float, seed: int) -> DrawingRule:
        """`train` and `random` are there if they are needed, else whatever was given."""
        raise NotImplementedError


STRATEGIES: Kind[Strategy] = Kind("strategy", __package__, Strategy)


def pair_keys(log: Log) -> Keys:
    """A key of each row that depends on its user and item alone."""
    return cell_keys(0, PAIR, *row_keys(log))
