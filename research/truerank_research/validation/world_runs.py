"""Measure type I error, coverage and power of verdicts in simulated environments, and compare two versions of truerank.

    python -m truerank_research.validation.world_runs run --out results.jsonl [--corners]
    python -m truerank_research.validation.world_runs summary results.jsonl
    python -m truerank_research.validation.world_runs compare before.jsonl after.jsonl

A run appends one JSON line per environment and skips those that the file has, so it can be stopped at any time. Which
truerank is measured is decided by PYTHONPATH alone: this package uses public names only.

Definitions
- *Equal* models have the same true value; a verdict `better` or `worse` about them is a type I error. It is counted per
  family (the comparisons of one metric and estimator in one draw): does the family have any such verdict?
- A *warning* on an estimate is a message of severity caution or warning in `estimate.warnings`: both are printed beside
  the value. Notes, and messages about the whole run (such as "nothing is excluded"), are not counted.
- *Coverage* is the share of intervals that contain the true value, among estimates with an interval.
- A verdict about different models is *right* if it has the sign of the true difference, *opposite* otherwise.
- `judge-alone` is shown beside estimates for comparison and estimates something else: it is not measured.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank_research.validation.corner_worlds import CORNERS, corner_environment
from truerank_research.validation.random_worlds import N_WORLDS, Environment, draw_rng, random_environment

N_DRAWS = 200
NOT_MEASURED = ("judge-alone",)
VERDICT_LETTERS = {"better": "b", "worse": "w", "insufficient": "i", "insufficient evidence": "i"}  # others: "n"
ROUNDING = 1e-9  # true differences below this share of the value are equal

Line = dict[str, Any]


# ----------------------------------------------------------------------------------------------------------- measuring


def measure(environment: Environment, n_draws: int) -> Line:
    """All draws of an environment as one JSON object: a list per estimate and comparison, with a value per draw."""
    started = time.process_time()
    estimates: dict[tuple[str, ...], Line] = {}
    comparisons: dict[tuple[str, ...], Line] = {}
    code_sets: dict[tuple[str, ...], int] = {(): 0}
    messages: Counter[str] = Counter()
    refused: Counter[str] = Counter()

    def codes(of_messages: Iterable[Any]) -> int:
        serious = {f"{message.severity}:{message.code}" for message in of_messages if message.severity != "note"}
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
            _set(record, draw, (*numbers, codes(estimate.warnings)))
        for pair in results.comparisons:
            key = (pair.model, pair.baseline, pair.metric, pair.estimator)
            record = comparisons.setdefault(
                key, _empty(n_draws, ("difference", "low", "high", "p", "verdict", "reasons"))
            )
            numbers = map(_rounded, (pair.difference, pair.low, pair.high, pair.p_adjusted))
            _set(record, draw, (*numbers, VERDICT_LETTERS.get(str(pair.verdict), "n"), codes(pair.reasons)))
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
    load_compiled_kernel()
    for name in names:
        environment = corner_environment(name) if isinstance(name, str) else random_environment(name)
        if environment.name in present:
            continue
        line = measure(environment, n_draws)
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{environment.name}: {line['seconds']} s", flush=True)


def load_compiled_kernel() -> None:
    """Evaluate once at a size at which truerank loads its compiled ranking: small calls use it from then on (2x)."""
    n = 3000
    labels = pl.DataFrame(
        {"user": np.arange(n), "item": np.arange(n) % 2, "label": (np.arange(n) % 3 == 0).astype(float)}
    )
    scores = np.zeros((n, n), dtype=np.float32)
    tr.evaluate({"a": scores, "b": scores}, labels, exposure="random", metrics=["Precision@1"], threads=1)


def read_lines(path: Path) -> Iterator[Line]:
    with path.open() as file:
        for text in file:
            if text.endswith("\n"):  # the last line of a run that was killed may be cut
                yield json.loads(text)


# -------------------------------------------------------------------------------------------------------------- rates


def world_rates(line: Line) -> Line:
    """What one environment shows: type I error, coverage, warnings and right verdicts, with the number of each."""
    warned = np.array([bool(names) for names in line["codes"]])
    counts: Counter[str] = Counter()
    families: dict[tuple[str, str], Any] = {}
    for estimate in line["estimates"]:
        if estimate["truth"] is None or estimate["estimator"] in NOT_MEASURED:
            continue
        made = np.array([index is not None for index in estimate["warnings"]])
        is_warned = warned[[index or 0 for index in estimate["warnings"]]]
        low, high = _floats(estimate["low"]), _floats(estimate["high"])
        has_interval = made & ~np.isnan(low) & ~np.isnan(high)
        covered = _covered(estimate["truth"], low, high)
        counts["estimates"] += int(made.sum())
        counts["undefined"] += int((made & np.isnan(_floats(estimate["value"]))).sum())
        counts["warned"] += int((made & is_warned).sum())
        counts["intervals"] += int(has_interval.sum())
        counts["covered"] += int((has_interval & covered).sum())
        counts["intervals without warning"] += int((has_interval & ~is_warned).sum())
        counts["covered without warning"] += int((has_interval & ~is_warned & covered).sum())
    for pair in line["comparisons"]:
        if pair["truth"] is None or pair["estimator"] in NOT_MEASURED:
            continue
        made = np.array([letter is not None for letter in pair["verdict"]])
        better, worse = (np.array([letter == wanted for letter in pair["verdict"]]) for wanted in "bw")
        low, high = _floats(pair["low"]), _floats(pair["high"])
        has_interval = made & ~np.isnan(low) & ~np.isnan(high)
        counts["comparisons"] += int(made.sum())
        counts["insufficient"] += sum(letter == "i" for letter in pair["verdict"])
        counts["difference intervals"] += int(has_interval.sum())
        counts["differences covered"] += int((has_interval & _covered(pair["truth"], low, high)).sum())
        excludes_zero = has_interval & ((low > 0) | (high < 0))
        not_shown = np.array([letter == "n" for letter in pair["verdict"]])
        contradicts = (excludes_zero & not_shown) | ((better | worse) & has_interval & ~excludes_zero)
        counts["contradictions"] += int(contradicts.sum())
        if pair["truth"] == 0:
            key = (pair["metric"], pair["estimator"])
            known, false = families.get(key, (np.zeros_like(made), np.zeros_like(made)))
            families[key] = (known | made, false | better | worse)
            counts["equal comparisons"] += int(made.sum())
            counts["false verdicts"] += int((better | worse).sum())
        else:
            right, opposite = (better, worse) if pair["truth"] > 0 else (worse, better)
            counts["different comparisons"] += int(made.sum())
            counts["right verdicts"] += int(right.sum())
            counts["opposite verdicts"] += int(opposite.sum())
    counts["families"] = sum(int(known.sum()) for known, _ in families.values())
    counts["false families"] = sum(int(false.sum()) for _, false in families.values())
    return {
        "name": line["name"], "parameters": line["parameters"], "refused": sum(line["refused"].values()),
        "counts": counts,
        "type one": _share(counts["false families"], counts["families"]),
        "coverage": _share(counts["covered"], counts["intervals"]),
        "coverage without warning": _share(counts["covered without warning"], counts["intervals without warning"]),
        "warned": _share(counts["warned"], counts["estimates"]),
        "difference coverage": _share(counts["differences covered"], counts["difference intervals"]),
        "right": _share(counts["right verdicts"], counts["different comparisons"]),
        "opposite": _share(counts["opposite verdicts"], counts["different comparisons"]),
        "insufficient": _share(counts["insufficient"], counts["comparisons"]),
    }  # fmt: skip


def _floats(values: Sequence[float | None]) -> Any:
    return np.array([math.nan if value is None else value for value in values])


def _covered(truth: float, low: Any, high: Any) -> Any:
    """Ends are rounded to six digits, so a true value at an end counts as covered."""
    slack = 1e-5 * np.maximum(np.abs(low), np.abs(high))
    return (low - slack <= truth) & (truth <= high + slack)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# ------------------------------------------------------------------------------------------------------------ summary


def summary(lines: Iterable[Line], *, worst: int = 30) -> Line:
    """The figures over all environments, and the environments that fall short, worst first."""
    rates = [world_rates(line) for line in lines]
    total: Counter[str] = sum((rate["counts"] for rate in rates), Counter())
    errors = sorted((rate["type one"] for rate in rates if rate["type one"] is not None), reverse=True)
    powers = [rate["right"] for rate in rates if rate["right"] is not None]
    return {
        "worlds": len(rates),
        "refused draws": sum(rate["refused"] for rate in rates),
        "type I error": float(np.mean(errors)) if errors else None,
        f"type I error, mean of the {worst} worst worlds": float(np.mean(errors[:worst])) if errors else None,
        "worlds above 12 %": sum(error > 0.12 for error in errors),
        "type I error per comparison": _share(total["false verdicts"], total["equal comparisons"]),
        "coverage of values": _share(total["covered"], total["intervals"]),
        "coverage without a warning": _share(total["covered without warning"], total["intervals without warning"]),
        "estimates with a warning": _share(total["warned"], total["estimates"]),
        "estimates without an interval": 1 - total["intervals"] / max(total["estimates"], 1),
        "coverage of differences": _share(total["differences covered"], total["difference intervals"]),
        "right verdicts, mean over worlds": float(np.mean(powers)) if powers else None,
        "opposite verdicts": _share(total["opposite verdicts"], total["different comparisons"]),
        "insufficient": _share(total["insufficient"], total["comparisons"]),
        "interval contradicts verdict": _share(total["contradictions"], total["comparisons"]),
        "false worlds": [_brief(rate) for rate in sorted(rates, key=_type_one, reverse=True)[:worst]],
        "uncovered worlds": [_brief(rate) for rate in sorted(rates, key=_coverage)[:worst]],
    }


def _type_one(rate: Line) -> float:
    return -1.0 if rate["type one"] is None else float(rate["type one"])


def _coverage(rate: Line) -> float:
    return 2.0 if rate["coverage"] is None else float(rate["coverage"])


def _brief(rate: Line) -> str:
    """An environment and its rates on one line."""
    p = rate["parameters"]
    shown = ("exposure", "models", "n_models", "n_users", "metrics", "rows", "unequal_rows", "judge", "estimators",
             "family", "fitted", "sessions", "reward")  # fmt: skip
    settings = " ".join(str(p[name]) for name in shown if p.get(name) is not None)
    names = (
        "type one",
        "coverage",
        "coverage without warning",
        "warned",
        "difference coverage",
        "right",
        "insufficient",
    )
    figures = " ".join(f"{name} {rate[name]:.1%}" for name in names if rate[name] is not None)
    return f"{rate['name']}: {figures} | {settings}"


def compare(before: Iterable[Line], after: Iterable[Line]) -> Line:
    """The share of right verdicts of two versions, in environments where the first was right.

    It was right where it kept its promises but for Monte-Carlo error (two standard errors of 200 draws): type I error
    at most 8 %, coverage of values and differences at least 90 %, opposite verdicts at most 2.5 %. Shares are compared
    for estimators that both have; where a metric has none in common, for all of each.
    """
    first = {line["name"]: line for line in before}
    rows = []
    for line in after:
        earlier = first.get(line["name"])
        if earlier is None or not _was_right(world_rates(earlier)):
            continue
        shares = [_right_share(earlier, line), _right_share(line, earlier)]
        if None not in shares:
            rows.append((shares[1] - shares[0], shares[0], shares[1], line["name"]))
    changes = [row[0] for row in rows]
    return {
        "worlds where the first was right": len(rows),
        "right verdicts before": float(np.mean([row[1] for row in rows])) if rows else None,
        "right verdicts after": float(np.mean([row[2] for row in rows])) if rows else None,
        "mean change": float(np.mean(changes)) if rows else None,
        "worlds that lose more than 3 points": sum(change < -0.03 for change in changes),
        "largest losses": [f"{name}: {old:.1%} -> {new:.1%}" for _, old, new, name in sorted(rows)[:20]],
    }


def _was_right(rate: Line) -> bool:
    limits = (("type one", 0.08, 1), ("opposite", 0.025, 1), ("coverage", 0.9, -1), ("difference coverage", 0.9, -1))
    return all(rate[name] is None or sign * rate[name] <= sign * limit for name, limit, sign in limits)


def _right_share(line: Line, other: Line) -> float | None:
    """Right verdicts among different models, for estimators that both lines have where a metric has any."""
    estimators = defaultdict(set)
    for pair in other["comparisons"]:
        estimators[pair["metric"]].add(pair["estimator"])
    common = {
        (pair["metric"], pair["estimator"])
        for pair in line["comparisons"]
        if pair["estimator"] in estimators[pair["metric"]]
    }
    metrics = {metric for metric, _ in common}
    right = made = 0
    for pair in line["comparisons"]:
        is_compared = (pair["metric"], pair["estimator"]) in common or pair["metric"] not in metrics
        if not pair["truth"] or pair["estimator"] in NOT_MEASURED or not is_compared:
            continue
        wanted = "b" if pair["truth"] > 0 else "w"
        right += sum(letter == wanted for letter in pair["verdict"])
        made += len(pair["verdict"])  # a draw that was refused has no right verdict
    return _share(right, made)


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
        print(json.dumps(summary(read_lines(options.results)), indent=1))
    else:
        print(json.dumps(compare(read_lines(options.before), read_lines(options.after)), indent=1))


if __name__ == "__main__":
    main()
