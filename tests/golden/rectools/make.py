"""What RecTools says about the golden input."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from golden_values import CUTOFFS, MEAN, Case, Values, store


def answers(case: Case) -> dict[str, Values]:
    import pandas as pd
    from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall

    rows = [(user, item, rank) for user, items in case.lists.items() for rank, item in enumerate(items, start=1)]
    reco = pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])
    pairs = [(user, item) for user, grades in case.grades.items() for item in grades]
    interactions = pd.DataFrame(pairs, columns=["user_id", "item_id"])
    found: dict[str, Values] = {}
    for k in CUTOFFS:
        metrics: dict[str, Any] = {
            "Precision": Precision(k),
            "Precision(r_precision=True)": Precision(k, r_precision=True),
            "Recall": Recall(k),
            "HitRate": HitRate(k),
            "MAP": MAP(k),
            "MAP(divide_by_k=True)": MAP(k, divide_by_k=True),
            "NDCG": NDCG(k),
            "NDCG(divide_by_achievable=True)": NDCG(k, divide_by_achievable=True),
            "MRR": MRR(k),
        }
        for name, metric in metrics.items():
            values = metric.calc_per_user(reco, interactions)
            found[f"{name}@{k}"] = {
                **{str(user): float(value) for user, value in values.items()},
                MEAN: float(metric.calc(reco, interactions)),
            }
    return found


if __name__ == "__main__":
    store("rectools", version("rectools"), answers)
