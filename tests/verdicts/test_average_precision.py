"""Average precision from pairs of labelled items: what few pairs of hits can carry."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.results import Results

USERS, ITEMS = 300, 100


def evaluated(users_with_pair: dict[str, int], *, metric: str, hits: int = 40) -> Results:
    """Every user has four labelled items; so many users have two labelled hits in a list, others one or none."""
    scores = {name: np.tile(-np.arange(ITEMS, dtype=float), (USERS, 1)) for name in users_with_pair}
    rows = []
    for user in range(USERS):
        for at, (name, n_users) in enumerate(users_with_pair.items()):
            items = (7 * user + 50 * at + np.arange(10)) % ITEMS  # all items are in lists equally often
            scores[name][user, items] = 1.0 - np.arange(10) / 100
            first, second = items[user % 10], items[(user + 3) % 10]
            rows += [(user, int(first), int(user < hits)), (user, int(second), int(user < n_users))]
    labels = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
    return tr.evaluate(scores, labels, exposure="random", metrics=[metric], estimators=["pairs"], threads=1)


METRICS = ["AP@10(denominator=cutoff)", "AP@10(denominator=positives)"]


@pytest.mark.parametrize("metric", METRICS)
def test_no_pair_of_labelled_hits_carries_no_interval_and_no_verdict(metric: str) -> None:
    """The value is too low: 83 of 84 such intervals missed the truth, without a warning."""
    results = evaluated({"a": 12, "b": 0}, metric=metric)
    known, unknown = results.estimates
    assert not math.isnan(known.low)
    assert math.isnan(unknown.low)
    assert math.isnan(unknown.high)
    assert [each.code for each in unknown.warnings if each.severity == "warning"] == ["no-hit-pairs"]
    (comparison,) = results.comparisons
    assert comparison.verdict == "insufficient"
    assert "no-hit-pairs" in [each.code for each in comparison.reasons]
    assert math.isnan(comparison.low)


@pytest.mark.parametrize("metric", METRICS)
def test_without_any_hit_there_is_no_interval_either(metric: str) -> None:
    """Hits of the other list alone make a pooled value of 0."""
    results = evaluated({"a": 0, "b": 0}, metric=metric, hits=0)
    assert all(math.isnan(each.low) for each in results.estimates)


@pytest.mark.parametrize(("n_users", "doubted"), [(1, True), (4, True), (5, False), (30, False)])
def test_few_pairs_of_labelled_hits_are_a_caution(n_users: int, doubted: bool) -> None:
    results = evaluated({"a": n_users, "b": 40}, metric=METRICS[0])
    first, second = results.estimates
    said = [each for each in first.warnings if each.code == "few-hit-pairs"]
    assert bool(said) == doubted
    assert all(each.numbers["users"] == n_users and each.severity == "caution" for each in said)
    assert not [each for each in second.warnings if each.code == "few-hit-pairs"]
    assert not math.isnan(first.low)


def test_complete_labels_need_no_pairs() -> None:
    labels = np.zeros((20, 30))
    labels[np.arange(20), np.arange(20)] = 1
    user, item = (each.ravel() for each in np.indices(labels.shape))
    frame = pl.DataFrame({"user": user, "item": item, "label": labels.ravel()})
    scores = {"a": np.tile(-np.arange(30, dtype=float), (20, 1))}
    (found,) = tr.evaluate(
        scores, frame, exposure="random", metrics=[METRICS[0]], estimators=["pairs"], threads=1
    ).estimates  # fmt: skip
    assert not math.isnan(found.low)
    assert not [each for each in found.warnings if each.code.endswith("hit-pairs")]
