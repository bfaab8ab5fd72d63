"""SAR: items that occur together with those the user liked."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, vstack

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.core.ranking import Scores
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.matrix import counts, listed, positives
from truerank.models.neighbours import cosine, together
from truerank.models.settings import setting
from truerank.ranking.scores.scores import Function, Matrix, Product, per_user


class Similarity(StrEnum):
    """How alike two items are, c_ij the users that have both.

    COSINE   c_ij / √(c_ii c_jj)
    JACCARD  c_ij / (c_ii + c_jj - c_ij)
    """

    COSINE = "cosine"
    JACCARD = "jaccard"


class Occurrence(StrEnum):
    """Which rows count as occurring together: positive ones, or all that are listed."""

    POSITIVES = "positives"
    ROWS = "rows"


class Zeros(StrEnum):
    """What happens to scores of 0: they stay tied, or get noise in (0, 0.01) while all others rise by 0.02."""

    TIED = "tied"
    NOISE = "noise"


@record
class SAR(Model):
    """s_u(i) = Σ_j a_uj S_ji, a_uj the number of positive rows of the pair, S the similarity of items.

    SAR of Microsoft Recommenders without time decay: all similarities count, an item's with itself too. Names for the
    two readings of the study "sampled evaluation": `SAR.published()` counts co-occurrence on positives;
    `SAR.released()` on all rows, negative ones too, and breaks ties at 0 by seeded noise. A user or an item without
    rows scores 0.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [7, 7, 8]}))
    >>> SAR(Similarity.JACCARD).fit(log, seed=0).block([0, 1]).tolist()
    [[1.0, 0.5], [1.5, 1.5]]
    """

    similarity: Similarity = setting(Similarity.COSINE, "how alike two items are")
    occurrence: Occurrence = setting(Occurrence.POSITIVES, "rows that count as occurring together")
    zeros: Zeros = setting(Zeros.TIED, "scores of 0 stay tied, or get seeded noise")
    name: ClassVar[str] = "sar"
    summary: ClassVar[str] = "Items that occur together with those the user liked: cosine or Jaccard, all of them."

    @classmethod
    def published(cls, similarity: Similarity = Similarity.COSINE) -> SAR:
        """As the paper says."""
        return cls(similarity)

    @classmethod
    def released(cls, similarity: Similarity = Similarity.COSINE) -> SAR:
        """As the paper's code does."""
        return cls(similarity, Occurrence.ROWS, Zeros.NOISE)

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Scores:
        affinity = counts(log)
        rows = positives(log) if self.occurrence is Occurrence.POSITIVES else listed(log)
        alike = cosine if self.similarity is Similarity.COSINE else _jaccard
        with watching(progress) as report:
            columns, parts = rows.T.tocsr(), []
            n = np.diff(columns.indptr).astype(np.float64)
            for first, block in together(columns):
                if report is not None:
                    report("comparing items", first, columns.shape[0])
                parts.append(alike(block, first, n))
        similar = csr_array(vstack(parts, format="csr"))
        scores = Product(affinity, similar, log.users, log.items)
        return scores if self.zeros is Zeros.TIED else _noisy(scores, seed=seed)


def _jaccard(block: Any, first: int, n: Floats) -> Any:
    row = first + np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    value = block.data / (n[row] + n[block.indices] - block.data)
    return csr_array((value, block.indices, block.indptr), shape=block.shape)


def _noisy(scores: Product, *, seed: int) -> Function:
    user_key, item_key = scores.users.keys(), scores.items.keys()

    def call(row: int) -> Matrix:
        values = scores.block(np.array([row]))[0]
        noise = cell_uniforms(seed, "sar zeros", np.full(len(item_key), user_key[row]), item_key)
        return np.where(values == 0, 0.01 * noise, values + 0.02)

    return per_user(call, users=scores.users, items=scores.items, name=SAR.name)
