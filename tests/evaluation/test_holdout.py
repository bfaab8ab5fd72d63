"""Hold-out evaluation: held-out rows are relevant, other pairs count as irrelevant; one population for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr

METRICS = ["Recall@2", "Precision@2", "nDCG@2", "HitRate@2", "RR", "AP@2"]
TEST = pl.DataFrame({"user": [1, 1, 2, 3, 4], "item": ["b", "d", "c", "a", "c"], "label": [1, 1, 1, 1, 0]})
LISTS = pl.DataFrame({"user": [1, 1, 2, 3, 4], "item": ["a", "b", "c", "b", "c"], "rank": [1, 2, 1, 1, 1]})


def found(results: tr.Results, metric: str, model: str = "m") -> Any:
    return next(each for each in results.estimates if (each.metric, each.model) == (metric, model))


def holdout(test: Any = TEST, lists: Any = LISTS, **how: Any) -> tr.Results:
    return tr.evaluate({"m": lists}, test, **({"exposure": "holdout", "metrics": METRICS} | how))


def test_by_hand() -> None:
    """User 1 finds b at rank 2 of {b, d}, user 2 finds c first, user 3 finds nothing; user 4 has no relevant item."""
    results = holdout()
    expected = {
        "Recall@2": (0.5 + 1 + 0) / 3,
        "Precision@2": (0.5 + 0.5 + 0) / 3,
        "nDCG@2": ((1 / np.log2(3)) / (1 + 1 / np.log2(3)) + 1 + 0) / 3,
        "HitRate@2": 2 / 3,
        "RR": (0.5 + 1 + 0) / 3,
        "AP@2": (0.25 + 1 + 0) / 3,
    }
    for metric, value in expected.items():
        assert found(results, metric).value == pytest.approx(value, abs=1e-12), metric
        assert found(results, metric).units == 3


def test_the_population_does_not_depend_on_how_the_test_part_came() -> None:
    """Rows of a file, and the same rows with users who have none of them."""
    rows = TEST.filter(pl.col("label") == 1)
    alone = holdout(tr.read(rows))
    among = holdout(tr.read(rows, users=np.arange(1, 100)))
    assert [each.value for each in alone.estimates] == [each.value for each in among.estimates]
    assert [each.units for each in alone.estimates] == [each.units for each in among.estimates]


def test_lists_shorter_than_the_cutoff_end_and_matrices_need_not_know_every_item() -> None:
    deep = holdout(metrics=["Recall@2", "Recall@50"])
    assert found(deep, "Recall@50").value == found(deep, "Recall@2").value
    # a matrix over a, b, c: d was never in training, and is never recommended
    matrix = tr.scores.dense([[3.0, 2, 1], [1, 2, 3], [1, 3, 2]], users=[1, 2, 3], items=["a", "b", "c"])
    assert found(holdout(lists=matrix), "Recall@2").value == pytest.approx((0.5 + 1 + 0) / 3)


def test_users_without_a_list_and_without_a_relevant_item() -> None:
    some = LISTS.filter(pl.col("user") != 3)
    assert found(holdout(lists=some), "Recall@2").value == pytest.approx((0.5 + 1) / 2)
    zero = holdout(lists=some, estimators=["holdout(without_list=zero)"])
    assert found(zero, "Recall@2").value == pytest.approx((0.5 + 1 + 0) / 3)
    every = holdout(estimators=["holdout(without_relevant=zero)"])
    assert found(every, "Recall@2").value == pytest.approx((0.5 + 1 + 0 + 0) / 4)
