"""Sampling designs: how to draw from a pool, how likely each member is drawn, and every outcome on tiny pools.

One thing used three ways: as a logger, as an intervention, and as a candidate sampler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Protocol

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.chance import cell_keys, cell_uniforms
from truerank.ids import Keys


class Design(Protocol):
    """A random subset of a user's pool of items."""

    def draw(self, user: Keys, item: Keys, *, seed: int) -> Ints:
        """Which rows of the pools are drawn; `user` and `item` are the keys of all rows (u, i), i in u's pool."""
        ...

    def inclusion(self, size: int) -> Floats:
        """The probability of each member of a pool of this size."""
        ...

    def outcomes(self, size: int) -> Iterator[tuple[tuple[int, ...], float]]:
        """Every subset of a pool of this size with its probability; for tiny pools."""
        ...


@dataclass(frozen=True, slots=True)
class Uniform:
    """`n` members of each pool without replacement, all subsets equally likely; all of a smaller pool.

    >>> Uniform(2).inclusion(4).tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> [members for members, _ in Uniform(2).outcomes(3)]
    [(0, 1), (0, 2), (1, 2)]
    """

    n: int

    def draw(self, user: Keys, item: Keys, *, seed: int) -> Ints:
        key = cell_keys(seed, "uniform", user, item)
        order = np.lexsort((key, user))
        changed = np.concatenate([[True], user[order][1:] != user[order][:-1]])
        first = np.flatnonzero(changed)
        place = np.arange(len(user)) - np.repeat(first, np.diff(np.append(first, len(user))))
        return np.sort(order[place < self.n])

    def inclusion(self, size: int) -> Floats:
        return np.full(size, min(self.n, size) / size)

    def outcomes(self, size: int) -> Iterator[tuple[tuple[int, ...], float]]:
        n = min(self.n, size)
        return ((members, 1 / comb(size, n)) for members in combinations(range(size), n))


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Each member by itself, with probability `rate`.

    >>> sorted((members, probability) for members, probability in Bernoulli(0.5).outcomes(1))
    [((), 0.5), ((0,), 0.5)]
    """

    rate: float

    def draw(self, user: Keys, item: Keys, *, seed: int) -> Ints:
        return np.flatnonzero(cell_uniforms(seed, "bernoulli", user, item) < self.rate)

    def inclusion(self, size: int) -> Floats:
        return np.full(size, self.rate)

    def outcomes(self, size: int) -> Iterator[tuple[tuple[int, ...], float]]:
        for n in range(size + 1):
            for members in combinations(range(size), n):
                yield members, self.rate**n * (1 - self.rate) ** (size - n)
