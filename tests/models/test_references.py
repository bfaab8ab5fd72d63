"""Every model against its definition in plain dense arithmetic, or against the library that fits it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import truerank as tr
from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.core.rng import cell_keys, library_seed
from truerank.models.baselines import AvgRating, PosPop
from truerank.models.least_squares import EASE, IALS
from truerank.models.libraries import ALS, BPR, LightFM, LightFMLoss
from truerank.models.neighbours import KUNN, SAR, ItemKNN, Occurrence, Preference, Similarity, UserKNN

N_USERS, N_ITEMS = 40, 25


@cache
def ratings() -> Floats:
    """Ratings 1 to 5, 0 where there is none; the last user and the last item have none."""
    rng = np.random.default_rng(4)
    matrix = rng.integers(1, 6, size=(N_USERS, N_ITEMS)) * (rng.random((N_USERS, N_ITEMS)) < 0.3)
    matrix[-1], matrix[:, -1] = 0, 0
    return matrix.astype(np.float64)


@cache
def log() -> Log:
    user, item = np.nonzero(ratings())
    frame = pl.DataFrame({"user": user, "item": item, "rating": ratings()[user, item]})
    return tr.read(frame, positive=">3", users=np.arange(N_USERS), items=np.arange(N_ITEMS))


def liked() -> Floats:
    return (ratings() > 3).astype(np.float64)


def all_scores(scores: Scores) -> Floats:
    return np.asarray(scores.block(np.arange(len(scores.users))), dtype=np.float64)


def brute_cosine(rows: Floats) -> Floats:
    """Row against row; 0 with itself and where a row is empty."""
    n = len(rows)
    found = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            norm = np.sqrt((rows[a] @ rows[a]) * (rows[b] @ rows[b]))
            found[a, b] = 0.0 if a == b or norm == 0 else rows[a] @ rows[b] / norm
    return found


def keep_nearest(similar: Floats, k: int, *, seed: int = 0) -> Floats:
    """Of each row the k largest; equals come in the order of their keys."""
    kept = np.zeros_like(similar)
    key = np.arange(len(similar), dtype=np.uint64)
    for row, values in enumerate(similar):
        drawn = cell_keys(seed, "neighbours", np.full(len(key), key[row]), key)
        chosen = [at for at in np.lexsort((drawn, -values.round(12)))[:k] if values[at] > 0]
        kept[row, chosen] = values[chosen]
    return kept


@pytest.mark.parametrize("rows", list(Preference))
@pytest.mark.parametrize("k", [1, 5, 100])
def test_item_knn(rows: Preference, k: int) -> None:
    matrix = liked() if rows is Preference.POSITIVES else ratings()
    expected = matrix @ keep_nearest(brute_cosine(matrix.T), k)
    found = all_scores(ItemKNN(k, rows).fit(log(), seed=0))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rows", list(Preference))
@pytest.mark.parametrize("k", [1, 5, 100])
def test_user_knn(rows: Preference, k: int) -> None:
    matrix = liked() if rows is Preference.POSITIVES else ratings()
    expected = keep_nearest(brute_cosine(matrix), k) @ matrix
    found = all_scores(UserKNN(k, rows).fit(log(), seed=0))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("similarity", list(Similarity))
@pytest.mark.parametrize("occurrence", list(Occurrence))
def test_sar(similarity: Similarity, occurrence: Occurrence) -> None:
    rows = liked() if occurrence is Occurrence.POSITIVES else (ratings() > 0).astype(np.float64)
    together = rows.T @ rows
    n = np.diag(together)
    with np.errstate(invalid="ignore", divide="ignore"):
        if similarity is Similarity.COSINE:
            similar = together / np.sqrt(np.outer(n, n))
        else:
            similar = together / (n[:, None] + n[None, :] - together)
    expected = liked() @ np.nan_to_num(similar)
    found = all_scores(SAR(similarity, occurrence).fit(log(), seed=0))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("regularisation", [0.5, 100.0])
def test_ease(regularisation: float) -> None:
    matrix = liked()
    inverse = np.linalg.inv(matrix.T @ matrix + regularisation * np.eye(N_ITEMS))
    weights = np.eye(N_ITEMS) - inverse @ np.diag(1 / np.diag(inverse))
    found = all_scores(EASE(regularisation).fit(log(), seed=0))
    np.testing.assert_allclose(found, matrix @ weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("k_users", "k_items"), [(1, 1), (6, 3), (100, 100)])
def test_kunn(k_users: int, k_items: int) -> None:
    matrix = liked()
    of_user, of_item = matrix.sum(axis=1), matrix.sum(axis=0)
    users, items = np.zeros((N_USERS, N_USERS)), np.zeros((N_ITEMS, N_ITEMS))
    for u in range(N_USERS):
        for v in range(N_USERS):
            for i in range(N_ITEMS):
                if u != v and matrix[u, i] * matrix[v, i]:
                    users[u, v] += 1 / np.sqrt(of_user[u] * of_user[v] * of_item[i])
    for i in range(N_ITEMS):
        for j in range(N_ITEMS):
            for u in range(N_USERS):
                if i != j and matrix[u, i] * matrix[u, j]:
                    items[i, j] += 1 / np.sqrt(of_item[i] * of_item[j] * of_user[u])
    users, items = keep_nearest(users, k_users), keep_nearest(items, k_items)
    expected = np.zeros((N_USERS, N_ITEMS))
    for u in range(N_USERS):
        for i in range(N_ITEMS):
            if of_item[i]:
                expected[u, i] += sum(matrix[v, i] * users[u, v] for v in range(N_USERS)) / np.sqrt(of_item[i])
            if of_user[u]:
                # the neighbours are those of the target i
                expected[u, i] += sum(matrix[u, j] * items[i, j] for j in range(N_ITEMS)) / np.sqrt(of_user[u])
    found = all_scores(KUNN(k_users, k_items).fit(log(), seed=0))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_als_is_implicits() -> None:
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(
            factors=8, iterations=12, regularization=0.3, random_state=library_seed(5, "als"), num_threads=1
        )
        model.fit(csr_matrix(liked() * (1 + 4.0), dtype=np.float32), show_progress=False)
    found = all_scores(ALS(factors=8, iterations=12, regularisation=0.3, alpha=4.0).fit(log(), seed=5))
    np.testing.assert_allclose(found, model.user_factors @ model.item_factors.T, rtol=1e-4, atol=1e-5)


def test_bpr_is_implicits() -> None:
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    model = BayesianPersonalizedRanking(
        factors=8, iterations=20, regularization=0.02, learning_rate=0.1, num_threads=1,
        random_state=library_seed(5, "bpr"),
    )  # fmt: skip
    model.fit(csr_matrix(liked(), dtype=np.float32), show_progress=False)
    scores = BPR(factors=8, iterations=20, regularisation=0.02, learning_rate=0.1).fit(log(), seed=5)
    np.testing.assert_allclose(all_scores(scores), model.user_factors @ model.item_factors.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", list(Preference))
def test_ials_solves_its_objective(rows: Preference) -> None:
    """At the end the gradient of Σ c (r - p·q)² + λ(Σ‖p‖² + Σ‖q‖²) vanishes, and nothing near is lower."""
    r = liked() if rows is Preference.POSITIVES else ratings()
    scores = IALS(factors=4, iterations=300, regularisation=2.0, alpha=0.5, rows=rows).fit(log(), seed=5)
    p, q = (side.astype(np.float64) for side in (scores.user, scores.item))
    c = 1 + 0.5 * r

    def loss(p: Any, q: Any) -> float:
        return float((c * (r - p @ q.T) ** 2).sum() + 2.0 * ((p**2).sum() + (q**2).sum()))

    gradient = -2 * (c * (r - p @ q.T)) @ q + 2 * 2.0 * p
    assert np.abs(gradient).max() < 1e-3
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert loss(p + 0.05 * rng.normal(size=p.shape), q + 0.05 * rng.normal(size=q.shape)) > loss(p, q)


def test_lightfm_is_the_librarys() -> None:
    from lightfm import LightFM as Library
    from scipy.sparse import coo_matrix

    for loss in LightFMLoss:
        model = Library(
            no_components=6, loss=loss.value, learning_schedule="adadelta", user_alpha=1e-4,
            item_alpha=1e-5, random_state=library_seed(5, "lightfm"),
        )  # fmt: skip
        model.fit(coo_matrix(liked(), dtype=np.float32), epochs=7, num_threads=1)
        scores = LightFM(6, loss, epochs=7, user_alpha=1e-4, item_alpha=1e-5).fit(log(), seed=5)
        user, item = np.repeat(np.arange(N_USERS), N_ITEMS), np.tile(np.arange(N_ITEMS), N_USERS)
        expected = model.predict(user, item).reshape(N_USERS, N_ITEMS) - model.user_biases[:, None]
        known = liked().any(axis=1)
        np.testing.assert_allclose(all_scores(scores)[known], expected[known], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(all_scores(scores)[~known], np.tile(model.item_biases, (int((~known).sum()), 1)))


def test_pos_pop_and_avg_rating() -> None:
    matrix = ratings()
    assert (all_scores(PosPop(2.0).fit(log(), seed=0)) == (matrix > 2).sum(axis=0)).all()
    with np.errstate(invalid="ignore"):
        mean = matrix.sum(axis=0) / (matrix > 0).sum(axis=0)
    found = all_scores(AvgRating().fit(log(), seed=0))
    assert (found[:, :-1] == mean[:-1]).all()
    assert (found[:, -1] == np.nanmin(mean) - 1).all()
    labels = tr.read(pl.DataFrame({"user": [1, 2], "item": [7, 8], "label": [1, 0]}))
    assert all_scores(PosPop().fit(labels, seed=0))[0].tolist() == [1.0, 0.0]
