"""What torchmetrics says about the golden input, for users whose every candidate is recommended."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from golden_values import CUTOFFS, Case, Values, store


def answers(case: Case) -> dict[str, Values]:
    import torch
    from torchmetrics.functional import retrieval

    found: dict[str, Values] = {}
    functions: dict[str, Any] = {
        "precision": retrieval.retrieval_precision,
        "recall": retrieval.retrieval_recall,
        "hit_rate": retrieval.retrieval_hit_rate,
        "average_precision": retrieval.retrieval_average_precision,
        "reciprocal_rank": retrieval.retrieval_reciprocal_rank,
        "normalized_dcg": retrieval.retrieval_normalized_dcg,
        "normalized_dcg(grades)": retrieval.retrieval_normalized_dcg,
        "r_precision": retrieval.retrieval_r_precision,
        "auroc": retrieval.retrieval_auroc,
    }
    torch.set_default_dtype(torch.float64)
    for name, function in functions.items():
        for k in (None,) if name in ("r_precision", "auroc") else CUTOFFS:
            values = {}
            for user, items in case.lists.items():
                if len(items) < len(case.items):
                    continue
                grades = torch.tensor([case.grades[user].get(item, 0) for item in items])
                target = grades if name.endswith("(grades)") else (grades > 0).long()
                scores = torch.arange(len(items), 0, -1, dtype=torch.float64)
                values[str(user)] = float(function(scores, target, **({} if k is None else {"top_k": k})))
            found[name if k is None else f"{name}@{k}"] = values
    return found


if __name__ == "__main__":
    store("torchmetrics", version("torchmetrics"), answers)
