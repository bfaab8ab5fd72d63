"""Two source trees in turn on the same workload: python benchmarks/alternate.py --old TREE --new TREE [A B C D] [--runs 5].

Each run is a process of its own that imports `truerank` and `benchmarks` from its tree, so that a tree may change both.
The order of the two changes from run to run; medians and the ratio new / old are printed. What a workload is made of
is warm (compiled, loaded) before it is timed. Each tree says itself how its workload C runs from a frame to results, as
`benchmarks.offpolicy.end_to_end(n_rows)`: one from before that function is given it by hand.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Figures = dict[str, float]  # seconds of wall and processor time by what they were spent on


def lists(scale: float) -> Figures:
    """A: 17 metrics of top-100 lists; from positions, and from a shuffled table to estimates with intervals."""
    contenders = importlib.import_module("benchmarks.ours").CONTENDERS
    n_users = int(100_000 * scale)
    return {
        **timed("A kernel", contenders["truerank"](n_users), times=5),
        **timed("A end to end", contenders["truerank-end-to-end"](n_users), times=9),
    }


def ranks(scale: float) -> Figures:
    """B: ranks of 20 items per user among 50,000 by factors, and metrics of them."""
    bench, workloads = (importlib.import_module(f"benchmarks.{name}") for name in ("ranks", "workloads"))
    work = workloads.ranks_work(int(8_000 * scale), 50_000)
    return timed("B", bench.ranker(work, threads=2), times=2)


def offpolicy(scale: float) -> Figures:
    """C: 13 clips on impressions: what the tree's own benchmark compares with polars, and all of it from a frame."""
    bench: Any = importlib.import_module("benchmarks.offpolicy")
    n_rows = int(4_000_000 * scale)
    figures: Figures = {}
    parts = iter(("sparse", "diagnostics", "dense"))

    def ours_alone(reference: Any, other: Callable[[], Any], rounds: int) -> dict[str, float]:
        figures.update(timed(f"C {next(parts)}", other, times=rounds))
        return {"ratio_wall": 1.0}

    bench.ratios = ours_alone
    bench.run(n_rows=n_rows, rounds=24)
    return {**figures, **timed("C end to end", bench.end_to_end(n_rows), times=3)}


def grid(scale: float) -> Figures:
    """D: the reliability grid once, on fewer users than the whole world has; with its kernel alone."""
    bench: Any = importlib.import_module("benchmarks.grid")
    bench.SUBSET_PLAIN = 1  # numpy, which it also times, is not asked about here
    bench.run(n_users=40, n_items=300, rounds=1)  # loads or compiles it
    found = bench.run(n_users=int(80 * scale), rounds=1)
    kernel = found["ms_per_user_and_logger"]
    return {"D wall": found["seconds"], "D cpu": found["cpu_seconds"], "D kernel, 1000 users, cpu": kernel}


WORKLOADS: dict[str, Callable[[float], Figures]] = {"A": lists, "B": ranks, "C": offpolicy, "D": grid}


def timed(what: str, work: Callable[[], Any], *, times: int) -> Figures:
    """Seconds of some calls after a first one; on a busy machine processor time says more than wall time."""
    work()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        work()
    return {f"{what} wall": time.perf_counter() - wall, f"{what} cpu": time.process_time() - cpu}


def in_tree(tree: Path, workload: str, scale: float) -> Figures:
    """The figures of one run in a process that sees this tree alone."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)])}
    words = [sys.executable, "-P", __file__, workload, "--scale", str(scale), "--inside", str(tree)]
    done = subprocess.run(words, env=environment, cwd=tree, check=True, stdout=subprocess.PIPE, text=True)
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def inside(tree: Path, workload: str, scale: float) -> None:
    for name in ("truerank", "benchmarks"):
        file = importlib.import_module(name).__file__
        if file is None or not Path(file).resolve().is_relative_to(tree):
            raise SystemExit(f"{name} is that of {file}, not of {tree}")
    print(json.dumps(WORKLOADS[workload](scale)))


def alternate(old: Path, new: Path, workload: str, *, runs: int, scale: float) -> None:
    trees = {"old": old, "new": new}
    found: dict[str, list[Figures]] = {name: [] for name in trees}
    for run in range(runs):
        for name in list(trees) if run % 2 == 0 else list(reversed(trees)):
            found[name].append(in_tree(trees[name], workload, scale))
            print(f"{workload}, run {run + 1}, {name}: {json.dumps(found[name][-1])}", file=sys.stderr, flush=True)
    print(f"{'':26}{'old s':>10}{'new s':>10}{'new / old':>12}{'pair by pair':>14}")
    for what in found["old"][0]:
        before, after = ([each[what] for each in found[name]] for name in trees)
        pairs = statistics.median(b / a for a, b in zip(before, after, strict=True))
        a, b = statistics.median(before), statistics.median(after)
        print(f"{what:26}{a:10.3f}{b:10.3f}{b / a:12.3f}{pairs:14.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="A|B|C|D", help="default: all")
    parser.add_argument("--old", type=Path, help="the root of a source tree")
    parser.add_argument("--new", type=Path, help="the root of another")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual size")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    workloads = arguments.workloads or list(WORKLOADS)
    if not set(workloads) <= set(WORKLOADS):
        parser.error(f"workloads {', '.join(workloads)}; expected some of {', '.join(WORKLOADS)}")
    if arguments.inside is not None:
        inside(arguments.inside.resolve(), workloads[0], arguments.scale)
        return
    if arguments.old is None or arguments.new is None:
        raise SystemExit("two trees are needed: --old TREE --new TREE")
    for workload in workloads:
        alternate(
            arguments.old.resolve(), arguments.new.resolve(), workload, runs=arguments.runs, scale=arguments.scale
        )


if __name__ == "__main__":
    main()
