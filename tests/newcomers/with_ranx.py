"""ranx: dicts of judgements and of scores; its own numbers, and the same by truerank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RATINGS = Path(__file__).parent / "ratings.csv"
K = 10


def dicts() -> dict[str, Any]:
    """What everybody has who uses ranx: {query: {document: grade}} and {query: {document: score}}."""
    import pandas as pd

    ratings = pd.read_csv(RATINGS, dtype={"userId": str, "movieId": str})
    popularity = ratings["movieId"].value_counts().to_dict()
    order = {item: score + at / 1000 for at, (item, score) in enumerate(sorted(popularity.items()))}  # no ties
    qrels = {user: dict(zip(part["movieId"], (2 * part["rating"]).astype(int), strict=True))
             for user, part in ratings.groupby("userId")}  # fmt: skip
    run = {user: {item: order[item] + len(set(item) & set(user)) for item in sorted(order)[at % 5 :: 2]}
           for at, user in enumerate(qrels)}  # fmt: skip
    return {"qrels": qrels, "run": run}


def theirs() -> dict[str, Any]:
    from ranx import Qrels, Run, evaluate

    made = dicts()
    named = {
        "Recall": "recall", "Precision": "precision", "nDCG": "ndcg", "RR": "mrr", "AP": "map", "HitRate": "hit_rate",
    }  # fmt: skip
    found = evaluate(Qrels(made["qrels"]), Run(made["run"]), [f"{name}@{K}" for name in named.values()])
    return {**made, "numbers": {f"{ours}@{K}": float(found[f"{name}@{K}"]) for ours, name in named.items()}}


def ours(qrels: Any, run: Any) -> Any:
    """The dicts as they are."""
    import truerank as tr

    metrics = [f"{name}@{K}" for name in ("Recall", "Precision", "nDCG", "RR", "AP", "HitRate")]
    return tr.evaluate({"popular": run}, qrels, like="ranx", metrics=metrics)


if __name__ == "__main__":
    made = theirs()
    print(made.pop("numbers"))  # noqa: T201
    print(ours(**made))  # noqa: T201
