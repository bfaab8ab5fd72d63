"""Biased logs at the edges: what rests on next to nothing is said and gets no interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.estimator import Estimator
from truerank.core.results import Results
from truerank.estimators.assisted import DoublyRobust
from truerank.estimators.predictions import GivenRewards
from truerank.estimators.weighted import SNIPS
from truerank.exposure.kinds import BiasedExposure
from truerank.metrics.additive import Precision, Recall

N_USERS, N_ITEMS = 300, 40
RNG = np.random.default_rng(1)
LIKED = RNG.random((N_USERS, N_ITEMS)) < 0.3
FIRST = np.tile(-np.arange(N_ITEMS, dtype=float), (N_USERS, 1))
MODELS = {
    name: tr.scores.dense(scores, users=range(N_USERS), items=range(N_ITEMS))
    for name, scores in (("first", FIRST), ("last", -FIRST))
}


def two_rows_in_the_list(label: int) -> pl.DataFrame:
    """Model `first` recommends items that were shown to two users; model `last` ones that half of the users saw."""
    shown = RNG.random((N_USERS, N_ITEMS)) < 0.5
    shown[:, :5] = False
    shown[3, 1] = shown[70, 4] = True
    user, item = np.nonzero(shown)
    labels = np.where(item < 5, label, LIKED[user, item])
    return pl.DataFrame({"user": user, "item": item, "label": labels, "propensity": np.where(item < 5, 0.001, 0.5)})


def found(results: Results, model: str) -> tuple[float, float, float, tuple[str, ...]]:
    each = next(each for each in results.estimates if each.model == model)
    return each.value, each.low, each.high, tuple(message.code for message in each.warnings)


@pytest.mark.parametrize(("label", "code"), [(1, "no-spread"), (0, "no-hit")])
@pytest.mark.parametrize("estimator", [SNIPS(), SNIPS(clip=10.0)], ids=["snips", "clipped"])
def test_two_rows_that_agree_have_a_one_sided_interval_and_no_comparison(
    label: int, code: str, estimator: Estimator
) -> None:
    log = two_rows_in_the_list(label)
    results = tr.evaluate(MODELS, log, exposure=BiasedExposure(), metrics=[Precision(5)], estimators=[estimator])
    value, low, high, warnings = found(results, "first")
    assert value == label
    # two equally weighted users at a bound: others may be as far from it as Clopper and Pearson say of two
    assert (low, high) == pytest.approx((math.sqrt(0.025), 1) if label else (0, 1 - math.sqrt(0.025)))
    assert code in warnings
    assert not math.isnan(found(results, "last")[1])
    comparison = results.comparisons[0]
    assert abs(comparison.difference) > 0.1
    assert [math.isnan(each) for each in (comparison.low, comparison.high, comparison.p)] == [True] * 3


def test_a_reward_model_that_promises_too_much_leaves_nothing_to_divide_by() -> None:
    guess = GivenRewards(tr.scores.dense(np.full((3, 2), 0.5)))
    labels = pl.DataFrame({"user": [0, 1, 2], "item": [0, 0, 0], "label": [0, 0, 0], "propensity": [0.2] * 3})
    how: dict[str, Any] = {
        "exposure": BiasedExposure(),
        "metrics": [Recall(1)],
        "estimators": [DoublyRobust(guess)],
    }
    results = tr.evaluate({"m": np.array([[2.0, 1.0]] * 3)}, labels, **how)
    value, low, _, warnings = found(results, "m")
    assert math.isnan(value)
    assert math.isnan(low)
    assert "nothing-to-divide-by" in warnings
    outside = tr.evaluate({"m": np.array([[2.0, 1.0]] * 3)}, labels.with_columns(label=pl.Series([0, 0, 1])), **how)
    value, _, _, warnings = found(outside, "m")
    assert value == pytest.approx(-2)  # (1.5 - 2.5) / (3 - 2.5)
    assert "outside-bounds" in warnings
