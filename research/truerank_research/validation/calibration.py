"""Type I error, coverage and power of verdicts, in random simulated environments and in named corner cases.

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

from functools import cache
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank.core.errors import TruerankError
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.corner_worlds import CORNERS, corner_environment
from truerank_research.validation.environments import Environment, draw_rng
from truerank_research.validation.random_worlds import N_WORLDS, random_environment

N_DRAWS = 200
N_WORST = 30  # with a rate of 5 % everywhere, 200 draws would give the 30 worst of 300 a mean of 7.8 % by chance
NOT_MEASURED = "judge-alone"
ROUNDING = 1e-9  # true differences below this share of the value are equal, and ends of intervals this close cover
DECISIONS = {"better": 1, "worse": -1}
ENDS = {"truth": pl.Float64, "low": pl.Float64, "high": pl.Float64}
FAMILY = {"draw": pl.Int64, "metric": pl.String, "estimator": pl.String}
ESTIMATES: dict[str, Any] = FAMILY | ENDS | {"is_warned": pl.Boolean}
COMPARISONS: dict[str, Any] = FAMILY | ENDS | {"decision": pl.Int64, "is_insufficient": pl.Boolean}


def evaluate_draws(environment: Environment, n_draws: int) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """The estimates and comparisons of all draws, and how many draws were refused."""
    estimates: list[tuple[Any, ...]] = []
    comparisons: list[tuple[Any, ...]] = []
    n_refused = 0
    for draw in range(n_draws):
        try:
            results = environment.evaluate(draw_rng(environment.key, draw))
        except TruerankError:
            n_refused += 1
            continue
        for value in results.estimates:
            truth = environment.true_value(value.model, value.metric, value.estimator)
            is_warned = any(message.severity != "note" for message in value.warnings)
            estimates.append((draw, value.metric, value.estimator, truth, value.low, value.high, is_warned))
        for pair in results.comparisons:
            truth = _true_difference(environment, pair.model, pair.baseline, pair.metric, pair.estimator)
            verdict = str(pair.verdict)
            decision, is_insufficient = DECISIONS.get(verdict, 0), verdict.startswith("insufficient")
            comparisons.append(
                (draw, pair.metric, pair.estimator, truth, pair.low, pair.high, decision, is_insufficient)
            )
    return (
        pl.DataFrame(estimates, schema=ESTIMATES, orient="row"),
        pl.DataFrame(comparisons, schema=COMPARISONS, orient="row"),
        n_refused,
    )


def _true_difference(environment: Environment, model: str, baseline: str, metric: str, estimator: str) -> float | None:
    """0 for models that are equal but for rounding."""
    first = environment.true_value(model, metric, estimator)
    second = environment.true_value(baseline, metric, estimator)
    if first is None or second is None:
        return None
    return 0.0 if abs(first - second) <= ROUNDING * max(abs(first), abs(second)) else first - second


def count(estimates: pl.DataFrame, comparisons: pl.DataFrame) -> dict[str, int]:
    """The counts that the rates of an environment are made of."""
    is_measured = pl.col("truth").is_not_null() & (pl.col("estimator") != NOT_MEASURED)
    values, pairs = (table.filter(is_measured) for table in (estimates, comparisons))
    low, high, truth = (pl.col(name) for name in ("low", "high", "truth"))
    has_interval = low.is_finite() & high.is_finite()
    slack = ROUNDING * pl.max_horizontal(low.abs(), high.abs())
    is_covered = has_interval & (low - slack <= truth) & (truth <= high + slack)
    is_sure, decision = ~pl.col("is_warned"), pl.col("decision")
    excludes_zero = has_interval & ((low > 0) | (high < 0))
    is_open = (decision == 0) & ~pl.col("is_insufficient")
    is_different = truth != 0
    families = pairs.filter(~is_different).group_by(list(FAMILY)).agg(is_false=(decision != 0).any())
    counts = values.select(
        estimates=pl.len(),
        warned=pl.col("is_warned").sum(),
        intervals=has_interval.sum(),
        covered=is_covered.sum(),
        sure_intervals=(has_interval & is_sure).sum(),
        sure_covered=(is_covered & is_sure).sum(),
    ).row(0, named=True)
    return counts | {"families": len(families), "false": int(families["is_false"].sum())} | pairs.select(
        comparisons=pl.len(),
        insufficient=pl.col("is_insufficient").sum(),
        difference_intervals=has_interval.sum(),
        differences_covered=is_covered.sum(),
        contradictions=((excludes_zero & is_open) | ((decision != 0) & has_interval & ~excludes_zero)).sum(),
        different=is_different.sum(),
        right=(is_different & (decision == truth.sign())).sum(),
        opposite=(is_different & (decision == -truth.sign())).sum(),
    ).row(0, named=True)  # fmt: skip


@cache
def load_compiled_kernel() -> None:
    """Evaluate once at a size at which truerank loads its compiled ranking: small calls use it from then on (2x)."""
    n = 3000
    users = np.arange(n)
    labels = pl.DataFrame({"user": users, "item": users % 2, "label": (users % 3 == 0).astype(float)})
    scores = np.zeros((n, n), dtype=np.float32)
    tr.evaluate({"a": scores, "b": scores}, labels, exposure="random", metrics=["Precision@1"], threads=1)


def measure_environment(name: int | str, n_draws: int) -> pl.DataFrame:
    """The counts of a random environment (by its number) or of a corner case (by its name), in one row."""
    load_compiled_kernel()
    environment = corner_environment(name) if isinstance(name, str) else random_environment(name)
    estimates, comparisons, n_refused = evaluate_draws(environment, n_draws)
    p = environment.parameters
    settings = {
        "environment": environment.name, "exposure": p["exposure"], "judge": p["judge"], "users": p["n_users"],
        "models": p["n_models"], "metrics": ", ".join(p.get("metrics", ["reward"])),
    }  # fmt: skip
    return pl.DataFrame([settings | {"refused": n_refused} | count(estimates, comparisons)])


def measure(run: Run) -> Measured:
    """Every random environment and every corner case."""
    numbers, n_draws = (range(N_WORLDS), N_DRAWS) if run.full else (range(3), 4)
    corners = list(CORNERS) if run.full else list(CORNERS)[-1:]
    names: list[int | str] = [*numbers, *corners]
    tables = run.pieces(measure_environment, [(name, n_draws) for name in names], about="drawing environments")
    rows = with_rates(pl.concat(tables, how="vertical_relaxed"))
    return calibration_tables(rows.head(len(numbers)), rows.tail(len(corners)), n_draws)


def with_rates(counts: pl.DataFrame) -> pl.DataFrame:
    """With type I error, coverage and the share of right verdicts; null where there is nothing to count."""
    parts = {"error": ("false", "families"), "coverage": ("covered", "intervals"), "power": ("right", "different")}
    return counts.with_columns(
        pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole)).alias(name)
        for name, (part, whole) in parts.items()
    )


def calibration_tables(environments: pl.DataFrame, corners: pl.DataFrame, n_draws: int) -> Measured:
    """All environments and corner cases with their counts, and rates over kinds of data."""
    kinds = environments.partition_by("exposure", as_dict=True)
    groups = [("all", environments), *sorted((str(kind), part) for (kind,), part in kinds.items())]
    cases = corners.partition_by("environment", maintain_order=True)
    groups += [(part["environment"][0], part) for part in cases]
    return Measured(
        {
            "groups": [group_row(name, part) for name, part in groups],
            "environments": environments.to_dicts(),
            "corners": corners.to_dicts(),
        },
        {"draws": n_draws, "environments": len(environments), "worst": N_WORST},
    )


def group_row(name: str, part: pl.DataFrame) -> dict[str, Any]:
    """Type I error as a mean over environments, and over the worst of them; the others over all draws."""
    total = part.drop(pl.selectors.string(), "error", "coverage", "power").sum().row(0, named=True)

    def rate(count: str, of: str) -> float | None:
        return total[count] / total[of] if total[of] else None

    errors = part["error"].drop_nulls().sort(descending=True)
    return {
        "data": name, "environments": len(part), "error": errors.mean(), "worst error": errors.head(N_WORST).mean(),
        "largest error": errors.max(), "coverage": rate("covered", "intervals"),
        "sure coverage": rate("sure_covered", "sure_intervals"), "warned": rate("warned", "estimates"),
        "difference coverage": rate("differences_covered", "difference_intervals"),
        "power": part["power"].mean(), "opposite": rate("opposite", "different"),
        "insufficient": rate("insufficient", "comparisons"), "contradictions": rate("contradictions", "comparisons"),
        "refused": total["refused"],
    }  # fmt: skip


STUDIES = (
    Study(
        "calibration", "Do intervals and verdicts have the error rates that truerank states?", measure, minutes=40,
    ),
)  # fmt: skip
