"""Very large and very small numbers: a value that is a number, or one sentence; never inf or a library's warning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.core.arrays import LEAST_CHANCE

N = 60


def _with(first: float, rest: float = 0.5) -> list[float]:
    return [first] + [rest] * (N - 1)


def _judged(propensity: list[float]) -> tuple[dict[str, Any], pl.DataFrame]:
    rng = np.random.default_rng(1)
    user, item = np.divmod(np.arange(N), 3)
    labels = {"user": user, "item": item, "label": np.arange(N) % 2, "propensity": propensity}
    return {"a": rng.random((N // 3, 3)), "b": rng.random((N // 3, 3))}, pl.DataFrame(labels)


@pytest.mark.parametrize("estimator", ["ips", "snips", "doubly-robust"])
def test_tiny_propensities_of_judged_rows(estimator: str) -> None:
    scores, labels = _judged(_with(1e-320))
    with refused(r"propensity is .*no less than 1e-40"):
        tr.evaluate(scores, labels, exposure="biased", estimators=[estimator], metrics=["Precision@2"])
    scores, labels = _judged(_with(LEAST_CHANCE))
    results = tr.evaluate(scores, labels, exposure="biased", estimators=[estimator], metrics=["Precision@2"])
    assert all(math.isfinite(each.value) for each in results.estimates)
    assert all(math.isfinite(each.difference) for each in results.comparisons)
