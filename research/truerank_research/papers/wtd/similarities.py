"""IB_KNN with the similarities that the paper may have used: it names none, and its recall depends on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.metrics.recall import Recall
from truerank.models.neighbours import Preference, matrix_of
from truerank.ranking.candidates import Setting as Layout
from truerank.ranking.scores.scores import dense
from truerank_research.papers.wtd.runs import K, lay_out_test, values_on
from truerank_research.papers.wtd.setting import shape_of, split_of
from truerank_research.runner import Setting


def compare_similarities(setting: Setting, number: int) -> pl.DataFrame:
    """Recall@10 on the truth and on FULL with each similarity; neighbours chosen on the random validation part."""
    split = split_of(setting, number)
    train = split.train
    validation, truth, full = (lay_out_test(log, train) for log in (split.validation, split.truth, split.heldout))

    def recall(score: Floats, test: Layout) -> float:
        scores = dense(score, users=train.users.values, items=train.items.values)
        return float(np.nanmean(values_on(scores, test, [Recall(K)])[0]))

    rows = []
    for name, similarity, value in similarities(matrix_of(train, Preference.VALUES).toarray()):
        scores = [value @ nearest(similarity, k) for k in shape_of(setting).neighbours]
        best = max(scores, key=lambda score: recall(score, validation))
        rows.append((name, recall(best, truth), recall(best, full)))
    return pl.DataFrame(rows, schema=["similarity", "truth", "full"], orient="row")


def similarities(rating: Floats) -> Iterator[tuple[str, Floats, Floats]]:
    """Name, similarity of items, and the weights of a user's items; 0 is no rating."""
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
    count = np.diag(both)
    return _without_self(both / np.maximum(count[:, None] + count - both, 1))


def nearest(similarity: Floats, k: int) -> Floats:
    """The k largest of each row, if above 0; equals in the order of items.

    >>> nearest(np.array([[0.0, 0.5, 0.2]]), 1).tolist()
    [[0.0, 0.5, 0.0]]
    """
    largest = np.zeros_like(similarity)
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    np.put_along_axis(largest, best, np.take_along_axis(similarity, best, axis=1), axis=1)
    return np.maximum(largest, 0.0)


def _without_self(similarity: Floats) -> Floats:
    other = similarity.copy()
    np.fill_diagonal(other, 0.0)
    return other
