"""Models by least squares: EASE, linear and in closed form; iALS, factors by alternating least squares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

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
from truerank.core.values import Count, NotNegative, Positive
from truerank.models import NOTHING_BESIDE, Model, Side
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

    factors: Annotated[Count, "numbers that describe a user or an item"] = 20
    iterations: Annotated[Count, "rounds of both sides"] = 20
    regularisation: Annotated[Positive, "λ"] = 0.1
    alpha: Annotated[NotNegative, "α: how much a listed pair counts more than an unlisted one"] = 1.0
    rows: Annotated[Preference, "what r is: 1 for positive pairs, or the raw values of all rows"] = Preference.POSITIVES
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
        """The best factors of one side given the other's: (QᵀQ + λI + Σ (c-1) q qᵀ) p = Σ c r q for each row.

        A row that lists few is solved in the space of what it lists, by Woodbury's identity: with B the inverse of
        QᵀQ + λI, M = q B qᵀ among what is listed, D = diag(c - 1) and z = c r, the factors are
        B qᵀ (z - √D (I + √D M √D)⁻¹ √D M z). Rows that list as many as each other are solved together.
        """
        size, listing = other.shape[1], np.diff(rows.indptr)
        base = other.T @ other + self.regularisation * np.eye(size)
        turned = np.ascontiguousarray(np.linalg.solve(base, other.T).T)  # B q of everything
        result = np.zeros((rows.shape[0], size))
        for n in np.unique(listing[listing > 0]):
            for block in _blocks(np.flatnonzero(listing == n), max(1, min(TOGETHER, CELLS // (int(n) * size)))):
                listed = rows.indptr[block][:, None] + np.arange(n)
                index, r = rows.indices[listed], rows.data[listed]
                q, excess, z = other[index], self.alpha * r, (1 + self.alpha * r) * r
                if n > FEW * size:
                    left = base + (q * excess[:, :, None]).transpose(0, 2, 1) @ q
                    result[block] = np.linalg.solve(left, (z[:, None, :] @ q).transpose(0, 2, 1))[:, :, 0]
                    continue
                root, m = np.sqrt(excess), turned[index] @ q.transpose(0, 2, 1)
                left = np.eye(n) + root[:, :, None] * m * root[:, None, :]
                z -= root * np.linalg.solve(left, root[:, :, None] * (m @ z[:, :, None]))[:, :, 0]
                result[block] = (z[:, None, :] @ turned[index])[:, 0]
        return result


def _start(keys: Keys, size: int, *, seed: int) -> Floats:
    """U(0, 1/√K), a function of the seed and the id."""
    cell = np.repeat(keys, size), np.tile(np.arange(size, dtype=np.uint64), len(keys))
    uniform: Floats = cell_uniforms(seed, "ials", *cell).reshape(len(keys), size)
    return np.asarray(uniform / np.sqrt(size))


def _blocks(rows: Ints, size: int) -> Iterator[Ints]:
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

    regularisation: Annotated[Positive, "λ"] = 100.0
    name: ClassVar[str] = "ease"
    summary: ClassVar[str] = "A linear model of items on items in closed form."

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Product:
        liked = positives(log)
        n = len(log.items)
        check_size(
            f"{self.name} of {n:,} items, whose weights are {n:,} x {n:,} numbers,",
            memory=17.0 * n * n,  # the inverse, its other half, and which that is
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
        np.copyto(inverse, inverse.T, where=np.tri(n, dtype=bool).T)  # what is below the diagonal, above it too
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
