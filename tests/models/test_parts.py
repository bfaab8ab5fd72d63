"""The parts that models are made of: pooled AUC, features, products."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from refusals import refused

from truerank.core.ids import Ids
from truerank.models.libraries import indicators

IDS = Ids.of(["a", "b", "c", "d"])


def test_features_of_every_type() -> None:
    table = pl.DataFrame(
        {
            "user": ["b", "a", "x"],
            "kind": ["new", None, "other"],
            "flag": [True, False, True],
            "age": [30, 30, 1],
            "tags": [["p", "p"], ["q"], ["z"]],
        }
    )
    found = indicators(table, IDS, kind="user").toarray()
    # themselves; kind new; flag false, true; age 30; tags p, q: what only a stranger has is no feature
    assert found.tolist() == [
        [1, 0, 0, 0, 0, 1, 0, 1, 0, 1],
        [0, 1, 0, 0, 1, 0, 1, 1, 1, 0],
        [0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    ]


def test_decimal_numbers_are_cut_at_their_quartiles() -> None:
    table = pl.DataFrame({"item": ["a", "b", "c", "d"], "length": [1.0, 2.0, 3.0, 4.0]})
    assert (indicators(table, IDS, kind="item").toarray()[:, 4:] == np.eye(4)).all()
    same = pl.DataFrame({"item": ["a", "b", "c", "d"], "length": [1.0, 1.0, 1.0, 9.0]})
    assert indicators(same, IDS, kind="item").toarray()[:, 4:].sum(axis=1).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a"], "x": [1]}, "no column 'item'; found id, x"),
        ({"item": ["x"], "y": [1]}, "none of the items is one of the log"),
        ({"item": ["a", "a"], "y": [1, 2]}, "some items have several rows"),
        ({"item": ["a"], "y": [math.nan]}, "NaN or infinite"),
        ({"item": ["a"], "y": [b"\xff\xfe"]}, "item features, column 'y': Binary .* not UTF-8"),
        ({"item": ["a"], "y": [[["p"], ["q"]]]}, "item features, column 'y': List.* flat lists"),
    ],
)
def test_bad_feature_tables_are_refused(columns: dict[str, list[object]], message: str) -> None:
    with refused(message):
        indicators(pl.DataFrame(columns), IDS, kind="item")
