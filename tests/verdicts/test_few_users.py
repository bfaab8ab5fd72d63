"""Equal models are not called different when few users carry information (findings A1, A5, A9, A10)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.results import Results
from truerank.core.terms import ratio
from truerank.inference.intervals import Population, between
from truerank.inference.verdicts import doubts, verdict_of

USERS, ITEMS = 30, 40


def world(hits: dict[str, list[int]], judged: list[tuple[int, int, int]], **options: Any) -> Results:
    """Models that put the listed items first, in this order, for every user."""
    users = sorted({user for user, _, _ in judged})
    scores = {
        name: tr.scores.dense(
            np.tile([-float((best + list(range(ITEMS))).index(item)) for item in range(ITEMS)], (len(users), 1)),
            users=users, items=range(ITEMS),
        )
        for name, best in hits.items()
    }  # fmt: skip
    frame = pl.DataFrame(judged, schema=["user", "item", "label"], orient="row")
    return tr.evaluate(scores, frame, exposure="random", **options)


@pytest.mark.parametrize("estimator", ["pooled", "post-stratified", "assisted"])
def test_one_user_with_positives_decides_nothing(estimator: str) -> None:
    """30 users, one with positives: 2 hits of a, 1 of b. It said "a is better" with p < .0001."""
    judged = [(user, item, int(user == 0)) for user in range(USERS) for item in range(8)]
    found = world({"a": [0, 1], "b": [0, 20]}, judged, metrics=["Recall@2"], estimators=[estimator]).comparisons[0]
    if estimator == "pooled":
        assert found.difference == pytest.approx(-0.125)
    assert found.verdict == "insufficient"
    assert "few-informative" in [reason.code for reason in found.reasons]
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_one_cluster_that_carries_all_gives_no_verdict() -> None:
    """Ten users are a little against the difference that one user makes."""
    other = np.zeros(11)
    one = np.append(10.0, -0.1 + 0.05 * np.sin(np.arange(10)))
    first, second = (ratio(values, np.ones(11)) for values in (one, other))
    spread = between(Population(), first, second, level=0.95)
    reasons = doubts(first, second, spread, level=0.95)
    assert spread.value > 0
    assert [reason.code for reason in reasons] == ["one-cluster"]
    assert verdict_of(spread.value, 0.001, level=0.95, reasons=reasons) == "insufficient"
    even = ratio(one + np.append(-9.0, np.full(10, 1.1)), np.ones(11))
    assert not doubts(even, second, between(Population(), even, second, level=0.95), level=0.95)


def test_intervals_stay_inside_the_bounds_of_the_metric() -> None:
    """Three users: Precision was -.60 to 1.20."""
    judged = [(user, item, int(item < user)) for user in range(3) for item in range(10)]
    results = world({"a": [0, 1], "b": [5, 6]}, judged, metrics=["Precision@2", "DCG@2"])
    assert results.estimates
    for each in results.estimates:
        top = 1.0 if each.metric == "Precision@2" else 1 + 1 / math.log2(3)
        assert math.isnan(each.low) or 0 <= each.low <= each.high <= top + 1e-12


def test_users_who_like_nothing_do_not_tell_recalls_apart() -> None:
    """Shares of strata differ for everybody, what is found of what is relevant for a few: those alone are counted.

    Equal models, 1 % of 400 users like anything: post-stratified recall called 13 % of such pairs different.
    """
    rng = np.random.default_rng(11)
    called = 0
    for _ in range(40):
        scores = {name: rng.normal(size=(400, 100)) for name in ("a", "b")}
        item = np.concatenate([rng.choice(100, 20, replace=False) for _ in range(400)])
        user = np.repeat(np.arange(400), 20)
        label = ((rng.random(8000) < 0.3) & (rng.random(400) < 0.01)[user]).astype(int)
        frame = pl.DataFrame({"user": user, "item": item, "label": label})
        results = tr.evaluate(
            scores, frame, exposure="random", n_items=100, metrics=["Recall@10"],
            estimators=["pooled", "post-stratified", "assisted"], threads=1,
        )  # fmt: skip
        counted = {each.evidence.informative for each in results.comparisons}
        assert len(counted) == 1
        called += sum(each.verdict in ("better", "worse") for each in results.comparisons)
    assert called == 0


@pytest.mark.parametrize("estimator", ["pooled", "post-stratified", "assisted"])
def test_one_user_who_likes_all_has_no_interval(estimator: str) -> None:
    """Of 200 users one has every relevant item: post-stratified recall had .139 to .165 around .152."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(200), 20)
    item = np.concatenate([rng.choice(100, 20, replace=False) for _ in range(200)])
    frame = pl.DataFrame({"user": user, "item": item, "label": (user == 0).astype(int)})
    scores = {"a": rng.normal(size=(200, 100))}
    (found,) = tr.evaluate(
        scores, frame, exposure="random", n_items=100, metrics=["Recall@10"], estimators=[estimator]
    ).estimates
    assert found.value > 0
    assert math.isnan(found.low)
    assert math.isnan(found.high)
