"""Interval, p and verdict of several comparisons come from one adjustment and cannot disagree (finding A9)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from truerank.inference.clipping import AutoClip

SIGNIFICANT = {"better", "worse", "higher", "lower"}


def evaluate_values(values: np.ndarray, **options: Any) -> tr.Results:
    """An evaluation in which the metric of model j for user u is values[u, j]: model j recommends item j alone."""
    n_users, n_models = values.shape
    user, item = np.divmod(np.arange(values.size), n_models)
    labels = pl.DataFrame({"user": user, "item": item, "label": values.reshape(-1)})
    scores = {
        f"m{j}": tr.scores.dense(
            np.tile(np.arange(n_models) == j, (n_users, 1)).astype(float), users=range(n_users), items=range(n_models)
        )
        for j in range(n_models)
    }
    return tr.evaluate(scores, labels, **{"metrics": ["DCG@1(gain=linear)"], "threads": 1, **options})


def without_zero(comparison: Any) -> bool:
    return bool(comparison.low > 0 or comparison.high < 0)


def assert_agreement(results: tr.Results, *, level: float = 0.95) -> None:
    for comparison in results.comparisons:
        if math.isnan(comparison.p_adjusted):
            assert comparison.verdict == "insufficient" or math.isnan(comparison.low)
            continue
        significant = comparison.p_adjusted < round(1 - level, 12)
        assert significant == without_zero(comparison), comparison
        if comparison.verdict != "insufficient":
            assert (comparison.verdict in SIGNIFICANT) == significant, comparison
        assert comparison.p_adjusted >= comparison.p


@st.composite
def families(draw: st.DrawFn) -> tuple[np.ndarray, dict[str, Any]]:
    """Users x models: few or many users, skewed or not, effects of any size, near copies."""
    n_users, n_models = draw(st.sampled_from([5, 8, 12, 30, 120])), draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from([0.0, 0.5, 1.5]))
    values = rng.lognormal(0.0, shape, (n_users, 1)) + rng.gamma(
        draw(st.sampled_from([0.2, 2.0])), 1.0, (n_users, n_models)
    )
    values += np.linspace(0.0, draw(st.sampled_from([0.0, 0.5, 3.0])), n_models)
    if draw(st.booleans()):  # a near copy: only a few users differ
        values[3:, 0] = values[3:, 1]
    options: dict[str, Any] = {"level": draw(st.sampled_from([0.8, 0.95, 0.99]))}
    if draw(st.booleans()):
        options["baseline"] = "m0"
    return values, options


@examples(60)
@given(families())
def test_significant_exactly_where_the_interval_is_without_zero(family: tuple[np.ndarray, dict[str, Any]]) -> None:
    values, options = family
    assert_agreement(evaluate_values(values, **options), level=options["level"])


def example(n_models: int = 6, n_users: int = 60, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, 1.0, (n_users, n_models)) + np.linspace(0.0, 0.6, n_models)


@pytest.mark.parametrize("options", [{"adjust": "all"}, {"interval": "design"}, {"interval": "bootstrap"}])
def test_agreement_whatever_the_family_and_the_interval(options: dict[str, Any]) -> None:
    if options.get("interval") == "bootstrap":
        options = {"interval": tr.Bootstrap(200)}
    elif options.get("interval") == "design":
        options = {"interval": tr.Design()}
    for seed in range(3):
        assert_agreement(evaluate_values(example(seed=seed), **options))


def test_the_adjustment_lies_between_none_and_bonferroni() -> None:
    results = evaluate_values(example(5))
    alone = {c.interval_level for c in results.comparisons}
    assert len(alone) == 1
    assert 0.95 < alone.pop() < 1 - 0.05 / 10
    for comparison in results.comparisons:
        assert comparison.p <= comparison.p_adjusted <= min(1.0, 10 * comparison.p)


def test_the_critical_value_is_that_of_the_largest_of_correlated_statistics() -> None:
    """Three pairs of three exchangeable models are Tukey's test: the studentised range at 5 % is 3.314 / √2."""
    values = example(3, 4000, seed=4)
    results = evaluate_values(values + np.linspace(0.6, 0.0, 3))
    comparison = results.comparisons[0]
    half = (comparison.high - comparison.low) / 2 / comparison.stderr
    assert half == pytest.approx(3.3145 / math.sqrt(2), abs=0.02)


def test_a_near_copy_of_a_model_takes_no_verdict_from_the_others() -> None:
    values = example(4, 200)
    copied = np.column_stack([values, values[:, 0]])
    copied[:7, 4] += np.array([0.3, 0.2, 0.1, 0.4, 0.25, 0.05, 2.0])
    before = {(c.model, c.baseline): c.verdict for c in evaluate_values(values).comparisons}
    after = {(c.model, c.baseline): c.verdict for c in evaluate_values(copied).comparisons}
    assert before == {pair: after[pair] for pair in before}
    assert "better" in before.values()


def test_more_than_200_comparisons_agree_too() -> None:
    results = evaluate_values(example(22, 80))
    assert {c.family for c in results.comparisons} == {231}
    assert results.comparisons[0].interval_level == pytest.approx(1 - 0.05 / 231)
    assert_agreement(results)


def test_a_curve_of_clips_has_its_verdict_at_the_chosen_clip() -> None:
    rng = np.random.default_rng(5)
    depth = np.minimum(rng.geometric(0.3, size=400), 5)
    position = np.concatenate([np.arange(1, deepest + 1) for deepest in depth])
    reward = (rng.random(len(position)) < np.where(position > 2, 0.6, 0.2)).astype(int)
    log = pl.DataFrame(
        {"session": np.repeat(np.arange(400), depth), "item": position * 10, "position": position, "reward": reward}
    ).with_columns(new=6 - pl.col("position"), shifted=pl.col("position") % 5 + 1, candidates=pl.lit(5))
    targets = {name: tr.exposure.RankColumn(name) for name in ("position", "new", "shifted")}
    results = tr.off_policy(log, targets, position="exp:0.7", clips=AutoClip(), estimators=["ips"], reward_range=(0, 1))
    chosen = [c for c in results.comparisons if not math.isnan(c.p_adjusted)]
    others = [c for c in results.comparisons if math.isnan(c.p_adjusted)]
    assert len(chosen) == 3
    assert {c.family for c in chosen} == {3}
    assert_agreement(results)
    assert all("clip-not-chosen" in [reason.code for reason in c.reasons] for c in others)
    assert any(c.verdict == "better" for c in chosen)
    assert results.require("new > position")[0] == 0


@pytest.mark.slow
def test_family_wise_error_of_ten_equal_models() -> None:
    """At least one false verdict among 45 pairs: at most 5 %, up to sampling error of 400 draws."""
    wrong = 0
    for seed in range(400):
        rng = np.random.default_rng((7, seed))
        results = evaluate_values(rng.lognormal(0.0, 0.5, (150, 1)) + rng.gamma(0.5, 1.0, (150, 10)))
        wrong += any(c.verdict in SIGNIFICANT for c in results.comparisons)
    assert wrong / 400 <= 0.07
