"""LensKit: a split, a pipeline, its lists of items; its own numbers, and the same by truerank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RATINGS = Path(__file__).parent / "ratings.csv"
K = 10


def theirs() -> dict[str, Any]:
    """Item kNN on a train part; what `batch.recommend` returns, and what LensKit's own metrics say."""
    import pandas as pd
    from lenskit import batch, topn_pipeline
    from lenskit.data import from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.metrics import NDCG, Hit, Precision, Recall, RecipRank, RunAnalysis
    from lenskit.splitting import SampleFrac, sample_users

    ratings = pd.read_csv(RATINGS).rename(columns={"userId": "user_id", "movieId": "item_id"})
    split = sample_users(from_interactions_df(ratings), 40, SampleFrac(0.3, rng=1), rng=1)
    pipeline = topn_pipeline(ItemKNNScorer(max_nbrs=10, feedback="implicit"))
    pipeline.train(split.train)
    lists = batch.recommend(pipeline, split.test, K, n_jobs=1)
    analysis = RunAnalysis()
    named = {"Recall": Recall(K), "Precision": Precision(K), "nDCG": NDCG(K), "RR": RecipRank(K), "HitRate": Hit(K)}
    for name, metric in named.items():
        analysis.add_metric(metric, label=name)
    found = analysis.measure(lists, split.test).list_summary()["mean"]
    numbers = {f"{name}@{K}": float(found[name]) for name in named}
    return {"train": split.train, "test": split.test, "lists": lists, "numbers": numbers}


def ours(train: Any, test: Any, lists: Any) -> Any:
    """LensKit's own objects as they are."""
    import truerank as tr

    metrics = [f"{name}@{K}" for name in ("Recall", "Precision", "nDCG", "RR", "HitRate")]
    return tr.evaluate({"item-knn": lists}, test, exclude=train, like="lenskit", metrics=metrics)


if __name__ == "__main__":
    made = theirs()
    print(made.pop("numbers"))  # noqa: T201
    print(ours(**made))  # noqa: T201
