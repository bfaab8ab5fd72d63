"""Measure type I error, coverage and power of verdicts in simulated environments, and compare two versions of truerank.

    python -m truerank_research.validation.world_runs run --out results.jsonl [--corners]
    python -m truerank_research.validation.world_runs summary results.jsonl
    python -m truerank_research.validation.world_runs compare before.jsonl after.jsonl

A run appends one JSON line per environment and skips those that the file has, so it can be stopped at any time. Which
truerank is measured is decided by PYTHONPATH alone: this package uses public names only. `world_rates` defines rates.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank_research.validation.corner_worlds import CORNERS, corner_environment
from truerank_research.validation.environments import Environment, draw_rng
from truerank_research.validation.random_worlds import N_WORLDS, random_environment
from truerank_research.validation.world_rates import Line, compare, compare_text, summary, summary_text

N_DRAWS = 200
VERDICT_LETTERS = {
    "better": "b", "worse": "w", "insufficient": "i", "insufficient evidence": "i",
    "not shown": "n", "inconclusive": "n",
}  # fmt: skip
ROUNDING = 1e-9  # true differences below this share of the value are equal

# ----------------------------------------------------------------------------------------------------------- measuring


def measure(environment: Environment, n_draws: int) -> Line:
    """All draws of an environment as one JSON object: a list per estimate and comparison, with a value per draw."""
    started = time.process_time()
    estimates: dict[tuple[str, ...], Line] = {}
    comparisons: dict[tuple[str, ...], Line] = {}
    code_sets: dict[tuple[str, ...], int] = {(): 0}
    messages: Counter[str] = Counter()
    refused: Counter[str] = Counter()

    def code_set(reported: Iterable[Any]) -> int:
        serious = {f"{message.severity}:{message.code}" for message in reported if message.severity != "note"}
        return code_sets.setdefault(tuple(sorted(serious)), len(code_sets))

    for draw in range(n_draws):
        try:
            results = environment.evaluate(draw_rng(environment.key, draw))
        except Exception as error:  # refusals are part of what is measured
            refused[f"{type(error).__name__}: {error}"[:200]] += 1
            continue
        messages.update({f"{message.severity}:{message.code}" for message in results.messages})
        for estimate in results.estimates:
            key = (estimate.model, estimate.metric, estimate.estimator)
            record = estimates.setdefault(key, _empty(n_draws, ("value", "low", "high", "warnings")))
            numbers = map(_rounded, (estimate.value, estimate.low, estimate.high))
            _set(record, draw, (*numbers, code_set(estimate.warnings)))
        for pair in results.comparisons:
            names = (pair.model, pair.baseline, pair.metric, pair.estimator)
            record = comparisons.setdefault(names, _empty(n_draws, ("difference", "low", "high", "verdict", "reasons")))
            numbers = map(_rounded, (pair.difference, pair.low, pair.high))
            _set(record, draw, (*numbers, VERDICT_LETTERS[str(pair.verdict)], code_set(pair.reasons)))
    return {
        "name": environment.name, "parameters": environment.parameters, "draws": n_draws,
        "seconds": round(time.process_time() - started, 2), "version": tr.__version__,
        "codes": [list(names) for names in code_sets], "messages": dict(messages), "refused": dict(refused),
        "estimates": [
            {"model": model, "metric": metric, "estimator": estimator,
             "truth": environment.true_value(model, metric, estimator)} | record
            for (model, metric, estimator), record in estimates.items()
        ],
        "comparisons": [
            {"model": model, "baseline": baseline, "metric": metric, "estimator": estimator,
             "truth": _true_difference(environment, model, baseline, metric, estimator)} | record
            for (model, baseline, metric, estimator), record in comparisons.items()
        ],
    }  # fmt: skip


def _empty(n_draws: int, names: Sequence[str]) -> Line:
    return {name: [None] * n_draws for name in names}


def _set(record: Line, draw: int, values: Sequence[Any]) -> None:
    for name, value in zip(record, values, strict=True):
        record[name][draw] = value


def _rounded(number: float) -> float | None:
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _true_difference(environment: Environment, model: str, baseline: str, metric: str, estimator: str) -> float | None:
    """0 for models that are equal but for rounding."""
    first = environment.true_value(model, metric, estimator)
    second = environment.true_value(baseline, metric, estimator)
    if first is None or second is None:
        return None
    return 0.0 if abs(first - second) <= ROUNDING * max(abs(first), abs(second)) else first - second


def run(names: Sequence[str | int], out: Path, *, n_draws: int) -> None:
    """Measure these environments (numbers, or names of corners) that `out` does not have yet."""
    present = {line["name"] for line in read_lines(out)} if out.exists() else set()
    if out.exists():
        _remove_cut_line(out)
    load_compiled_kernel()
    for name in names:
        environment = corner_environment(name) if isinstance(name, str) else random_environment(name)
        if environment.name in present:
            continue
        line = measure(environment, n_draws)
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{environment.name}: {line['seconds']} s", flush=True)  # noqa: T201


def load_compiled_kernel() -> None:
    """Evaluate once at a size at which truerank loads its compiled ranking: small calls use it from then on (2x)."""
    n = 3000
    labels = pl.DataFrame(
        {"user": np.arange(n), "item": np.arange(n) % 2, "label": (np.arange(n) % 3 == 0).astype(float)}
    )
    scores = np.zeros((n, n), dtype=np.float32)
    tr.evaluate({"a": scores, "b": scores}, labels, exposure="random", metrics=["Precision@1"], threads=1)


def _remove_cut_line(path: Path) -> None:
    """Remove the last line where a run was stopped while it wrote it: the next line would continue it."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        with path.open("r+b") as file:
            file.truncate(end)


def read_lines(path: Path) -> Iterator[Line]:
    with path.open() as file:
        for text in file:
            if text.endswith("\n"):  # the last line of a run that was killed may be cut
                yield json.loads(text)


# -------------------------------------------------------------------------------------------------------------- rates


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run")
    runner.add_argument("--out", type=Path, required=True)
    runner.add_argument("--draws", type=int, default=N_DRAWS)
    runner.add_argument("--worlds", default=f"0:{N_WORLDS}", help="first:last, the last excluded")
    runner.add_argument("--corners", action="store_true", help="the named corner cases instead of random worlds")
    runner.add_argument("--only", nargs="*", help="names of corner cases")
    summariser = commands.add_parser("summary")
    summariser.add_argument("results", type=Path)
    comparer = commands.add_parser("compare")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "run":
        first, last = map(int, options.worlds.split(":"))
        names: Sequence[str | int] = (options.only or list(CORNERS)) if options.corners else range(first, last)
        run(names, options.out, n_draws=options.draws)
    elif options.command == "summary":
        print(summary_text(summary(read_lines(options.results))))  # noqa: T201
    else:
        print(compare_text(compare(read_lines(options.before), read_lines(options.after))))  # noqa: T201


if __name__ == "__main__":
    main()
