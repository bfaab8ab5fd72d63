"""RecTools: a dataset, a model, its table of recommendations; its own numbers, and the same by truerank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RATINGS = Path(__file__).parent / "ratings.csv"
K = 10


def theirs() -> dict[str, Any]:
    """EASE on a train part; what `recommend` returns, and what RecTools' own metrics say."""
    import pandas as pd
    from rectools import Columns
    from rectools.dataset import Dataset
    from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall, calc_metrics
    from rectools.models import EASEModel

    ratings = pd.read_csv(RATINGS)
    ratings.columns = [Columns.User, Columns.Item, Columns.Weight, Columns.Datetime]
    ratings[Columns.Datetime] = pd.to_datetime(ratings[Columns.Datetime], unit="s")
    late = ratings[Columns.Datetime] >= ratings[Columns.Datetime].quantile(0.8)
    train, test = ratings[~late], ratings[late]
    dataset = Dataset.construct(train)
    model = EASEModel(regularization=5.0).fit(dataset)
    known = test[Columns.User].isin(train[Columns.User])
    test = test[known]
    lists = model.recommend(test[Columns.User].unique(), dataset, k=K, filter_viewed=True)
    metrics = {"Recall": Recall(K), "Precision": Precision(K), "nDCG": NDCG(K), "RR": MRR(K), "AP": MAP(K)}
    found = calc_metrics({**metrics, "HitRate": HitRate(K)}, reco=lists, interactions=test)
    numbers = {f"{name}@{K}": float(value) for name, value in found.items()}
    return {"train": train, "test": test, "lists": lists, "numbers": numbers}


def ours(train: Any, test: Any, lists: Any) -> Any:
    """RecTools' own tables as they are."""
    import truerank as tr

    metrics = [f"{name}@{K}" for name in ("Recall", "Precision", "nDCG", "RR", "AP", "HitRate")]
    return tr.evaluate({"ease": lists}, test, exclude=train, like="rectools", metrics=metrics)


if __name__ == "__main__":
    made = theirs()
    print(made.pop("numbers"))  # noqa: T201
    print(ours(**made))  # noqa: T201
