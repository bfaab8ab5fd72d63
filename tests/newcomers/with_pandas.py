"""pandas alone: a table of ratings, the most popular films for everybody, and Recall@10 by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RATINGS = Path(__file__).parent / "ratings.csv"
K = 10


def theirs() -> dict[str, Any]:
    """A split by time, ten popular films that a user has not seen, and what a merge says of them."""
    import pandas as pd

    ratings = pd.read_csv(RATINGS).sort_values("timestamp", kind="stable")
    cut = int(0.8 * len(ratings))
    train, test = ratings.iloc[:cut], ratings.iloc[cut:]
    popular = train["movieId"].value_counts(sort=False).rename("score").reset_index()
    lists = test[["userId"]].drop_duplicates().merge(popular, how="cross")
    lists = lists.merge(train[["userId", "movieId"]], how="left", indicator=True)
    lists = lists[lists["_merge"] == "left_only"].drop(columns="_merge")
    lists = lists.sort_values(["userId", "score", "movieId"], ascending=[True, False, True])
    lists["rank"] = lists.groupby("userId").cumcount() + 1
    lists = lists[lists["rank"] <= K]
    hits = test.merge(lists, on=["userId", "movieId"]).groupby("userId").size()
    found = hits.reindex(test["userId"].unique(), fill_value=0)
    numbers = {
        f"Recall@{K}": float((found / test.groupby("userId").size()).mean()),
        f"Precision@{K}": float((found / K).mean()),
        f"HitRate@{K}": float((found > 0).mean()),
    }
    return {"train": train, "test": test, "lists": lists, "numbers": numbers}


def ours(train: Any, test: Any, lists: Any) -> Any:
    """The same with truerank: the frames as they are, every rating a relevant film."""
    import truerank as tr

    return tr.evaluate(
        {"popular": lists}, tr.read(test, positive="all"), exclude=train, exposure="holdout",
        metrics=[f"Recall@{K}", f"Precision@{K}", f"HitRate@{K}"],
    )  # fmt: skip


if __name__ == "__main__":
    made = theirs()
    print(made.pop("numbers"))  # noqa: T201
    print(ours(**made))  # noqa: T201
