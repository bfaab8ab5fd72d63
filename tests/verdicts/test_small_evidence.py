"""Little evidence: no verdict, no interval of no width; a value at a bound gets a one-sided one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from shown import Shown, uniform

import truerank as tr
from truerank.core.results import INSUFFICIENT, Estimate, Results
from truerank.core.terms import ratio
from truerank.inference.linearization import at_a_bound
from truerank.inference.tails import check_unequal

SUMS = ["horvitz-thompson", "hajek"]


def codes(estimate: Estimate) -> set[str]:
    return {message.code for message in estimate.warnings}


def no_width(results: Results) -> list[Any]:
    every: list[Any] = [*results.estimates, *results.comparisons]
    return [each for each in every if each.low == each.high]


@pytest.mark.parametrize("interval", [tr.Population(), tr.Design(), tr.Bootstrap(100)], ids=str)
@pytest.mark.parametrize(("metric", "estimators"), [("Recall@1", ["pooled"]), ("Precision@1", SUMS)])
def test_two_users_with_one_judged_positive_each(interval: Any, metric: str, estimators: list[str]) -> None:
    """One model has both hits, the other none: for exactly these users, too, two rows prove nothing."""
    scores = {"a": np.array([[3.0, 2, 1], [3, 2, 1]]), "b": np.array([[1.0, 2, 3], [1, 2, 3]])}
    labels = pl.DataFrame({"user": [0, 1], "item": [0, 0], "label": [1, 1]})
    results = tr.evaluate(scores, labels, exposure="random", metrics=[metric], estimators=estimators, interval=interval)
    assert {each.difference for each in results.comparisons if each.estimator == "pooled"} <= {-1.0}
    assert {each.verdict for each in results.comparisons} == {INSUFFICIENT}
    assert not no_width(results)


@pytest.mark.parametrize("interval", [tr.Population(), tr.Design(), tr.Bootstrap(100)], ids=str)
def test_two_models_without_a_hit_have_no_difference_to_test(interval: Any) -> None:
    """Relevant items are judged, and in nobody's list."""
    rng = np.random.default_rng(4)
    tail = np.array([0.0] * 30 + [-9.0] * 10)
    scores = {name: rng.standard_normal((60, 40)) + tail for name in "ab"}
    label = np.broadcast_to(tail < 0, (60, 40))
    shown = uniform(rng, label.shape, 12)
    labels = Shown(label, scores).judged(shown)
    ways: list[dict[str, Any]] = [{"metrics": ["Recall@3"]}, {"metrics": ["Precision@3"], "estimators": SUMS}]
    for how in ways:
        results = tr.evaluate(scores, labels, exposure="random", interval=interval, **how)
        for comparison in results.comparisons:
            assert comparison.difference == 0
            assert math.isnan(comparison.low)
            assert math.isnan(comparison.p)
            assert comparison.verdict == INSUFFICIENT
        assert not no_width(results)


def test_a_sum_of_0_gets_the_interval_of_the_judged_part_of_its_list() -> None:
    """Hájek's b = (N / N-bar) Σ w per user say how much of lists without a hit was judged: (Σ b)² / Σ b² equal ones."""
    rng = np.random.default_rng(7)
    scores = {"m": rng.standard_normal((80, 20))}
    label = np.zeros((80, 20), dtype=bool)
    world = Shown(label, scores)
    shown = uniform(rng, label.shape, rng.integers(2, 10, 80))
    part = (shown & world.list_of("m", 5)).sum(axis=1) / 5 * 20 / shown.sum(axis=1)
    n = part.sum() ** 2 / (part**2).sum()
    how: dict[str, Any] = {"exposure": "random", "metrics": ["Precision@5"], "estimators": SUMS}
    ht, hajek = tr.evaluate(scores, world.judged(shown), **how).estimates
    expected = at_a_bound(0.0, (0.0, 1.0), n, level=0.95)
    assert expected is not None
    for found in (ht, hajek):
        assert (found.value, found.low) == (0, 0)
        assert found.high == pytest.approx(expected.high)
    assert n < 60  # not all 80 users tell


def test_weighted_sums_of_0_and_groups_of_users_do_too() -> None:
    rng = np.random.default_rng(8)
    scores = {"m": rng.standard_normal((80, 20))}
    world = Shown(np.zeros((80, 20), dtype=bool), scores)
    propensity = np.linspace(0.2, 0.6, 20)
    shown = rng.random((80, 20)) < propensity
    part = ((shown & world.list_of("m", 5)) / propensity / 5).sum(axis=1)
    how: dict[str, Any] = {"exposure": "biased", "metrics": ["Precision@5"], "estimators": ["ips"]}
    results = tr.evaluate(scores, world.judged(shown, propensity), **how)
    groups = results.by({user: "few" if user < 20 else "many" for user in range(80)})
    for found, own in ((results, part), (groups["few"], part[:20]), (groups["many"], part[20:])):
        n = own.sum() ** 2 / (own**2).sum()
        assert found.estimates[0].high == pytest.approx(1 - 0.025 ** (1 / n))


