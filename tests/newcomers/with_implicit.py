"""implicit: a matrix, a model, its recommendations; its own numbers, and the same by truerank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RATINGS = Path(__file__).parent / "ratings.csv"
K = 10


def theirs() -> dict[str, Any]:
    """ALS on a train part; what `recommend` returns, and what implicit's own evaluation says."""
    import numpy as np
    import pandas as pd
    from implicit.als import AlternatingLeastSquares
    from implicit.evaluation import ranking_metrics_at_k, train_test_split
    from scipy.sparse import coo_matrix
    from threadpoolctl import threadpool_limits

    ratings = pd.read_csv(RATINGS)
    user, users = pd.factorize(ratings["userId"])
    item, items = pd.factorize(ratings["movieId"])
    train, test = train_test_split(coo_matrix((np.ones(len(user)), (user, item))), 0.8, random_state=1)
    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(factors=8, random_state=1, num_threads=1)
        model.fit(train, show_progress=False)
        ids, scores = model.recommend(np.arange(len(users)), train, N=K)
        found = ranking_metrics_at_k(model, train, test, K=K, show_progress=False, num_threads=1)
    numbers = {f"AP@{K}": float(found["map"]), f"nDCG@{K}": float(found["ndcg"])}
    return {
        "train": train, "test": test, "model": model, "ids": ids, "scores": scores, "users": users, "items": items,
        "numbers": numbers,
    }  # fmt: skip


def ours(train: Any, test: Any, model: Any, ids: Any, scores: Any, users: Any, items: Any) -> Any:
    """The matrices and arrays as they are, under the ids that their rows and columns stand for."""
    import truerank as tr

    held_out, seen = (tr.read(matrix, users=users, items=items) for matrix in (test, train))
    return tr.evaluate(
        {
            "als, its lists": tr.scores.top(ids, scores, users=users, items=items),
            "als, its factors": tr.models.from_implicit(model, users=users, items=items),
        },
        held_out, exclude=seen, like="implicit", metrics=[f"AP@{K}", f"nDCG@{K}"],
    )  # fmt: skip


if __name__ == "__main__":
    made = theirs()
    print(made.pop("numbers"))  # noqa: T201
    print(ours(**made))  # noqa: T201
