"""What RePlay says about the golden input."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from golden_values import CUTOFFS, MEAN, Case, Values, store


def answers(case: Case) -> dict[str, Values]:
    from replay.metrics import MAP, MRR, NDCG, HitRate, PerUser, Precision, Recall, RocAuc

    recommended = {user: [(item, -float(at)) for at, item in enumerate(items)] for user, items in case.lists.items()}
    truth = {user: list(grades) for user, grades in case.grades.items()}
    found: dict[str, Values] = {}
    metrics: list[Any] = [HitRate, MAP, MRR, NDCG, Precision, Recall, RocAuc]
    for metric in metrics:
        each = metric(list(CUTOFFS), mode=PerUser())(recommended, truth)
        mean = metric(list(CUTOFFS))(recommended, truth)
        for k in CUTOFFS:
            name = f"{metric.__name__}@{k}"
            by_user = {str(user): float(value) for user, value in each[f"{metric.__name__}-PerUser@{k}"].items()}
            found[name] = {**by_user, MEAN: float(mean[name])}
    return found


if __name__ == "__main__":
    store("replay", version("replay-rec"), answers)
