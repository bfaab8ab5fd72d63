"""What implicit says about the golden input: means only, through a model that recites the lists."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from golden_values import CUTOFFS, MEAN, Case, Values, store


def answers(case: Case) -> dict[str, Values]:
    import numpy as np
    from implicit.evaluation import ranking_metrics_at_k
    from scipy.sparse import csr_matrix

    users = list(case.lists)
    place = {item: at for at, item in enumerate(case.items)}
    likes = np.zeros((len(users), len(place)))
    for at, user in enumerate(users):
        likes[at, [place[item] for item in case.grades[user]]] = 1

    class Recites:
        def recommend(self, batch: Any, rows: Any, N: int, **_: Any) -> Any:
            ids = np.full((len(batch), N), -1, dtype=np.int32)  # no item: a list that is shorter
            for at, user in enumerate(batch):
                listed = [place[item] for item in case.lists[users[user]]][:N]
                ids[at, : len(listed)] = listed
            return ids, np.zeros(ids.shape, dtype=np.float32)

    test = csr_matrix(likes)
    return {
        f"{name}@{k}": {MEAN: float(value)}
        for k in CUTOFFS
        for name, value in ranking_metrics_at_k(
            Recites(), csr_matrix(likes.shape), test, K=k, show_progress=False, num_threads=1
        ).items()
    }


if __name__ == "__main__":
    store("implicit", version("implicit"), answers)
