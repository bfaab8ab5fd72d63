"""Models by least squares: EASE, linear and in closed form; iALS, factors by alternating least squares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import lapack

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Keys
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.core.sizes import check_size
from truerank.models import NOTHING_BESIDE, Model, OneOf, Side, setting
from truerank.models.matrix import check_factors, one_thread, positives
from truerank.models.neighbours import Preference, matrix_of
from truerank.ranking.scores.scores import Factors, Product, factors

FEW = 0.5  # of the factors: rows that list no more are solved in the space of what they list
CELLS = 2**22  # numbers of what is listed that are gathered at once
TOGETHER = 256  # systems solved in one call; each is solved alone, so their number changes no bit


@record
class IALS(Model):
    """Factors that minimise Σ_{u,i} c_ui (r_ui - p_u · q_i)² + λ(Σ‖p_u‖² + Σ‖q_i‖²), c_ui = 1 + α r_ui.

    r_ui is 0 for pairs that are not listed. The objective of RankSys's fast iALS (Pilászy, Zibriczky and Tikk 2010),
    whose target is the value itself and not 1. Each side is solved exactly, item side first, where theirs makes one
    sweep of coordinate descent and adds λ twice; both start from U(0, 1/√K). Without rows a user or item has factors 0.

    One user, one item, r = 1, K = 1: p = c q / (c q² + λ) and the same for q, hence p² = q² = 1 - λ/c, the score:

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1], "item": [7]}))
    >>> IALS(factors=1, regularisation=0.5, alpha=1.0).fit(log, seed=0).block([0]).round(4).tolist()
    [[0.75]]
    """

    factors: int = setting(20, "numbers that describe a user or an item", least=1,
                           search=OneOf(tuple(range(20, 201, 20))))  # fmt: skip
    iterations: int = setting(20, "rounds of both sides", least=1)
    regularisation: float = setting(0.1, "λ", above=0, search=OneOf((0.001, 0.006, 0.01, 0.06, 0.1, 0.6)))
    alpha: float = setting(1.0, "α: how much a listed pair counts more than an unlisted one", least=0)
    rows: Preference = setting(Preference.POSITIVES, "what r is: 1 for positive pairs, or the raw values of all rows")
    name: ClassVar[str] = "ials"
    summary: ClassVar[str] = "Factors of ratings or positives by exact alternating least squares."

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        by_user = matrix_of(log, self.rows)
        if by_user.data.min() < 0:
            raise InputError(
                f"{log.source}: values down to {by_user.data.min():g}; {self.name} needs values from 0, as they are "
                "confidences too. Shift them, or learn from positives: rows=positives."
            )
        check_factors(self.name, log, self.factors, bytes_each=8.0)
        check_size(
            f"{self.name} with {self.factors:,} factors, of which each round solves {self.factors:,} equations,",
            memory=16.0 * self.factors**2,
            instead="Take fewer factors.",
        )
        by_item = by_user.T.tocsr()
        user, item = (_start(keys, self.factors, seed=seed) for keys in (log.users.keys(), log.items.keys()))
        with watching(progress) as say, one_thread():
            for round_ in range(self.iterations):
                item = self._solved(by_item, user)
                user = self._solved(by_user, item)
                if say is not None:
                    say("fitting ials", round_ + 1, self.iterations)
        return factors(user, item, users=log.users, items=log.items)

    def _solved(self, rows: Any, other: Floats) -> Floats:
        """The best factors of one side given the other's: (QᵀQ + λI + Σ (c-1) q qᵀ) p = Σ c r q for each row."""
        size, listing = other.shape[1], np.diff(rows.indptr)
        base = other.T @ other + self.regularisation * np.eye(size)
        result = np.zeros((rows.shape[0], size))
        few = listing <= FEW * size
        self._solve_few(rows, other, base, np.flatnonzero((listing > 0) & few), result)
        for block in _blocks(np.flatnonzero(~few)):
            left, right = np.empty((len(block), size, size)), np.empty((len(block), size, 1))
            for index, row in enumerate(block):
                listed = slice(rows.indptr[row], rows.indptr[row + 1])
                q, r = other[rows.indices[listed]], rows.data[listed]
                left[index] = base + (q * (self.alpha * r)[:, None]).T @ q
                right[index, :, 0] = ((1 + self.alpha * r) * r) @ q
            result[block] = np.linalg.solve(left, right)[:, :, 0]
        return result

    def _solve_few(self, rows: Any, other: Floats, base: Floats, few: Ints, result: Floats) -> None:
        """The same for rows that list few, by Woodbury's identity: a system as large as the list, not as the factors.

        With B the inverse of QᵀQ + λI, M = q B qᵀ among what is listed and D = diag(c - 1), the factors are
        B qᵀ (z - √D (I + √D M √D)⁻¹ √D M z), z = c r.
        """
        if not len(few):
            return
        turned = np.ascontiguousarray(np.linalg.solve(base, other.T).T)  # B q of everything
        listing = np.diff(rows.indptr)[few]
        for n in np.unique(listing):
            for block in _blocks(few[listing == n], max(1, min(TOGETHER, CELLS // (int(n) * len(base))))):
                listed = rows.indptr[block][:, None] + np.arange(n)
                index, r = rows.indices[listed], rows.data[listed]
                z, root = (1 + self.alpha * r) * r, np.sqrt(self.alpha * r)
                m = turned[index] @ other[index].transpose(0, 2, 1)
                left = np.eye(n) + root[:, :, None] * m * root[:, None, :]
                right = root[:, :, None] * (m @ z[:, :, None])
                z -= root * np.linalg.solve(left, right)[:, :, 0]
                result[block] = (z[:, None, :] @ turned[index])[:, 0]


def _start(keys: Keys, size: int, *, seed: int) -> Floats:
    """U(0, 1/√K), a function of the seed and the id."""
    cell = np.repeat(keys, size), np.tile(np.arange(size, dtype=np.uint64), len(keys))
    uniform: Floats = cell_uniforms(seed, "ials", *cell).reshape(len(keys), size)
    return np.asarray(uniform / np.sqrt(size))


def _blocks(rows: Ints, size: int = TOGETHER) -> Iterator[Ints]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


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
