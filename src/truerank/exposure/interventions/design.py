"""What a strategy amounts to: a sampling design over the rows of a log; and the two that look at nothing.

FULL and REG are the baselines of the WTD paper (section 5.3): no intervention, and one that does not look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Keys
from truerank.core.language import Kind
from truerank.core.log import Log
from truerank.sampling.designs import SamplingDesign, UniformDesign, WeightedDesign
from truerank.sampling.pools import Members, Share, row_keys

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


@runtime_checkable
class Strategy(Protocol):
    """A frozen value that says how likely each row of a biased log enters the intervened test set.

    `margins` are the counts it reads in the training log, `needs_random` says whether it also needs a randomly shown
    slice. `published` is what the paper says, `released` what its code does.
    """

    name: ClassVar[str]
    margins: ClassVar[tuple[str, ...]]
    needs_random: ClassVar[bool]

    @classmethod
    def published(cls) -> Self: ...
    @classmethod
    def released(cls) -> Self: ...

    def design(self, log: Log, *, train: Log, random: Log | None, fraction: float, seed: int) -> RowDesign:
        """`train` and `random` are there if they are needed, else whatever was given."""
        ...


STRATEGIES: Kind[Strategy] = Kind("strategy", __package__, Strategy)


def by_weight(log: Log, weight: Floats, *, fraction: float) -> RowDesign:
    """A weighted sample without replacement from all rows as one pool; rows of weight 0 are never drawn."""
    if not (weight > 0).any():
        raise InputError(
            f"{log.source}: no row has a positive weight, so nothing can be drawn; give a floor above 0 for users and "
            "items without a row in the random slice."
        )
    # the scale of weights is free; far from 1 they could leave the range of numbers
    members = Members.together(pair_keys(log), weight=weight / weight.max())
    return RowDesign(np.arange(len(log)), members, WeightedDesign(Share(fraction)))


def uniformly(log: Log, fraction: float) -> RowDesign:
    """A uniform sample from all rows as one pool."""
    return RowDesign(np.arange(len(log)), Members.together(pair_keys(log)), UniformDesign(Share(fraction)))


def pair_keys(log: Log) -> Keys:
    """A key of each row that depends on its user and item alone."""
    return cell_keys(0, "pair", *row_keys(log))


def check_powers(**powers: float) -> None:
    for name, power in powers.items():
        if not 0 <= power < np.inf:
            raise InputError(f"{name} is {power:g}; expected a number from 0.")


@dataclass(frozen=True, slots=True)
class FullIntervention:
    """FULL: every row, whatever the fraction."""

    name: ClassVar[str] = "full"
    margins: ClassVar[tuple[str, ...]] = ()
    needs_random: ClassVar[bool] = False

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()

    def design(self, log: Log, *, train: Log | None, random: Log | None, fraction: float, seed: int) -> RowDesign:
        return uniformly(log, 1.0)


@dataclass(frozen=True, slots=True)
class RegularIntervention:
    """REG: a uniform sample of the rows, which keeps the bias they have."""

    name: ClassVar[str] = "reg"
    margins: ClassVar[tuple[str, ...]] = ()
    needs_random: ClassVar[bool] = False

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()

    def design(self, log: Log, *, train: Log | None, random: Log | None, fraction: float, seed: int) -> RowDesign:
        return uniformly(log, fraction)
