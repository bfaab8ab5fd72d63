"""What ranx says about the golden input. It takes no user without a relevant item and no empty list."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from golden_values import CUTOFFS, MEAN, Case, Values, store

NAMES = ("hit_rate", "precision", "recall", "map", "mrr", "dcg", "dcg_burges", "ndcg", "ndcg_burges")


def answers(case: Case) -> dict[str, Values]:
    from ranx import Qrels, Run, evaluate

    users = [user for user in case.relevant_users if case.lists[user]]
    run = {str(u): {str(i): 100.0 - at for at, i in enumerate(case.lists[u])} for u in users}
    grades = {str(u): {str(i): grade for i, grade in case.grades[u].items()} for u in users}
    binary = {user: dict.fromkeys(each, 1) for user, each in grades.items()}
    asked: list[tuple[str, Any]] = [(f"{name}@{k}", grades) for name in NAMES for k in CUTOFFS]
    asked += [("r-precision", grades), ("mrr", grades), ("rbp.50", binary), ("rbp.90", binary)]
    found: dict[str, Values] = {}
    for name, truth in (*asked, ("rbp.50 of grades", grades)):
        qrels, listed = Qrels(truth), Run(run)
        values = evaluate(qrels, listed, name.split()[0], return_mean=False)
        found[name] = {
            **dict(zip(sorted(grades), map(float, values), strict=True)),
            MEAN: float(evaluate(qrels, listed, name.split()[0])),
        }
    return found


if __name__ == "__main__":
    store("ranx", version("ranx"), answers)
