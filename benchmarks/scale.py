"""Workload F: how time and memory grow, and what engines cost. `--scale 0.01` is a quick look; all files are removed.

Growth: impressions through `off_policy` and judged rows through `evaluate`, at three sizes each, in a process of its own
that says how long every phase took and how much memory each process had at most. Engines: the same call on data in
memory, local, Dask and Spark in turn, two workers each, without their start. `keep` writes scale.json, from which the
picture of docs/scale.md is drawn (`python -m docs.making scale`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.stream import impressions

IMPRESSIONS = (1e6, 1e7, 1e8)
JUDGED = (1e6, 5e6, 2e7)
PER_USER = 40
N_ITEMS, DIM = 5_000, 16
WIDE_ITEMS, WIDE_DIM, WIDE_USERS = 50_000, 64, 20_000
IN_MEMORY = {"offpolicy": 4_000_000, "evaluate": 2_000_000}
WORKERS = 2
GOALS = {"dask": 1.5, "spark": 4.0}
MEMORY_GB = 2.0
POLL = 0.2  # seconds between looks at the memory of processes
PHASES = {
    "looking through": "driver", "partitioning": "driver", "looking up": "driver", "counting": "work",
    "learning": "work", "measuring": "work", "ranking": "work",
}  # fmt: skip
RESULTS = Path(__file__).with_name("scale.json")


def run(*, scale: float = 1.0, rounds: int = 3, keep: bool = False) -> dict[str, Any]:
    """Every size, then every engine."""
    folder = Path(tempfile.mkdtemp(prefix="truerank-bench-"))
    try:
        growth = [_measured("offpolicy", n * scale, folder) for n in IMPRESSIONS]
        growth += [_measured("evaluate", n * scale, folder) for n in JUDGED]
        growth.append(_measured("evaluate", WIDE_USERS * PER_USER * scale, folder, n_items=WIDE_ITEMS, dim=WIDE_DIM))
        engines = _engines(scale, rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = {
        "workload": "scale",
        "scale": scale,
        "machine": {"cores": os.cpu_count(), "python": sys.version.split()[0]},
        "growth": growth,
        "engines": engines,
        "goals": _goals(growth, engines),
    }
    if keep:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    return found


def _goals(growth: list[dict[str, Any]], engines: list[dict[str, Any]]) -> dict[str, bool]:
    """Linear: the largest takes at most 1.3 times as long per row as the one before it."""
    goals = {f"every process within {MEMORY_GB:g} GB": max(each["peak_gb"] for each in growth) <= MEMORY_GB}
    for command in ("offpolicy", "evaluate"):
        *_, before, last = (each for each in growth if each["command"] == command and each["dim"] != WIDE_DIM)
        goals[f"{command}: time grows linearly"] = (
            last["seconds"] / last["rows"] <= 1.3 * before["seconds"] / before["rows"]
        )
    for each in engines:
        if each["engine"] in GOALS:
            goal = GOALS[each["engine"]]
            goals[f"{each['command']} on {each['engine']} within {goal:g} x local"] = each["ratio"] <= goal
    return goals


# --------------------------------------------------------------------------------------------------------------- growth


def _measured(command: str, rows: float, folder: Path, *, n_items: int = N_ITEMS, dim: int = DIM) -> dict[str, Any]:
    """One size, in a process of its own."""
    place = folder / "data"
    place.mkdir()
    n = max(round(rows), 1000)
    if command == "offpolicy":
        sizes = _write_log(place, n)
    else:
        sizes = _write_labels(place, n, n_items=n_items, dim=dim)
    found, peak = _in_process(command, place)
    shutil.rmtree(place)
    return {"command": command, "engine": "local", **sizes, **found, "peak_gb": round(peak, 3)}


def _in_process(command: str, place: Path) -> tuple[dict[str, Any], float]:
    """What `called` measured in a process of its own, and the most memory that this had, in GiB."""
    call = json.dumps({"command": command, "place": str(place)})
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.scale", call], stdout=subprocess.PIPE, text=True)
    with _Watched(process.pid) as watched:
        out = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"{command} failed")
    found: dict[str, Any] = json.loads(out)
    return found, watched.gigabytes


def _write_log(place: Path, n: int) -> dict[str, Any]:
    """About ten impressions in each session, three or so sessions of each user."""
    rows = 0
    (place / "log").mkdir()
    for part, frame in enumerate(impressions(max(n // 10, 10), max(n * 3 // 100, 3))):
        frame.write_parquet(place / "log" / f"{part:04}.parquet")
        rows += len(frame)
    return {"rows": rows, "users": max(n * 3 // 100, 3), "items": 100_000, "dim": 0, "models": 2}


def _write_labels(place: Path, n: int, *, n_items: int, dim: int, per_user: int = PER_USER) -> dict[str, Any]:
    rng = np.random.default_rng(20261116)
    n_users = max(n // per_user, 25)
    (place / "labels").mkdir()
    order, step = rng.permutation(n_users), 25_000
    for part, start in enumerate(range(0, n_users, step)):
        user = np.repeat(order[start : start + step], per_user)
        first = rng.integers(0, n_items, size=len(user) // per_user)
        apart = np.tile(np.arange(per_user) * (n_items // per_user), len(first))
        label = (rng.random(len(user)) < 0.1).astype(np.int8)
        frame = pl.DataFrame({"user": user, "item": (np.repeat(first, per_user) + apart) % n_items, "label": label})
        frame[rng.permutation(len(frame))].write_parquet(place / "labels" / f"{part:04}.parquet")
    for name in ("a", "b"):
        factors = rng.standard_normal((n_users + n_items, dim), dtype=np.float32)
        np.savez(
            place / f"{name}.npz", user_factors=factors[:n_users], item_factors=factors[n_users:],
            users=np.arange(n_users), items=np.arange(n_items),
        )  # fmt: skip
    return {"rows": n_users * per_user, "users": n_users, "items": n_items, "dim": dim, "models": 2}


def called(command: str, place: Path) -> dict[str, Any]:
    """In the process that is watched: the call, with the seconds of every phase."""
    phases: dict[str, float] = {"driver": 0.0, "work": 0.0}
    last = begun = time.monotonic()

    def told(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        phase = next((phase for name, phase in PHASES.items() if what.startswith(name)), "driver")
        phases[phase] += now - last
        last = now

    _call(command, place, progress=told)
    seconds = time.monotonic() - begun
    used = os.times()
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used.user + used.system, 2),
        "driver_seconds": round(phases["driver"], 2),
        "work_seconds": round(phases["work"], 2),
        "rest_seconds": round(seconds - sum(phases.values()), 2),
        "threads": os.cpu_count(),
    }


def _call(command: str, place: Path, **options: Any) -> None:
    if command == "offpolicy":
        _off_policy(str(place / "log"), **options)
        return
    import truerank as tr

    scores = {name: tr.read_scores(place / f"{name}.npz") for name in ("a", "b")}
    tr.evaluate(scores, place / "labels", exposure="random", metrics=["Recall@50", "DCG@50"], **options)


def _off_policy(log: Any, **options: Any) -> Any:
    from benchmarks.workloads import OFFPOLICY_CLIPS
    from truerank.evaluation.impressions import off_policy
    from truerank.exposure.policies.targets import RankColumn

    targets = {name: RankColumn(name) for name in ("new", "other")}
    return off_policy(log, targets, position="fit:exp", clips=OFFPOLICY_CLIPS, rewards=["like"], **options)


class _Watched:
    """The largest memory that any process of a tree ever had, as the system counts it."""

    def __init__(self, pid: int) -> None:
        self.pid, self.gigabytes, self.over = pid, 0.0, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Watched:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.over.wait(POLL):
            self.gigabytes = max(self.gigabytes, *map(_largest, _tree(self.pid)))


def _largest(pid: int) -> float:
    """The most memory that a process ever had, in GiB; nothing where it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) / 2**20 if found else 0.0


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            inside = children.read_text().split()
        except OSError:
            continue
        for child in inside:
            yield from _tree(int(child))


