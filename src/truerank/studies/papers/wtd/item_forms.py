"""IB_KNN with the similarities that the paper may have used: it names none, and its truth hangs on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.ids import Ids
from truerank.metrics.recall import Recall
from truerank.models.neighbours import Preference, matrix_of
from truerank.ranks.candidates import Setting
from truerank.ranks.scores.scores import dense
from truerank.studies.papers.wtd.shapes import WtdShape, split_of
from truerank.studies.papers.wtd.tested import K, laid_out, values_on
from truerank.studies.work import StudySource


@dataclass(frozen=True, slots=True)
class FormsRun:
    """Recall at 10 on the truth and on FULL of each form, its number of neighbours chosen on the random part."""

    source: StudySource
    shape: WtdShape
    seed: int
    run: int

    @property
    def name(self) -> str:
        return f"forms {self.run}"

    def table(self) -> pl.DataFrame:
        split = split_of(self.source, self.shape, seed=self.seed, run=self.run)
        train = split.train
        parts = [laid_out(each, train) for each in (split.validation, split.truth, split.heldout)]
        rating = matrix_of(train, Preference.VALUES).toarray()

        def recall(score: Floats, setting: Setting) -> float:
            return _recall(score, setting, users=train.users, items=train.items)

        rows = []
        for form, similarity, value in forms(rating):
            scores = [value @ nearest(similarity, k) for k in self.shape.neighbours]
            best = max(scores, key=lambda score: recall(score, parts[0]))
            rows.append((form, recall(best, parts[1]), recall(best, parts[2])))
        return pl.DataFrame(rows, schema=["form", "truth", "full"], orient="row")


def forms(rating: Floats) -> Iterator[tuple[str, Floats, Floats]]:
    """Name, similarity of items, and what a user's items are worth; 0 is no rating."""
    rated = (rating > 0).astype(np.float64)
    liked = (rating > 3).astype(np.float64)
    mean = rating.sum(axis=1) / np.maximum(rated.sum(axis=1), 1)
    centred = (rating - mean[:, None]) * rated
    yield "cosine of ratings", cosine(rating), rating
    yield "cosine of who rated", cosine(rated), rating
    yield "Jaccard of who rated", jaccard(rated), rating
    yield "cosine of who liked", cosine(liked), liked
    yield "adjusted cosine", cosine(centred), rating
    yield "adjusted cosine, centred ratings", cosine(centred), centred


def cosine(columns: Floats) -> Floats:
    """Cosines of columns; of one without numbers, and with itself, 0.

    >>> cosine(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])).round(3).tolist()
    [[0.0, 0.707, 0.0], [0.707, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    norm = np.linalg.norm(columns, axis=0)
    return _without_self((columns.T @ columns) / np.maximum(np.outer(norm, norm), np.finfo(float).tiny))


def jaccard(columns: Floats) -> Floats:
    """Rows that two columns share, of those that one of them has."""
    both = columns.T @ columns
    own = np.diag(both)
    return _without_self(both / np.maximum(own[:, None] + own - both, 1))


def nearest(similarity: Floats, k: int) -> Floats:
    """The k largest of each row, if above 0; equals in the order of items.

    >>> nearest(np.array([[0.0, 0.5, 0.2]]), 1).tolist()
    [[0.0, 0.5, 0.0]]
    """
    kept = np.zeros_like(similarity)
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    np.put_along_axis(kept, best, np.take_along_axis(similarity, best, axis=1), axis=1)
    return np.maximum(kept, 0.0)


def _without_self(similarity: Floats) -> Floats:
    found = similarity.copy()
    np.fill_diagonal(found, 0.0)
    return found


def _recall(score: Floats, setting: Setting, *, users: Ids, items: Ids) -> float:
    scores = dense(score, users=users.values, items=items.values)
    return float(np.nanmean(values_on(scores, setting, [Recall(K)])[0]))
