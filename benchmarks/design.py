"""Which items to show, of 100,000 to each of 100,000 users, for three models: time and peak memory of the command.

`--scale 0.01` is a quick look at 1,000 users; the catalogue stays.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.stream import GOAL, measured

USERS, ITEMS, DIMENSION, MODELS, PER_USER, SEEN = 100_000, 100_000, 32, 3, 20, 30


def run(*, scale: float = 1.0, rounds: int | None = None) -> dict[str, Any]:
    """Peak memory and time of `truerank plan exposure --allocate`, and how many rows it wrote."""
    folder = Path(tempfile.mkdtemp(prefix="truerank-bench-"))
    n_users = round(USERS * scale)
    try:
        words = _inputs(folder, n_users)
        out = folder / "design"
        found = measured(["plan", "exposure", "--allocate", *words, "--per-user", str(PER_USER), "--metric", "Precision@50",
                          "--quiet", "--out", str(out)])  # fmt: skip
        rows = pl.scan_parquet(out / "*.parquet").select(pl.len()).collect().item()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "workload": "design", "users": n_users, "items": ITEMS, "models": MODELS, "rows": rows, **found,
        "goals": {f"within {GOAL:g} GB": found["peak_gb"] <= GOAL, "all rows": rows == n_users * PER_USER},
    }  # fmt: skip


def _inputs(folder: Path, n_users: int) -> list[str]:
    """Three models that resemble each other, and a training log of popular items; as words of the command."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(ITEMS, DIMENSION)).astype(np.float32)
    words = []
    for number in range(MODELS):
        own = shared + 0.3 * number * rng.normal(size=shared.shape).astype(np.float32)
        path = folder / f"model{number}.npz"
        tastes = rng.normal(size=(n_users, DIMENSION)).astype(np.float32)
        np.savez(path, user_factors=tastes, item_factors=own, users=np.arange(n_users), items=np.arange(ITEMS))
        words += ["--scores", f"model{number}={path}"]
    user = np.repeat(np.arange(n_users), SEEN)
    item = (rng.pareto(1.2, len(user)) * 50).astype(np.int64) % ITEMS
    train = pl.DataFrame({"user": user, "item": item}).unique().with_columns(label=1)
    train.write_parquet(folder / "train.parquet")
    return [*words, "--exclude", str(folder / "train.parquet")]
