"""All pairs of many models: 1,000 models, one metric, 1,000 users, from matrices to 499,500 comparisons."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl

import truerank as tr


def run(*, models: int = 1000, users: int = 1000, items: int = 20) -> dict[str, Any]:
    """Seconds of wall and processor time, from scores in memory to results; the goal is 20 s by the clock."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(users, items))
    scores = {f"m{at:04d}": truth * (at / models) + rng.normal(size=truth.shape) for at in range(models)}
    user, item = np.divmod(np.arange(truth.size), items)
    labels = pl.DataFrame({"user": user, "item": item, "label": (truth.ravel() > 1).astype(int)})
    wall, cpu = time.perf_counter(), time.process_time()
    results = tr.evaluate(scores, labels, metrics=["Recall@10"])
    seconds = {"seconds": round(time.perf_counter() - wall, 1), "cpu_seconds": round(time.process_time() - cpu, 1)}
    goal = {"half a million pairs within 20 s": seconds["seconds"] <= 20}
    return {"workload": "pairs", "models": models, "pairs": len(results.comparisons), **seconds, "goals": goal}
