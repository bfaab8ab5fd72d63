"""One contender in a process of its own: set up, say ready, then run once for each line on standard input.

    python worker.py CONTENDER N_USERS

Runs in the environment of the peer; everything but numpy and the peer itself is imported only by our own contenders.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.workloads import CUTOFFS, lists_work


def as_dicts(n_users: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Relevant items and lists in the form that retrieval tools take."""
    work = lists_work(n_users)
    relevant: dict[str, dict[str, int]] = {}
    for user, item in zip(work.relevant_user, work.relevant_item, strict=True):
        relevant.setdefault(str(user), {})[str(item)] = 1
    listed = {
        str(user): {str(item): float(100 - place) for place, item in enumerate(row)}
        for user, row in enumerate(work.items)
    }
    return relevant, listed


def ranx(n_users: int) -> Callable[[], Any]:
    from ranx import Qrels, Run, evaluate

    relevant, listed = as_dicts(n_users)
    qrels, run = Qrels(relevant), Run(listed)
    names = [f"{name}@{k}" for k in CUTOFFS for name in ("recall", "precision", "ndcg", "map")] + ["mrr"]
    return lambda: evaluate(qrels, run, names)


def pytrec_eval(n_users: int) -> Callable[[], Any]:
    import pytrec_eval as peer

    relevant, listed = as_dicts(n_users)
    cut = ",".join(str(k) for k in CUTOFFS)
    names = {f"recall.{cut}", f"P.{cut}", f"ndcg_cut.{cut}", f"map_cut.{cut}", "recip_rank"}
    return lambda: peer.RelevanceEvaluator(relevant, names).evaluate(listed)


def rectools(n_users: int) -> Callable[[], Any]:
    """End to end: from the shuffled table, ranks by sorting, then the same metrics."""
    import pandas as pd
    from rectools import Columns
    from rectools.metrics import MAP, MRR, NDCG, Precision, Recall, calc_metrics

    work = lists_work(n_users)
    user, item, score = work.shuffled()
    table = pd.DataFrame({Columns.User: user, Columns.Item: item, Columns.Score: score})
    truth = pd.DataFrame({Columns.User: work.relevant_user, Columns.Item: work.relevant_item})
    metrics: dict[str, Any] = {"mrr": MRR(k=100)}
    for k in CUTOFFS:
        metrics |= {f"recall{k}": Recall(k), f"precision{k}": Precision(k), f"ndcg{k}": NDCG(k), f"map{k}": MAP(k)}

    def run() -> Any:
        lists = table.sort_values([Columns.User, Columns.Score], ascending=[True, False])
        lists[Columns.Rank] = lists.groupby(Columns.User, sort=False).cumcount() + 1
        return calc_metrics(metrics, lists, truth)

    return run


def main() -> None:
    contender, n_users = sys.argv[1], int(sys.argv[2])
    if contender.startswith("truerank"):
        from benchmarks import ours

        run = ours.CONTENDERS[contender](n_users)
    else:
        run = globals()[contender](n_users)
    run()  # warm: compile, allocate
    print(json.dumps({"ready": contender, "numpy": np.__version__}), flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}), flush=True)


if __name__ == "__main__":
    main()
