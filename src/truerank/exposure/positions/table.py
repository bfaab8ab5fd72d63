"""A probability for every rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError, RefusedError
from truerank.core.values import Count, check, text_of
from truerank.exposure.positions.places import cut


@dataclass(frozen=True, slots=True)
class Table:
    """The probability that each rank is viewed, as listed; beyond the list nothing is viewed.

    >>> Table((1.0, 0.6, 0.3)).view(np.array([2.0, 4.0])).tolist()
    [0.6, 0.0]
    >>> str(Table((1.0, 0.6, 0.3), cutoff=2))
    'table:1:0.6:0.3@2'
    """

    probability: tuple[float, ...]
    cutoff: Count | None = None
    name: ClassVar[str] = "table"
    positional: ClassVar[tuple[str, ...]] = ("probability",)

    def __post_init__(self) -> None:
        check(self, where=f"position model {self.name}")
        if not self.probability:
            raise InputError("a position table without a row; expected the probability of every rank from 1.")
        for rank, value in enumerate(self.probability, 1):
            if not (math.isfinite(value) and 0 <= value <= 1):
                raise InputError(f"position table: probability {value:g} at rank {rank}; expected one in [0, 1].")
        if self.probability[0] != 1:
            raise InputError(
                f"position table: probability {self.probability[0]:g} at rank 1; expected 1. Divide all of them by it: "
                "exposures are relative to the first rank."
            )
        rising = [
            rank for rank, (a, b) in enumerate(zip(self.probability, self.probability[1:], strict=False), 2) if b > a
        ]
        if rising:
            raise InputError(
                f"position table: rank {rising[0]} is viewed more often than rank {rising[0] - 1}; expected "
                "probabilities that never rise. Table.of_frequencies makes noisy frequencies monotone."
            )

    __str__ = text_of

    def view(self, position: Floats) -> Floats:
        position = np.asarray(position, dtype=np.float64)
        listed = np.array([*self.probability, 0.0])
        at = np.minimum(position, len(listed)).astype(np.int64) - 1
        return cut(listed[at], position, cutoff=self.cutoff)

    @classmethod
    def of_frequencies(cls, viewed: Sequence[float] | Floats, shown: Sequence[float] | Floats) -> Table:
        """From how often each rank was shown and viewed: monotone by isotonic regression, then relative to rank 1.

        Frequencies are weighted by how often a rank was shown (pool adjacent violators).

        >>> Table.of_frequencies([80, 30, 50], [100, 100, 100]).probability
        (1.0, 0.5, 0.5)
        """
        from scipy.optimize import isotonic_regression

        seen, all_of = np.asarray(viewed, dtype=np.float64), np.asarray(shown, dtype=np.float64)
        if seen.shape != all_of.shape or seen.ndim != 1 or not len(seen):
            raise InputError(
                f"views of {len(seen)} ranks but showings of {len(all_of)}; expected both for every rank from 1."
            )
        empty = np.flatnonzero(~(all_of > 0))
        if len(empty):
            raise RefusedError(
                f"rank {empty[0] + 1} was never shown, so how often it is viewed is unknown. "
                "Leave out the ranks from there on."
            )
        if (seen < 0).any() or (seen > all_of).any():
            raise InputError("more views than showings, or negative ones; expected counts of views and of showings.")
        smooth = isotonic_regression(seen / all_of, weights=all_of, increasing=False).x
        if smooth[0] <= 0:
            raise RefusedError(
                "nothing was ever viewed: no rank can be compared with the first. Check the view column."
            )
        return cls(tuple(np.minimum(smooth / smooth[0], 1.0).tolist()))
