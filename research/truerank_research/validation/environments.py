"""A simulated environment with exact true values, and the random generator of each draw from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SEED = 20260917  # chosen before the first run; never changed

Array = np.ndarray[Any, Any]
Parameters = dict[str, Any]
Truth = dict[tuple[str, str, str], float]  # model, metric, kind of mean ("users" or "pooled")


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """A law of units, what is evaluated in each draw from it, and the true values.

    `truth` has the value of each model, by metric and by kind of mean: over users ("users") or over relevant pairs
    ("pooled", for Recall only); an off-policy environment has one metric, "reward".
    """

    name: str
    key: tuple[int, ...]
    parameters: Parameters
    truth: Truth
    evaluate: Callable[[np.random.Generator], Any]

    def true_value(self, model: str, metric: str, estimator: str) -> float | None:
        """The estimand of an estimate; None where the environment does not define it."""
        if self.parameters["exposure"] == "off-policy":
            return self.truth.get((model, "reward", "users"))
        is_pooled = metric.startswith("Recall") and estimator not in ("full", "holdout", "corrected")
        return self.truth.get((model, metric, "pooled" if is_pooled else "users"))


def draw_rng(key: Sequence[int], draw: int) -> np.random.Generator:
    """The random generator of one draw: keyed by seed, environment and draw."""
    return np.random.default_rng([SEED, *key, 1, draw])


def model_names(p: Parameters) -> list[str]:
    return [f"m{model}" for model in range(p["n_models"])]


def named_values(p: Parameters, metric: str, kind: str, values: Array) -> Truth:
    return {(name, metric, kind): float(value) for name, value in zip(model_names(p), values, strict=True)}
