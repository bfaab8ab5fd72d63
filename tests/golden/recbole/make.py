"""What RecBole says about the golden input. It has no user without a relevant item, and lists are as long as asked."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from golden_values import CUTOFFS, MEAN, Case, Values, store


def answers(case: Case) -> dict[str, Values]:
    import numpy as np
    from recbole.evaluator.metrics import MAP, MRR, NDCG, Hit, Precision, Recall

    users, deepest = case.relevant_users, max(CUTOFFS)
    hits = np.zeros((len(users), deepest), dtype=bool)
    for at, user in enumerate(users):
        for place, item in enumerate(case.lists[user][:deepest]):
            hits[at, place] = item in case.grades[user]
    count = np.array([len(case.grades[user]) for user in users])
    metrics: dict[str, Any] = {
        "Hit": Hit,
        "MRR": MRR,
        "MAP": MAP,
        "Recall": Recall,
        "NDCG": NDCG,
        "Precision": Precision,
    }
    found: dict[str, Values] = {}
    for name, cls in metrics.items():
        metric = cls({"metric_decimal_place": 15, "topk": list(CUTOFFS)})
        plain = name in ("Hit", "MRR", "Precision")
        for k in CUTOFFS:  # the last column of what is cut at K; AP and nDCG depend on where lists end
            values = metric.metric_info(hits[:, :k]) if plain else metric.metric_info(hits[:, :k], count)
            of_users = dict(zip(map(str, users), map(float, values[:, k - 1]), strict=True))
            found[f"{name}@{k}"] = {**of_users, MEAN: float(values[:, k - 1].mean())}
    return found


if __name__ == "__main__":
    store("recbole", version("recbole"), answers)
