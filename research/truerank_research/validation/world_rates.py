"""Error rates of verdicts and intervals from measured environments: per environment, over all, and of two versions.

Definitions
- *Equal* models have the same true value; a verdict `better` or `worse` about them is a type I error. It is counted per
  family (the comparisons of one metric and estimator in one draw): does the family have any such verdict?
- A *warning* on an estimate is a message of severity caution or warning in `estimate.warnings`: both are printed beside
  the value. Notes, and messages about the whole run (such as "nothing is excluded"), are not counted.
- *Coverage* is the share of intervals that contain the true value, among estimates with an interval.
- A verdict about different models is *right* if it has the sign of the true difference, *opposite* otherwise.
- `judge-alone` is displayed beside estimates for comparison and estimates something else: it is not measured.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

NOT_MEASURED = ("judge-alone",)
N_WORST = 30  # with a rate of 5 % everywhere, 200 draws would give the 30 worst of 300 a mean of 7.8 % by chance
ABOVE = 0.12  # environments with a larger type I error are listed with all settings
LIMITS = {
    "type I error": ("at most", 0.06),
    f"type I error, mean of the {N_WORST} worst environments": ("at most", 0.11),
    "coverage": ("at least", 0.93),
    "coverage without a warning": ("at least", 0.93),
    "estimates with a warning": ("at most", 0.25),
}
MOST_LOST = 0.03  # share of right verdicts that a version may lose where the first was right
POWERFUL = 0.05  # most environments have differences too small to be noticed: a loss shows where verdicts were reached

Line = dict[str, Any]


# ---------------------------------------------------------------------------------------------------- one environment


def world_rates(line: Line) -> Line:
    """What one environment shows: type I error, coverage, warnings and right verdicts, with the counts behind them."""
    counts = _count_estimates(line) + _count_comparisons(line)
    return {
        "name": line["name"], "parameters": line["parameters"], "refused": Counter(line["refused"]),
        "counts": counts,
        "type I error": _share(counts["false families"], counts["families"]),
        "coverage": _share(counts["covered"], counts["intervals"]),
        "coverage without a warning": _share(counts["covered without warning"], counts["intervals without warning"]),
        "estimates with a warning": _share(counts["warned"], counts["estimates"]),
        "coverage of differences": _share(counts["differences covered"], counts["difference intervals"]),
        "right verdicts": _share(counts["right verdicts"], counts["different comparisons"]),
        "opposite verdicts": _share(counts["opposite verdicts"], counts["different comparisons"]),
        "insufficient evidence": _share(counts["insufficient"], counts["comparisons"]),
    }  # fmt: skip


def _count_estimates(line: Line) -> Counter[str]:
    has_codes = np.array([bool(names) for names in line["codes"]])
    counts: Counter[str] = Counter()
    for estimate in _measured(line["estimates"]):
        is_present = np.array([index is not None for index in estimate["warnings"]])
        is_warned = is_present & has_codes[[index or 0 for index in estimate["warnings"]]]
        low, high = _floats(estimate["low"]), _floats(estimate["high"])
        has_interval = is_present & ~np.isnan(low) & ~np.isnan(high)
        is_covered = has_interval & _covers(estimate["truth"], low, high)
        counts["estimates"] += int(is_present.sum())
        counts["warned"] += int(is_warned.sum())
        counts["intervals"] += int(has_interval.sum())
        counts["covered"] += int(is_covered.sum())
        counts["intervals without warning"] += int((has_interval & ~is_warned).sum())
        counts["covered without warning"] += int((is_covered & ~is_warned).sum())
    return counts


def _count_comparisons(line: Line) -> Counter[str]:
    counts: Counter[str] = Counter()
    has_family: dict[tuple[str, str], Any] = {}
    has_error: dict[tuple[str, str], Any] = {}
    for pair in _measured(line["comparisons"]):
        verdicts = np.array([letter or "" for letter in pair["verdict"]])
        is_present, is_better, is_worse = verdicts != "", verdicts == "b", verdicts == "w"
        low, high = _floats(pair["low"]), _floats(pair["high"])
        has_interval = is_present & ~np.isnan(low) & ~np.isnan(high)
        excludes_zero = has_interval & ((low > 0) | (high < 0))
        is_decided = is_better | is_worse
        contradicts = (excludes_zero & (verdicts == "n")) | (is_decided & has_interval & ~excludes_zero)
        counts["comparisons"] += int(is_present.sum())
        counts["insufficient"] += int((verdicts == "i").sum())
        counts["difference intervals"] += int(has_interval.sum())
        counts["differences covered"] += int((has_interval & _covers(pair["truth"], low, high)).sum())
        counts["contradictions"] += int(contradicts.sum())
        if pair["truth"] == 0:
            family = (pair["metric"], pair["estimator"])
            has_family[family] = has_family.get(family, False) | is_present
            has_error[family] = has_error.get(family, False) | is_decided
            counts["equal comparisons"] += int(is_present.sum())
            counts["false verdicts"] += int(is_decided.sum())
        else:
            is_right, is_opposite = (is_better, is_worse) if pair["truth"] > 0 else (is_worse, is_better)
            counts["different comparisons"] += int(is_present.sum())
            counts["right verdicts"] += int(is_right.sum())
            counts["opposite verdicts"] += int(is_opposite.sum())
    counts["families"] = sum(int(draws.sum()) for draws in has_family.values())
    counts["false families"] = sum(int(draws.sum()) for draws in has_error.values())
    return counts


def _measured(records: Iterable[Line]) -> Iterator[Line]:
    """Estimates or comparisons with a true value to measure them by."""
    return (record for record in records if record["truth"] is not None and record["estimator"] not in NOT_MEASURED)


def _floats(values: Sequence[float | None]) -> Any:
    return np.array([math.nan if value is None else value for value in values])


def _covers(truth: float, low: Any, high: Any) -> Any:
    """Ends are rounded to six digits, so a true value at an end counts as covered."""
    slack = 1e-5 * np.maximum(np.abs(low), np.abs(high))
    return (low - slack <= truth) & (truth <= high + slack)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# --------------------------------------------------------------------------------------------------- all environments


def summary(lines: Iterable[Line]) -> Line:
    """The figures over all environments, those that fall short worst first, and those above 12 % with all settings."""
    rates = [world_rates(line) for line in lines]
    total: Counter[str] = sum((rate["counts"] for rate in rates), Counter())
    by_error = sorted(_having(rates, "type I error"), key=lambda rate: rate["type I error"], reverse=True)
    by_coverage = sorted(_having(rates, "coverage"), key=lambda rate: rate["coverage"])
    errors = [rate["type I error"] for rate in by_error]
    return {
        "environments": len(rates),
        "environments with equal models": len(errors),
        "draws refused": sum(rate["refused"].total() for rate in rates),
        "type I error": _mean(errors),
        f"type I error, mean of the {N_WORST} worst environments": _mean(errors[:N_WORST]),
        "type I error per comparison": _share(total["false verdicts"], total["equal comparisons"]),
        "coverage": _share(total["covered"], total["intervals"]),
        "coverage without a warning": _share(total["covered without warning"], total["intervals without warning"]),
        "estimates with a warning": _share(total["warned"], total["estimates"]),
        "estimates without an interval": _share(total["estimates"] - total["intervals"], total["estimates"]),
        "coverage of differences": _share(total["differences covered"], total["difference intervals"]),
        "right verdicts, mean over environments": _mean(
            [rate["right verdicts"] for rate in _having(rates, "right verdicts")]
        ),
        "opposite verdicts": _share(total["opposite verdicts"], total["different comparisons"]),
        "insufficient evidence": _share(total["insufficient"], total["comparisons"]),
        "interval contradicts verdict": _share(total["contradictions"], total["comparisons"]),
        "above": [(rate["name"], rate["type I error"], rate["parameters"]) for rate in by_error
                  if rate["type I error"] > ABOVE],
        "refusals": [f"{rate['name']}: {text} ({n})" for rate in rates for text, n in rate["refused"].items()],
        "most errors": [_brief(rate) for rate in by_error[:N_WORST]],
        "least coverage": [_brief(rate) for rate in by_coverage[:N_WORST]],
    }  # fmt: skip


def summary_text(figures: Line) -> str:
    """A summary to print: criteria with their limits, other figures, the environments above 12 %, the worst ones."""
    lines = []
    for name, value in figures.items():
        if isinstance(value, list):
            continue
        text = "none" if value is None else str(value) if isinstance(value, int) else f"{value:.1%}"
        if name in LIMITS and value is not None:
            direction, limit = LIMITS[name]
            is_met = value <= limit if direction == "at most" else value >= limit
            text += f" ({direction} {limit:.0%}: {'met' if is_met else 'NOT MET'})"
        lines.append(f"{name}: {text}")
    lines.append(f"environments with a type I error above {ABOVE:.0%}: {len(figures['above'])}")
    lines += [f"  {name}: {error:.1%} | {settings}" for name, error, settings in figures["above"]]
    for name in ("refusals", "most errors", "least coverage"):
        lines += ["", f"{name}:", *(f"  {text}" for text in figures[name])]
    return "\n".join(lines)


def _having(rates: Iterable[Line], name: str) -> list[Line]:
    return [rate for rate in rates if rate[name] is not None]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _brief(rate: Line) -> str:
    """An environment and its rates on one line."""
    settings = ("exposure", "models", "n_models", "n_users", "metrics", "rows", "unequal_rows", "judge", "estimators",
                "family", "fitted", "sessions", "reward")  # fmt: skip
    names = ("type I error", "coverage", "coverage without a warning", "estimates with a warning",
             "coverage of differences", "right verdicts", "insufficient evidence")  # fmt: skip
    figures = ", ".join(f"{name} {rate[name]:.1%}" for name in names if rate[name] is not None)
    parameters = rate["parameters"]
    return f"{rate['name']}: {figures} | " + " ".join(
        str(parameters[name]) for name in settings if parameters.get(name) is not None
    )


# -------------------------------------------------------------------------------------------------------- two versions


def compare(before: Iterable[Line], after: Iterable[Line]) -> Line:
    """The share of right verdicts of two versions, in environments where the first was right.

    It was right where it kept its rates but for Monte-Carlo error (two standard errors of 200 draws): type I error at
    most 8 %, coverage of values and differences at least 90 %, opposite verdicts at most 2.5 %. Shares are compared for
    estimators that both have; where a metric has none in common, for all estimators of each version.
    """
    first = {line["name"]: line for line in before}
    rows = []
    for line in after:
        earlier = first.get(line["name"])
        if earlier is None or not _was_right(world_rates(earlier)):
            continue
        old, new = _right_share(earlier, line), _right_share(line, earlier)
        if old is not None and new is not None:
            rows.append((new - old, old, new, line["name"]))
    return {
        "environments where the first was right": len(rows),
        "right verdicts before": _mean([row[1] for row in rows]),
        "right verdicts after": _mean([row[2] for row in rows]),
        "mean change": _mean([row[0] for row in rows]),
        f"environments with at least {POWERFUL:.0%} right verdicts before": sum(row[1] >= POWERFUL for row in rows),
        "mean change in those": _mean([row[0] for row in rows if row[1] >= POWERFUL]),
        f"environments that lose more than {MOST_LOST:.0%}": sum(row[0] < -MOST_LOST for row in rows),
        f"environments that gain more than {MOST_LOST:.0%}": sum(row[0] > MOST_LOST for row in rows),
        "largest losses": [f"{name}: {old:.1%} -> {new:.1%}" for _, old, new, name in sorted(rows)[:20]],
    }


def compare_text(figures: Line) -> str:
    """A comparison of two versions to print."""
    lines = []
    for name, value in figures.items():
        if isinstance(value, list):
            lines += ["", f"{name}:", *(f"  {text}" for text in value)]
            continue
        text = "none" if value is None else str(value) if isinstance(value, int) else f"{value:.1%}"
        if name.startswith("mean change") and value is not None:
            text += f" (at least {-MOST_LOST:.0%}: {'met' if value >= -MOST_LOST else 'NOT MET'})"
        lines.append(f"{name}: {text}")
    return "\n".join(lines)


def _was_right(rate: Line) -> bool:
    most = {"type I error": 0.08, "opposite verdicts": 0.025}
    least = {"coverage": 0.9, "coverage of differences": 0.9}
    return all(rate[name] is None or rate[name] <= limit for name, limit in most.items()) and all(
        rate[name] is None or rate[name] >= limit for name, limit in least.items()
    )


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
    n_right = n_draws = 0
    for pair in _measured(line["comparisons"]):
        is_compared = (pair["metric"], pair["estimator"]) in common or pair["metric"] not in metrics
        if not pair["truth"] or not is_compared:
            continue
        right_letter = "b" if pair["truth"] > 0 else "w"
        n_right += sum(letter == right_letter for letter in pair["verdict"])
        n_draws += len(pair["verdict"])  # a draw that was refused has no right verdict
    return _share(n_right, n_draws)
