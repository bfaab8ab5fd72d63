"""Type I error, coverage and power of verdicts, in random simulated environments and in named corner cases.

Every setting of a random environment is drawn from a wide range by a fixed seed. An environment is a law of units: a
finite population of users (or users with sessions) with weights. Each draw takes new users from it, independently and
with replacement, so the true values are exact sums over the population. Models have exactly equal true values where
every user has copies with the models exchanged ("rotated": all models, "partly": the first two), or where the weights
of users are tilted until the first two are equal ("tilted": their difference is then skewed; where no mild tilt does
it, all models differ). Models beyond those differ.

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

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank.core.errors import TruerankError
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.corner_worlds import CORNERS, corner_environment
from truerank_research.validation.environments import SEED, Environment, Parameters, draw_rng
from truerank_research.validation.labelled_worlds import labelled_environment, ranked_environment

N_WORLDS = 300


def random_environment(index: int) -> Environment:
    """The environment with this number."""
    parameters = draw_parameters(index)
    make = ranked_environment if parameters["exposure"] == "off-policy" else labelled_environment
    return make(f"world {index}", (index,), parameters)


def draw_parameters(index: int) -> Parameters:
    """All settings of an environment, drawn by its number.

    In a fifth of the environments the data may be as sparse as it comes; the others have at least 10 expected hits (or
    30 rewards), because in data without hits nothing but insufficient evidence can be measured.
    """
    rng = np.random.default_rng([SEED, index, 0])
    may_be_sparse = rng.random() < 0.2
    kinds = {"random": 0.36, "designed": 0.14, "biased": 0.16, "full": 0.08, "holdout": 0.06, "off-policy": 0.2}
    exposure = _choose(rng, kinds)
    judge = _choose(rng, {"none": 0.68, "useless": 0.07, "good": 0.13, "biased": 0.08, "scores": 0.04})
    judge = judge if exposure in ("random", "designed", "biased") else "none"
    while True:
        p = _draw_parameters(rng, exposure, judge)
        if may_be_sparse or p["expected_hits"] >= (30 if p["exposure"] == "off-policy" else 10):
            return p


def _draw_parameters(rng: np.random.Generator, exposure: str, judge: str) -> Parameters:
    models = _choose(rng, {"rotated": 0.32, "tilted": 0.33, "partly": 0.35})
    n_models = int(_choose(rng, {2: 0.55, 3: 0.24, 4: 0.11, 5: 0.05, 6: 0.05})) + (models == "partly")
    common: Parameters = {
        "exposure": exposure,
        "judge": judge,
        "n_models": min(n_models, 6),
        "models": models,
        "equal_are_best": bool(rng.random() < 0.5),
        "quality": float(rng.uniform(0, 2.5)),
        "gap": _log_uniform(rng, 0.05, 2.0),
        "shared_noise": float(rng.choice([0.0, rng.uniform(0, 0.97)])),
        "minority": float(rng.choice([0.0, rng.uniform(0.02, 0.3)])),
        "activity": float(rng.uniform(0, 1.4)),
        "no_positives": float(rng.choice([0.0, rng.uniform(0, 0.6)])),
        "positives": _log_uniform(rng, 0.005, 0.4),
        "popularity": float(rng.uniform(0, 1.3)),
        "taste": float(rng.uniform(0.2, 1.5)),
        "baseline": bool(rng.random() < 0.5),
    }
    settings = _ranked_parameters if exposure == "off-policy" else _labelled_parameters
    return common | settings(rng, common)


def _labelled_parameters(rng: np.random.Generator, common: Parameters) -> Parameters:
    exposure, judge = common["exposure"], common["judge"]
    most = (
        800 if judge != "none" else {"full": 500, "holdout": 1000}.get(exposure, min(3000, 7000 / common["n_models"]))
    )
    n_users = round(_mostly_small(rng, 20, most))
    pairs = 20_000 if judge != "none" or exposure == "full" else 120_000
    n_items = round(_log_uniform(rng, 30, max(40, min(600, pairs / n_users))))
    k = int(rng.choice([k for k in (1, 3, 5, 10, 20, 50) if k <= n_items / 3]))
    share = max(common["positives"], 0.5 / n_items)
    ties = bool(rng.random() < 0.2)
    metrics = _metrics(rng, exposure, judge, k, ties=ties)
    rows = round(_log_uniform(rng, 2, min(80, 0.7 * n_items)))
    places = max(1 / (1 - float(metric[4:])) if "RBP" in metric else k for metric in metrics)
    labelled = n_items if exposure in ("full", "holdout") else rows
    expected_hits = n_users * labelled * places / n_items * share * (1 - common["no_positives"])
    return {
        "n_users": n_users, "n_items": n_items, "metrics": metrics, "positives": share, "ties": ties,
        "expected_hits": expected_hits,
        "rows": rows if exposure == "random" else max(rows, 4),
        "unequal_rows": _choose(rng, {"equal": 0.4, "unequal": 0.25, "with activity": 0.2, "rate": 0.15}),
        "rows_spread": float(rng.uniform(0.2, 1.2)), "rows_activity": float(rng.uniform(-1, 1)),
        "excluded": float(rng.choice([0.0, 0.0, 0.0, rng.uniform(0.05, 0.3)])),
        "draws_are": _choose(rng, {"poisson": 0.5, "systematic": 0.5}),
        "uniform_share": float(rng.uniform(0.25, 0.6)), "designed_models": int(rng.integers(1, common["n_models"] + 1)),
        "floor": _log_uniform(rng, 0.01, 0.1), "exposure_popularity": float(rng.uniform(0, 1.5)),
        "exposure_taste": float(rng.uniform(0, 1.0)),
        "sensitivity": float(rng.uniform(0.6, 0.97)), "specificity": float(rng.uniform(0.8, 0.995)),
        "estimators": _estimators(rng, exposure, judge, metrics),
    }  # fmt: skip


def _metrics(rng: np.random.Generator, exposure: str, judge: str, k: int, *, ties: bool) -> list[str]:
    """One or two metrics that the exposure can estimate."""
    choices = [f"Precision@{k}", f"Recall@{k}", f"DCG@{k}"]
    if judge == "none":
        choices.append(f"RBP@{rng.choice([0.5, 0.8, 0.9])}")
    if exposure in ("full", "holdout") and not ties:
        choices += [f"nDCG@{k}", f"AP@{k}", f"RR@{k}"]
    if exposure == "random" and judge == "none" and not ties and k >= 3 and rng.random() < 0.12:
        return [f"AP@{k}(denominator=cutoff)"]
    return [str(name) for name in rng.choice(choices, 1 + int(rng.random() < 0.3), replace=False)]


def _estimators(rng: np.random.Generator, exposure: str, judge: str, metrics: Sequence[str]) -> list[str] | None:
    """Named estimators in a quarter of the environments, the default in the others."""
    if judge != "none" or exposure in ("full", "holdout") or metrics[0].startswith("AP@") or rng.random() > 0.25:
        return None
    named = {
        "random": (["horvitz-thompson", "pooled"], ["hajek", "post-stratified"], ["assisted"]),
        "designed": (["horvitz-thompson", "pooled"], ["hajek", "post-stratified"]),
        "biased": (["ips"], ["ips", "snips"], ["doubly-robust"]),
    }[exposure]
    return named[int(rng.integers(len(named)))]


def _ranked_parameters(rng: np.random.Generator, common: Parameters) -> Parameters:
    length = round(_log_uniform(rng, 3, 20))
    fitted = bool(rng.random() < 0.25)
    n_users = round(_mostly_small(rng, 20, 500 if fitted else 2000))
    sessions = _choose(rng, {"one": 0.35, "few": 0.35, "pareto": 0.3})
    mean_sessions = 1.0 if sessions == "one" else min(_log_uniform(rng, 1.5, 8), max(1.5, 4000 / n_users))
    family = _choose(
        rng, {"log": 0.0 if fitted else 0.4, "exp": 0.5 if fitted else 0.3, "yule": 0.5 if fitted else 0.3}
    )
    steepness = {"log": 0.0, "exp": float(rng.uniform(0.75, 0.97)), "yule": float(rng.uniform(0.2, 1.3))}[family]
    return {
        "n_users": n_users, "length": length, "sessions": sessions, "mean_sessions": mean_sessions,
        "pareto": float(rng.uniform(1.1, 2.5)), "family": family, "steepness": steepness, "fitted": fitted,
        "views": "depth" if fitted else _choose(rng, {"depth": 0.6, "independent": 0.4}),
        "positives": float(np.clip(common["positives"], 0.02, 0.4)), "no_positives": common["no_positives"] / 2,
        "reward": _choose(rng, {"click": 0.7, "lognormal": 0.3}), "reward_spread": float(rng.uniform(0.3, 1.3)),
        "logging_quality": float(rng.uniform(0, 2)), "logging_orders": int(rng.choice([1, 2, 4])),
        "expected_hits": n_users * mean_sessions * length / 2 * max(common["positives"], 0.02),
        "with_log": bool(rng.random() < 0.3), "estimators": None,
    }  # fmt: skip


def _choose(rng: np.random.Generator, weights: Mapping[Any, float]) -> Any:
    return list(weights)[int(rng.choice(len(weights), p=list(weights.values())))]


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _mostly_small(rng: np.random.Generator, low: float, high: float) -> float:
    """Between two sizes, somewhat more often small than log-uniform."""
    return float(low * (high / low) ** (rng.random() ** 1.25))


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
