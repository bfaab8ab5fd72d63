"""Workload B: ranks of 20 items per user, with ties and exclusions, against the bare matrix product. Smaller is better.

A rank tells of every cut-off whether an item is inside, so Recall, Precision and DCG at three cut-offs are part of the
timed work and no cut-off score needs to be selected.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import ratios
from benchmarks.ours import ranks_setting
from benchmarks.workloads import RanksWork, ranks_work
from truerank.core.metric import Metric
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.metrics.tables import unit_values_of
from truerank.ranking.kernel.rank import rank

METRICS: list[Metric] = [make(k) for k in (5, 50, 500) for make in (Recall, Precision, DCG)]


def run(*, n_users: int = 20_000, n_items: int = 50_000, rounds: int = 7, threads: int = 2) -> dict[str, Any]:
    """Ratio to the product alone at the stated size, and how cost grows with users and items."""
    work = ranks_work(n_users, n_items)
    rank_all = ranker(work, threads=threads)
    memory = peak_memory(rank_all)
    found: dict[str, Any] = {"workload": "ranks", "users": n_users, "items": n_items, "dimensions": 64}
    found |= ratios(timed(lambda: product(work, threads=threads), n_users), timed(rank_all, n_users), rounds)
    found["memory_mb_above_inputs"] = round(memory, 1)
    found["growth_users"] = {n: per_cell(n, 5_000, threads=threads) for n in (1_000, 10_000, 100_000)}
    found["growth_items"] = {n: per_cell(2_000, n, threads=threads) for n in (5_000, 20_000, 200_000)}
    found["goals"] = {
        "<= 1.6x the matrix product, with tie counts, by processor time": found["ratio_cpu"] <= 1.6,
        "memory < 300 MB": found["memory_mb_above_inputs"] < 300,
    }
    return found


def ranker(work: RanksWork, *, threads: int) -> Callable[[], Any]:
    scores, log, pool = ranks_setting(work)

    def run_once() -> Any:
        return unit_values_of(METRICS, log, rank(scores, log, pools=[pool], threads=threads, fast=True)[0])

    return run_once


def product(work: RanksWork, *, threads: int, users: int = 384, items: int = 768) -> None:
    """All scores, in the fastest blocks found, thrown away at once."""
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for start in range(0, len(work.user_factors), users):
        todo.put(start)

    def job() -> None:
        result = np.empty((users, items), dtype=np.float32)
        while True:
            try:
                start = todo.get_nowait()
            except queue.Empty:
                return
            block = work.user_factors[start : start + users]
            for left in range(0, len(work.item_factors), items):
                part = work.item_factors[left : left + items]
                np.matmul(block, part.T, out=result[: len(block), : len(part)])

    with threadpool_limits(limits=1, user_api="blas"):
        workers = [threading.Thread(target=job) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def peak_memory(work: Callable[[], Any]) -> float:
    """The highest resident memory during the work above that before it, in MB, looked at every 5 ms.

    The first run: what the compiled kernels and their libraries take is counted too.
    """
    before = resident()
    highest, done = before, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.005):
            highest = max(highest, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return highest - before


def resident() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit("resident memory is not known on this system")


def timed(work: Callable[[], Any], n_users: int) -> Callable[[], dict[str, float]]:
    def once() -> dict[str, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        return {"wall": (time.perf_counter() - wall) / n_users, "cpu": (time.process_time() - cpu) / n_users}

    return once


def per_cell(n_users: int, n_items: int, *, threads: int) -> float:
    """Nanoseconds of processor time per score, best of three."""
    work = ranks_work(n_users, n_items)
    rank_all = ranker(work, threads=threads)
    rank_all()
    best = min(timed(rank_all, n_users)()["cpu"] for _ in range(3))
    return round(1e9 * best / n_items, 3)
