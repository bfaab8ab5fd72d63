"""What other tools say about the golden input, stored beside their source.md: TOOL/expected.json.

    python tests/golden/make.py TOOL

in an environment that has the tool; truerank is not needed.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from golden_values import CUTOFFS, MEAN, Case, Values, store

RANX = ("hit_rate", "precision", "recall", "map", "mrr", "dcg", "dcg_burges", "ndcg", "ndcg_burges")


def implicit(case: Case) -> dict[str, Values]:
    """What implicit says about the golden input: means only, through a model that recites the lists."""
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


def lenskit(case: Case) -> dict[str, Values]:
    """What LensKit says about the golden input."""
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


def ranx(case: Case) -> dict[str, Values]:
    """What ranx says about the golden input. It takes no user without a relevant item and no empty list."""
    from ranx import Qrels, Run, evaluate

    users = [user for user in case.relevant_users if case.lists[user]]
    run = {str(u): {str(i): 100.0 - at for at, i in enumerate(case.lists[u])} for u in users}
    grades = {str(u): {str(i): grade for i, grade in case.grades[u].items()} for u in users}
    binary = {user: dict.fromkeys(each, 1) for user, each in grades.items()}
    asked: list[tuple[str, Any]] = [(f"{name}@{k}", grades) for name in RANX for k in CUTOFFS]
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


def recbole(case: Case) -> dict[str, Values]:
    """What RecBole says about the golden input: no user without a relevant item, and lists as long as asked."""
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


def rectools(case: Case) -> dict[str, Values]:
    """What RecTools says about the golden input."""
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


def replay(case: Case) -> dict[str, Values]:
    """What RePlay says about the golden input."""
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


def torchmetrics(case: Case) -> dict[str, Values]:
    """What torchmetrics says about the golden input, for users whose every candidate is recommended."""
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


TOOLS = (implicit, lenskit, ranx, recbole, rectools, replay, torchmetrics)

if __name__ == "__main__":
    (tool,) = (each for each in TOOLS if each.__name__ == sys.argv[1])
    store(tool.__name__, version("replay-rec" if tool is replay else tool.__name__), tool)
