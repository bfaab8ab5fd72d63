"""Random simulated environments with known truth: every setting is drawn from a wide range by a fixed seed.

An environment is a law of units: a finite population of users (or users with sessions) with weights. Each draw takes
new users from it, independently and with replacement, so the true values are exact sums over the population. Models
have exactly equal true values where every user has copies with the models exchanged ("rotated": all models, "partly":
the first two), or where the weights of users are tilted until the first two are equal ("tilted": their difference is
then skewed; where no mild tilt does it, all models differ). Models beyond those differ.

    environment = random_environment(17)
    environment.parameters, environment.truth
    results = environment.evaluate(draw_rng(environment.key, 0))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truerank_research.validation.environments import SEED, Environment, Parameters
from truerank_research.validation.labelled_worlds import labelled_environment
from truerank_research.validation.ranked_worlds import ranked_environment

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