# -------------------------------------------------------------------------------------------------------------- engines


def _engines(scale: float, rounds: int) -> list[dict[str, Any]]:
    """The same calls on data in memory, engines in turn, after one call that nobody counts."""
    from truerank.engines.named import as_engine

    calls = {"offpolicy": _in_memory_log(scale), "evaluate": _in_memory_labels(scale)}
    seconds: dict[tuple[str, str], list[float]] = {}
    values: dict[tuple[str, str], list[float]] = {}
    with as_engine("dask", threads=WORKERS).open() as dask, as_engine("spark", threads=WORKERS).open() as spark:
        engines = {"local": None, "dask": dask.client, "spark": spark.session}  # type: ignore[attr-defined]
        for turn in range(rounds + 1):
            for command, call in calls.items():
                for name, engine in engines.items():
                    begun = time.monotonic()
                    results = call(engine)
                    took = time.monotonic() - begun
                    values[command, name] = [each.value for each in results.estimates]
                    if turn:
                        seconds.setdefault((command, name), []).append(took)
    found = []
    for (command, name), times in seconds.items():
        if values[command, name] != values[command, "local"]:
            raise SystemExit(f"{command} on {name} has other values than local")
        ratio = statistics.median(times) / statistics.median(seconds[command, "local"])
        rows = max(round(IN_MEMORY[command] * scale), 1000)
        found.append({"command": command, "engine": name, "rows": rows, "workers": WORKERS,
                      "seconds": round(statistics.median(times), 2), "ratio": round(ratio, 2)})  # fmt: skip
    return found


def _in_memory_log(scale: float) -> Callable[[Any], Any]:
    n = max(round(IN_MEMORY["offpolicy"] * scale), 1000)
    log = pl.concat(impressions(n // 10, max(n * 3 // 100, 3)))
    return lambda engine: _off_policy(log, threads=WORKERS, engine=engine)


def _in_memory_labels(scale: float) -> Callable[[Any], Any]:
    import truerank as tr

    with tempfile.TemporaryDirectory(prefix="truerank-bench-") as folder:
        _write_labels(Path(folder), max(round(IN_MEMORY["evaluate"] * scale), 1000), n_items=N_ITEMS, dim=DIM)
        labels = pl.read_parquet(Path(folder) / "labels" / "*.parquet")
        scores = {name: tr.read_scores(Path(folder) / f"{name}.npz") for name in ("a", "b")}
    metrics = ["Recall@50", "DCG@50"]
    return lambda engine: tr.evaluate(
        scores, labels, exposure="random", metrics=metrics, threads=WORKERS, engine=engine
    )


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    print(json.dumps(called(arguments["command"], Path(arguments["place"]))))
