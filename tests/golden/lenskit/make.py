"""What LensKit says about the golden input."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from golden_values import CUTOFFS, Case, Values, store


def answers(case: Case) -> dict[str, Values]:
    import numpy as np
    from lenskit.data import ItemList
    from lenskit.metrics import DCG, NDCG, RBP, Hit, Precision, Recall, RecipRank
    from lenskit.metrics.ranking import AveragePrecision

    found: dict[str, Values] = {}
    for k in CUTOFFS:
        metrics: dict[str, Any] = {
            "Precision": Precision(k),
            "Recall": Recall(k),
            "Hit": Hit(k),
            "RecipRank": RecipRank(k),
            "AveragePrecision": AveragePrecision(k),
            "DCG": DCG(k),
            "NDCG": NDCG(k),
            "NDCG(gain=rating)": NDCG(k, gain="rating"),
            "RBP(patience=0.5)": RBP(k, patience=0.5),
        }
        for name, metric in metrics.items():
            values = {}
            for user, items in case.lists.items():
                test = case.grades[user]
                truth = ItemList(
                    item_ids=np.array(list(test), dtype=np.int64), rating=np.array([*test.values()], float)
                )
                listed = ItemList(item_ids=np.array(items, dtype=np.int64), ordered=True)
                try:
                    with np.errstate(all="ignore"):
                        values[str(user)] = float(metric.measure_list(listed, truth))
                except ZeroDivisionError:
                    values[str(user)] = float("nan")
            found[f"{name}@{k}"] = values
    return found


if __name__ == "__main__":
    store("lenskit", version("lenskit"), answers)
