"""Scores and labels as people have them in Python: dicts, frames with an index, wide frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refused

import truerank as tr

LONG = pl.DataFrame({"user": ["u", "u", "v"], "item": ["a", "b", "c"], "score": [2.0, 1.0, 3.0]})
TEST = {"u": ["b", "d"], "v": ["c"]}
EXPECTED = 0.75  # Recall@2: one of two, one of one


def recall(scores: Any, test: Any = TEST) -> float:
    results = tr.evaluate({"m": scores}, tr.read(test), exposure="holdout", metrics=["Recall@2"])
    return results.estimates[0].value


@pytest.mark.parametrize(
    "scores",
    [
        {"u": ["a", "b"], "v": ["c"]},
        {"u": {"b": 1.0, "a": 2.0}, "v": {"c": 3.0}},
        LONG,
        LONG.to_pandas(),
        LONG.to_pandas().set_index(["user", "item"]),
        LONG.to_pandas().set_index("user"),
        LONG.rename({"user": "user_id", "item": "item_id"}).to_pandas().set_index("user_id"),
        {"user": ["u", "u", "v"], "item": ["a", "b", "c"], "score": [2.0, 1.0, 3.0]},
        pd.DataFrame([[2.0, 1.0, -np.inf], [-np.inf, -np.inf, 3.0]], index=["u", "v"], columns=["a", "b", "c"]),
    ],
    ids=["lists", "scores", "polars", "pandas", "two indexes", "index", "usual index", "columns", "wide"],
)
def test_scores_of_every_shape(scores: Any) -> None:
    assert recall(scores) == EXPECTED


@pytest.mark.parametrize(
    "test",
    [
        TEST,
        {"u": {"b", "d"}, "v": {"c"}},
        {"u": {"b": 1.0, "d": 1.0, "a": 0.0}, "v": {"c": 1.0}},
        pd.DataFrame({"user": ["u", "u", "v"], "item": ["b", "d", "c"]}).set_index("user"),
    ],
    ids=["lists", "sets", "grades", "index"],
)
def test_labels_of_every_shape(test: Any) -> None:
    assert recall(LONG, test) == EXPECTED


@pytest.mark.parametrize("wrong", [{"u": "abc"}, {"u": 3}, {"u": ["a"], "v": {"a": 1}}, {"u": ["a", 3]}], ids=repr)
def test_other_dicts_are_refused_in_one_sentence(wrong: Any) -> None:
    with refused("a dict of users"):
        recall(wrong)
