"""Workload E: files that do not fit into memory, through the command line; what is told is peak memory and time.

Three generated inputs, removed afterwards: judged rows with factor scores through `evaluate`; impressions in no order
of users, two targets as columns, a fitted position model, 13 clips, through `offpolicy`; and impressions with a target
in a table of another order. `--scale 0.01` is a quick look.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.spent import GIBIBYTE, spent
from benchmarks.workloads import OFFPOLICY_CLIPS

GOAL = 2.0  # GB of resident memory
BLOCK = 1_000_000
CANDIDATES = 20


def run(*, scale: float = 1.0, rounds: int | None = None) -> dict[str, Any]:
    """Peak memory and time of each command."""
    found: dict[str, Any] = {"workload": "stream", "scale": scale}
    folder = Path(tempfile.mkdtemp(prefix="truerank-bench-"))
    try:
        found["evaluate, 20 M judged rows"] = _evaluate(folder, round(500_000 * scale))
        found["offpolicy, 100 M impressions"] = _columns(folder, round(10_000_000 * scale), round(3_000_000 * scale))
        found["offpolicy, 20 M impressions and a table"] = _table(folder, round(2_000_000 * scale))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found["goals"] = {
        f"{name} within {GOAL:g} GB": part["peak_gb"] <= GOAL
        for name, part in found.items()
        if isinstance(part, dict) and "peak_gb" in part
    }
    return found


def measured(arguments: list[str]) -> dict[str, Any]:
    """Peak resident memory and seconds of one truerank command."""
    return spent([sys.executable, "-m", "truerank", *arguments])


def _checked(found: dict[str, Any], out: Path, **sizes: Any) -> dict[str, Any]:
    results = json.loads(out.read_text())
    values = {f"{each['model']} {each['estimator']}": each["value"] for each in results["estimates"]}
    return {**sizes, **found, "values": values}


# ------------------------------------------------------------------------------------------------------------ evaluate


def _evaluate(folder: Path, n_users: int, *, n_items: int = 5_000, judged: int = 40) -> dict[str, Any]:
    rng = np.random.default_rng(20261116)
    labels = folder / "labels"
    labels.mkdir()
    order = rng.permutation(n_users)
    step = BLOCK // judged
    for part, start in enumerate(range(0, n_users, step)):
        user = np.repeat(order[start : start + step], judged)
        first = rng.integers(0, n_items, size=len(user) // judged)
        item = (np.repeat(first, judged) + np.tile(np.arange(judged) * (n_items // judged), len(first))) % n_items
        label = (rng.random(len(user)) < 0.1).astype(np.int8)
        rows = rng.permutation(len(user))
        frame = pl.DataFrame({"user": user[rows], "item": item[rows], "label": label[rows]})
        frame.write_parquet(labels / f"{part:04}.parquet")
    for name in ("a", "b"):
        factors = rng.standard_normal((n_users + n_items, 16), dtype=np.float32)
        np.savez(
            folder / f"{name}.npz",
            user_factors=factors[:n_users],
            item_factors=factors[n_users:],
            users=np.arange(n_users),
            items=np.arange(n_items),
        )
    out = folder / "evaluate.json"
    found = measured(
        ["evaluate", str(labels), "--exposure", "random", "--scores", f"a={folder / 'a.npz'}", "--scores",
         f"b={folder / 'b.npz'}", "--metric", "Recall@50", "--metric", "DCG@50", "--quiet", "--out", str(out)]
    )  # fmt: skip
    size = sum(path.stat().st_size for path in labels.iterdir())
    shutil.rmtree(labels)
    return _checked(found, out, rows=n_users * judged, users=n_users, items=n_items, file_gb=round(size / GIBIBYTE, 3))


# ---------------------------------------------------------------------------------------------------------- off-policy


def impressions(n_sessions: int, n_users: int) -> Iterator[pl.DataFrame]:
    """Blocks of viewed rows, about ten a session, in no order; users come back all over the log."""
    rng = np.random.default_rng(20261117)
    name = rng.permutation(n_sessions)
    owner = rng.integers(0, n_users, size=n_sessions)
    step = BLOCK // 10
    for start in range(0, n_sessions, step):
        session = np.arange(start, min(start + step, n_sessions))
        depth = np.minimum(rng.geometric(0.075, size=len(session)), CANDIDATES)
        row = np.repeat(np.arange(len(session)), depth)
        position = np.arange(len(row)) - np.repeat(np.cumsum(depth) - depth, depth)
        turn = rng.integers(0, CANDIDATES, size=(2, len(session)))
        ranks = [(position * factor + turn[at][row]) % CANDIDATES + 1 for at, factor in enumerate((3, 7))]
        order = rng.permutation(len(row))
        yield pl.DataFrame(
            {
                "session": name[session[row]][order].astype(np.int32),
                "user": owner[session[row]][order].astype(np.int32),
                "item": ((session[row] * 7 + position) % 100_000)[order].astype(np.int32),
                "position": (position + 1)[order].astype(np.int8),
                "like": (rng.random(len(row)) < 0.05)[order],
                "new": ranks[0][order].astype(np.int8),
                "other": ranks[1][order].astype(np.int8),
                "candidates": np.full(len(row), CANDIDATES, dtype=np.int8),
            }
        )


def _columns(folder: Path, n_sessions: int, n_users: int) -> dict[str, Any]:
    log = folder / "log"
    log.mkdir()
    n_rows = 0
    for part, frame in enumerate(impressions(n_sessions, n_users)):
        frame.write_parquet(log / f"{part:04}.parquet")
        n_rows += len(frame)
    size = sum(path.stat().st_size for path in log.iterdir())
    out = folder / "columns.json"
    clips = ",".join("inf" if np.isinf(clip) else f"{clip:g}" for clip in OFFPOLICY_CLIPS)
    found = measured(
        ["offpolicy", str(log), "--target", "new=@new", "--target", "other=@other", "--position", "fit:exp", "--clip",
         clips, "--reward", "like", "--quiet", "--out", str(out)]
    )  # fmt: skip
    shutil.rmtree(log)
    return _checked(found, out, rows=n_rows, sessions=n_sessions, users=n_users, file_gb=round(size / GIBIBYTE, 3))


def _table(folder: Path, n_sessions: int) -> dict[str, Any]:
    log, table = folder / "log", folder / "table"
    log.mkdir()
    table.mkdir()
    rng = np.random.default_rng(20261118)
    n_rows = listed = 0
    for part, frame in enumerate(impressions(n_sessions, max(1, n_sessions // 3))):
        frame.drop("new", "other", "candidates").write_parquet(log / f"{part:04}.parquet")
        n_rows += len(frame)
        # what the target ranks are the logged items, in another order, and another order of rows
        rank = pl.col("position").reverse().cum_count().over("session").cast(pl.Int32)
        ranked = frame.select("session", "item", rank=rank).sample(fraction=1, shuffle=True, seed=part)
        ranked.write_parquet(table / f"{rng.integers(10**9):09}.parquet")
        listed += len(ranked)
    out = folder / "table.json"
    found = measured(
        ["offpolicy", str(log), "--target", f"new={table}", "--target", "log=@position", "--position", "exp:0.9",
         "--reward", "like", "--quiet", "--out", str(out)]
    )  # fmt: skip
    return _checked(found, out, rows=n_rows, sessions=n_sessions, table_rows=listed)
