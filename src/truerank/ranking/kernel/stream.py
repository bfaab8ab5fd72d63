"""Drive the fast kernel: a tile of scores is made, excluded items are masked, thresholds counted, the tile is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Ints
from truerank.core.ranking import Candidates
from truerank.core.record import record
from truerank.ranking.kernel import fast
from truerank.ranking.scores.scores import TILE_USERS, Factors

Matrix = npt.NDArray[np.floating]


class Tiles(Protocol):
    """Scores of a few users, piece by piece; the same arithmetic for rows and for single items."""

    def of_items(self, start: Ints, item: Ints) -> Matrix:
        """The scores of chosen items; user u asks for item[start[u]:start[u + 1]]."""
        ...

    def __iter__(self) -> Iterator[tuple[int, Matrix]]:
        """(first item, tile): together the tiles hold every item; a tile may be overwritten."""
        ...


@record
class RowTiles:
    """One tile: whole score rows, filled up with -inf to a width the kernel can take."""

    rows: Matrix

    def of_items(self, start: Ints, item: Ints) -> Matrix:
        return self.rows[np.repeat(np.arange(len(start) - 1), np.diff(start)), item]

    def __iter__(self) -> Iterator[tuple[int, Matrix]]:
        n, width = self.rows.shape
        padded = np.full((n, -(-width // fast.LANES) * fast.LANES), -np.inf, dtype=self.rows.dtype)
        padded[:, :width] = self.rows
        yield 0, padded


@record
class FactorTiles:
    """Products of one tile of users with tiles of items, all of one fixed shape; no row of scores is ever stored."""

    factors: Factors
    users: Matrix  # a whole tile, filled up with zeros

    @classmethod
    def of(cls, factors: Factors, rows: Ints) -> FactorTiles:
        users = np.zeros((TILE_USERS, factors.user.shape[1]), dtype=factors.user.dtype)
        users[: len(rows)] = factors.user[rows]
        return cls(factors, users)

    def of_items(self, start: Ints, item: Ints) -> Matrix:
        distinct, place = np.unique(item, return_inverse=True)
        user = np.repeat(np.arange(len(start) - 1), np.diff(start))
        result = np.empty(len(item), dtype=self.users.dtype)
        for left, product in self.factors.products(self.users, self.factors.item[distinct]):
            inside = (place >= left) & (place < left + product.shape[1])
            result[inside] = product[user[inside], place[inside] - left]
        return result

    def __iter__(self) -> Iterator[tuple[int, Matrix]]:
        n_items = len(self.factors.items)
        for left, product in self.factors.products(self.users, self.factors.item):
            if left + product.shape[1] > n_items:
                product[:, n_items - left :] = -np.inf
            yield left, product


def count(
    tiles: Tiles, threshold: Matrix, start: Ints, *, pool: Candidates, units: Ints, finite: bool
) -> tuple[Ints, Ints, Ints]:
    """Of each labelled item of a block of users the candidates that score above it and that reach it; of each user the
    candidates that are ever recommended. Candidates are the catalogue minus exclusions, or the labelled items alone.

    `finite` scores need no look at each of them for those that are never recommended.
    """
    n, exclude = len(units), pool.exclude
    above, reaching = np.zeros((2, len(threshold)), dtype=np.int64)
    recommended = np.zeros(n, dtype=np.int64)
    if pool.only is not None:
        fast.count_within(start, threshold, above, reaching, recommended)
        return above, reaching, recommended
    if exclude is not None:
        pointer, stop = exclude.start[units].copy(), exclude.start[units + 1]
    for left, tile in tiles:
        if exclude is not None:
            fast.mask_tile(tile, left, n, pointer, stop, exclude.item)
        if not finite:
            fast.count_recommended(tile, n, recommended)
        fast.count_tile(tile, n, start, threshold, above, reaching)
    return above, reaching, recommended
