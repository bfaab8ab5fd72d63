"""RecBole: its files, a model, its top lists; its own numbers, and the same by truerank."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

RATINGS = Path(__file__).parent / "ratings.csv"
K = 10
HEAD = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"


def files(folder: Path) -> Path:
    """The three parts of a dataset called films, in RecBole's layout; for each user the last row is the test."""
    rows = [line.split(",") for line in RATINGS.read_text().splitlines()[1:]]
    rows.sort(key=lambda row: (int(row[0]), int(row[3]), int(row[1])))
    parts: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    for at, row in enumerate(rows):
        left = sum(other[0] == row[0] for other in rows[at : at + 5])  # rows of this user from here on
        parts["test" if left <= 3 else "valid" if left == 4 else "train"].append("\t".join(row) + "\n")
    place = folder / "films"
    place.mkdir()
    for name, lines in parts.items():
        (place / f"films.{name}.inter").write_text(HEAD + "".join(lines))
    return place


def theirs(folder: Path) -> dict[str, Any]:
    """Item kNN; what `full_sort_topk` returns, and what RecBole's own evaluation says."""
    import numpy as np
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.model.general_recommender import ItemKNN
    from recbole.trainer import Trainer
    from recbole.utils.case_study import full_sort_topk

    named = {"Recall": "recall", "Precision": "precision", "nDCG": "ndcg", "RR": "mrr", "AP": "map", "HitRate": "hit"}
    settings = {
        "data_path": str(folder), "benchmark_filename": ["train", "valid", "test"], "use_gpu": False,
        "load_col": {"inter": ["user_id", "item_id"]}, "topk": [K], "metric_decimal_place": 15, "epochs": 1,
        "metrics": ["Recall", "Precision", "NDCG", "MRR", "MAP", "Hit"], "valid_metric": f"Recall@{K}",
        "eval_args": {"mode": "full", "order": "RO", "group_by": "user"}, "show_progress": False,
        "checkpoint_dir": str(folder / "saved"),
    }  # fmt: skip
    config = Config(model="ItemKNN", dataset="films", config_dict=settings)
    dataset = create_dataset(config)
    train, _, test = data_preparation(config, dataset)
    model = ItemKNN(config, train.dataset)
    found = Trainer(config, model).evaluate(test, load_best_model=False)
    users = np.arange(1, dataset.user_num)
    top = full_sort_topk(users, model, test, k=K)
    numbers = {f"{ours}@{K}": float(found[f"{name}@{K}"]) for ours, name in named.items()}
    return {"top": top, "dataset": dataset, "users": users, "numbers": numbers}


def ours(folder: Path, top: Any, dataset: Any, users: Any) -> Any:
    """RecBole's tensors and files as they are."""
    import truerank as tr

    metrics = [f"{name}@{K}" for name in ("Recall", "Precision", "nDCG", "RR", "AP", "HitRate")]
    return tr.evaluate(
        {"item-knn": tr.models.from_recbole(top, dataset, users=users)},
        folder / "films" / "films.test.inter",
        exclude=folder / "films" / "films.train.inter",
        like="recbole",
        metrics=metrics,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        files(Path(place))
        made = theirs(Path(place))
        print(made.pop("numbers"))  # noqa: T201
        print(ours(Path(place), **made))  # noqa: T201
