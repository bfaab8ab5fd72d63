"""What targeted exposure saves: the committed results hold their bars, and a draw is what it is by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from truerank_research.runner import Source, committed
from truerank_research.validation.targeted_exposure import (
    BARS,
    PER_USER,
    TargetedSetting,
    true_variances,
)

COMMITTED = committed("targeted-exposure")
SETTING = TargetedSetting(Source(), False, seed=2, k=5)


def test_the_committed_results_hold_their_bars() -> None:
    """Known models a tenth of the variance of uniform exposure, others seven tenths, a random list twice."""
    result = COMMITTED
    kinds = {row["kind"]: row for row in result.rows("kinds")}
    assert {kind: row["bar"] for kind, row in kinds.items()} == BARS
    assert all(row["share"] <= row["bar"] for row in kinds.values())
    assert all(row["covered"] >= 0.93 for kind, row in kinds.items() if kind != "random list")
    biases = [abs(row["bias"]) for row in result.rows("questions")]
    assert np.mean(biases) < 1.5  # in standard errors: 0.8 where there is none
    assert max(biases) < 5
    # like with like: what Hájek itself gains by the design is less than what it gains on Horvitz-Thompson
    hajek = [row for row in result.rows("questions") if row["estimator"] == "hajek"]
    assert all(row["like"] >= row["share"] for row in hajek)
    assert kinds["known"]["like"] <= 0.1


def test_variances_of_uniform_exposure_are_those_of_draws() -> None:
    """Of 1,000 draws of twenty items per user without replacement, both estimators."""
    models, metric = SETTING.models(), SETTING.metrics[0]
    users, items = models.shape
    truth = true_variances(SETTING).filter(pl.col("metric") == str(metric), pl.col("what") == "svd-32")
    worth = SETTING.worth(metric, models.ranks["svd-32"]).reshape(users, items)
    label = models.labels.label.reshape(users, items)
    rng = np.random.default_rng(4)
    values = []
    for _ in range(1000):
        shown = np.argpartition(rng.random((users, items)), PER_USER, axis=1)[:, :PER_USER]
        here, liked = (np.take_along_axis(each, shown, axis=1) for each in (worth, label))
        earned = (here * liked).sum() * items / PER_USER / users
        values.append((earned, earned / (here.sum() * items / PER_USER) * worth.sum()))
    drawn = np.var(values, axis=0, ddof=1)
    known = truth.select("uniform", "hajek").row(0)
    assert drawn == pytest.approx(known, rel=0.2)  # the error of a variance of 1,000 draws is .045 of it
    assert known[1] < known[0]
