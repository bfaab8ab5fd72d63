"""EASE: a linear item-item model in closed form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import lapack

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.core.record import record
from truerank.core.sizes import check_size
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.matrix import one_thread, positives
from truerank.models.settings import OneOf, setting
from truerank.ranking.scores.scores import Product


@record
class EASE(Model):
    """Scores x_u B with B = I - P / diag(P), P = (XᵀX + λI)⁻¹, X the users x items positives (Steck 2019, eq. 8).

    The weights of an item with itself are 0. A user without positives scores 0 everywhere, an item without positives
    scores 0. Needs two matrices [items x items] in memory.

    One user likes two items: XᵀX + I = [[2, 1], [1, 2]], P ∝ [[2, -1], [-1, 2]], so B has 1/2 off the diagonal:

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 1], "item": [7, 8]}))
    >>> EASE(1.0).fit(log, seed=0).block([0]).round(6).tolist()
    [[0.5, 0.5]]
    """

    regularisation: float = setting(100.0, "λ", above=0, search=OneOf(tuple(float(x) for x in range(500, 1601, 10))))
    name: ClassVar[str] = "ease"
    summary: ClassVar[str] = "A linear model of items on items in closed form."

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Product:
        liked = positives(log)
        n = len(log.items)
        check_size(
            f"{self.name} of {n:,} items, whose weights are {n:,} x {n:,} numbers,",
            memory=12.0 * n * n,  # the inverse, and the weights made from it
            seconds=n**3 / 1e12,
            instead="Leave rare items out, or use a model without such a matrix, such as ials.",
        )
        with watching(progress) as report, one_thread():
            say = report or (lambda *step: None)
            say("inverting", 0, 3)
            gram = (liked.T @ liked).toarray(order="F")
            gram[np.diag_indices_from(gram)] += self.regularisation
            say("inverting", 1, 3)
            # the inverse in place, from the Cholesky factor: positive definite as λ > 0, unless λ is lost in rounding
            size = np.diag(gram).copy()
            factor, failed = lapack.dpotrf(gram, lower=True, overwrite_a=True)
            if failed or _lost(np.diag(factor), size):
                raise self._too_small(log)
            say("inverting", 2, 3)
            inverse, failed = lapack.dpotri(factor, lower=True, overwrite_c=True)
            say("inverting", 3, 3)
        if failed or not np.isfinite(np.diag(inverse)).all():
            raise self._too_small(log)
        mirror(inverse)
        inverse /= -np.diag(inverse).copy()[None, :]
        np.fill_diagonal(inverse, 0.0)
        weights = inverse.astype(np.float32, order="C")
        return Product(liked.astype(np.float32), weights, log.users, log.items)

    def _too_small(self, log: Log) -> InputError:
        return InputError(
            f"{self.name}: regularisation {self.regularisation:g} is too small for this log ({log.source}): "
            "XᵀX + λI cannot be inverted, as some items are liked by the same users or nearly so. Take a larger one."
        )


def _lost(pivot: Floats, size: Floats) -> bool:
    """Whether what the Cholesky factor leaves of a diagonal entry is no more than its rounding error."""
    return bool((pivot**2 <= 64 * np.sqrt(len(size)) * np.finfo(np.float64).eps * size).any())


def mirror(matrix: Floats, *, block: int = 1024) -> None:
    """Copy what is below the diagonal to above it, in place."""
    for start in range(0, len(matrix), block):
        stop = min(start + block, len(matrix))
        corner = np.tril(matrix[start:stop, start:stop], -1)
        matrix[start:stop, start:stop] = corner + corner.T + np.diag(np.diag(matrix)[start:stop])
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