def test_a_value_at_its_upper_bound_is_no_certainty() -> None:
    """Every judged row of the lists is relevant, and N-bar is such that Horvitz-Thompson gives exactly 1."""
    scores = {"m": np.tile(np.arange(4.0)[::-1], (30, 1))}
    labels = pl.DataFrame({"user": np.repeat(np.arange(30), 2), "item": [0, 2] * 30, "label": [1, 0] * 30})
    how: dict[str, Any] = {"exposure": "random", "metrics": ["Precision@2"], "estimators": ["horvitz-thompson"]}
    (found,) = tr.evaluate(scores, labels, **how).estimates
    assert (found.value, found.high) == (1, 1)
    assert found.low == pytest.approx(0.025 ** (1 / 30))


# ------------------------------------------------------------------------------------------------- unequal clusters


def test_one_user_with_much_of_the_error_is_said() -> None:
    """50 users of whom one is far off: |L| is 25 / 50 for that one, and 25 / 50 for the 49 others together."""
    terms = ratio(np.array([50.0, *np.zeros(49)]), np.ones(50))
    (message,) = check_unequal(terms, cluster="user")
    assert message.code == "unequal-clusters"
    assert message.numbers["largest"] == pytest.approx(0.5)
    assert not list(
        check_unequal(ratio(np.array([50.0, *np.zeros(48)]), np.ones(49)), cluster="user")
    )  # few users are warned of anyway
    assert not list(check_unequal(ratio(np.tile([0.0, 1.0], 50), np.ones(100)), cluster="user"))


def test_sizes_that_go_with_values_are_said_where_users_are_few() -> None:
    """Large users have most of what they could have, small ones little: the pooled value leans with who was drawn."""
    rng = np.random.default_rng(5)

    def codes(n: int, rises: float) -> list[str]:
        size = np.exp(rng.normal(0.0, 1.0, n))
        share = np.clip(0.3 + rises * (size - size.mean()) / size.std() + rng.normal(0, 0.1, n), 0, 1)
        return [message.code for message in check_unequal(ratio(size * share, size), cluster="user")]

    assert all("sizes-with-values" in codes(40, rises=0.15) for _ in range(20))
    assert all("sizes-with-values" in codes(40, rises=-0.15) for _ in range(20))
    assert not any("sizes-with-values" in codes(1000, rises=0.15) for _ in range(20))
    assert sum("sizes-with-values" in codes(40, rises=0.0) for _ in range(200)) <= 4


def test_users_with_few_judged_items_among_many_with_hundreds() -> None:
    """N-bar from 1 to 200: one hit of who was asked once weighs as much as the rest. Even numbers do not warn."""
    rng = np.random.default_rng(3)
    warned = {"unequal": 0, "even": 0}
    for _ in range(8):
        world = Shown.of(rng, 200, 300)
        sizes = {"unequal": np.exp(rng.uniform(0, np.log(200), 200)).astype(int), "even": np.full(200, 40)}
        for name, size in sizes.items():
            labels = world.judged(uniform(rng, world.label.shape, size))
            results = tr.evaluate(world.models, labels, exposure="random", metrics=["Recall@10", "Precision@10"])
            warned[name] += sum("unequal-clusters" in codes(each) for each in results.estimates)
    assert warned["unequal"] >= 20  # of 48
    assert warned["even"] <= 1


def test_unequal_numbers_of_judged_items_are_said_by_the_design() -> None:
    """Users with one judged item weigh 40 times as much as others, whether or not it was a hit."""
    rng = np.random.default_rng(8)
    scores = {"a": tr.scores.dense(rng.random((100, 40)), users=range(100), items=range(40))}

    def codes(sizes: list[int]) -> set[str]:
        rows = [(user, item, 1) for user, n in enumerate(sizes) for item in rng.permutation(40)[:n].tolist()]
        frame = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
        results = tr.evaluate(scores, frame, exposure="random", metrics=["Recall@10"], estimators=["pooled"])
        return {message.code for message in results.estimates[0].warnings}

    assert "unequal-judging" in codes([1] * 10 + [20] * 90)  # (10·40 + 90·2)² / (10·40² + 90·2²) = 20.6 of 100
    assert "unequal-judging" not in codes([10] * 50 + [20] * 50)
