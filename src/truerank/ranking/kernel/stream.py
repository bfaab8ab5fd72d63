"""Drive the fast kernel: a tile of scores is made, excluded items are masked, thresholds counted, the tile is gone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.ranking import Candidates
from truerank.core.record import record
from truerank.ranking.kernel import fast
from truerank.ranking.scores.scores import TILE_USERS, Factors, Matrix


@record
class Tiles:
    """Scores of a few users, piece by piece: whole rows of them, or products of factors of which no row is stored.

    The arithmetic is the same for tiles and for single items.
    """

    users: Matrix  # rows of scores, or a whole tile of factors filled up with zeros
    factors: Factors | None = None

    @classmethod
    def of_factors(cls, factors: Factors, rows: Ints) -> Tiles:
        users = np.zeros((TILE_USERS, factors.user.shape[1]), dtype=factors.user.dtype)
        users[: len(rows)] = factors.user[rows]
        return cls(users, factors)

    def of_items(self, start: Ints, item: Ints) -> Matrix:
        """The scores of chosen items; user u asks for item[start[u]:start[u + 1]]."""
        user = np.repeat(np.arange(len(start) - 1), np.diff(start))
        if self.factors is None:
            return self.users[user, item]
        distinct, place = np.unique(item, return_inverse=True)
        scores = np.empty(len(item), dtype=self.users.dtype)
        for left, product in self.factors.products(self.users, self.factors.item[distinct]):
            inside = (place >= left) & (place < left + product.shape[1])
            scores[inside] = product[user[inside], place[inside] - left]
        return scores

    def __iter__(self) -> Iterator[tuple[int, Matrix]]:
        """(first item, tile): together the tiles hold every item, filled up with -inf; a tile may be overwritten."""
        if self.factors is None:
            n, width = self.users.shape
            padded = np.full((n, -(-width // fast.LANES) * fast.LANES), -np.inf, dtype=self.users.dtype)
            padded[:, :width] = self.users
            yield 0, padded
            return
        n_items = len(self.factors.items)
        for left, product in self.factors.products(self.users, self.factors.item):
            product[:, max(n_items - left, 0) :] = -np.inf
            yield left, product


def count(tiles: Tiles, threshold: Matrix, start: Ints, *, pool: Candidates, units: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each labelled item of a block of users the candidates that score above it and that reach it; of each user the
    candidates that are ever recommended. Candidates are the catalogue minus exclusions, or the labelled items alone.

    Products of factors are finite: those that are never recommended need not be looked for, and stay 0.
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
        if tiles.factors is None:
            recommended += np.count_nonzero(tile > -np.inf, axis=1)
        fast.count_tile(tile, n, start, threshold, above, reaching)
    return above, reaching, recommended
