"""Columns under their usual names: taken where exactly one fits, and said; never where somebody has named one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank as tr
from truerank.io.columns import LABELLED, SCORED, with_usual
from truerank.io.read import scan

MOVIELENS = pl.DataFrame(
    {"userId": [1, 1, 2], "movieId": [10, 20, 10], "rating": [4.0, 3.5, 5.0], "timestamp": [1, 2, 3]}
)
RECBOLE = ["user_id:token", "item_id:token", "rating:float"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["userId", "movieId", "rating", "timestamp"], {"user": "userId", "item": "movieId", "time": "timestamp"}),
        (["user_id", "item_id", "stars"], {"user": "user_id", "item": "item_id", "rating": "stars"}),
        (RECBOLE, {"user": RECBOLE[0], "item": RECBOLE[1], "rating": RECBOLE[2]}),
        (["visitor_id", "asin", "clicked"], {"user": "visitor_id", "item": "asin", "label": "clicked"}),
        (["user", "item", "label", "clicked"], {}),
        (["uid", "visitor", "iid"], {"item": "iid"}),  # two could be users
        (["user_id", "item_id", "click", "like"], {"user": "user_id", "item": "item_id"}),  # two could be labels
    ],
)  # fmt: skip
def test_what_is_taken(columns: list[str], expected: dict[str, str]) -> None:
    assert with_usual(columns, {}, LABELLED) == expected


def test_what_is_named_is_not_looked_for() -> None:
    assert with_usual(["userId", "uid", "item"], {"user": "uid"}, LABELLED) == {"user": "uid"}
    assert with_usual(["uid", "iid", "r_ui", "est"], {}, SCORED) == {"user": "uid", "item": "iid", "score": "est"}


@pytest.mark.parametrize("how", [tr.read, scan])
def test_files_are_read_and_it_is_said(how: Any, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    MOVIELENS.write_csv(path)
    found = how(path)
    assert found.users.texts() == ["1", "2"]
    assert "'userId' is taken for the user, 'movieId' for the item" in found.notes[0]


def test_logs_and_targets_of_impressions_are_recognised_as_labels_are() -> None:
    """item_id, session_id, propensity_score and click (C8): the values are those of the library's own names."""
    log = pl.DataFrame(
        {"session": [1, 1, 2, 2, 3, 3], "item": [7, 8, 8, 7, 7, 9], "position": [1, 2, 1, 2, 1, 2],
         "propensity": [0.9, 0.5, 0.8, 0.4, 0.9, 0.5], "label": [1, 0, 0, 1, 1, 1]}
    )  # fmt: skip
    target = log.select("session", "item", exposure=1.3 - pl.col("propensity"))
    named = {"session": "session_id", "item": "item_id", "propensity": "propensity_score", "label": "click"}
    found = tr.off_policy(log.rename(named), {"new": target.rename({"session": "visit_id", "item": "video_id"})},
                          rewards=["click"])  # fmt: skip
    expected = tr.off_policy(log, {"new": target})
    assert [estimate.value for estimate in found.estimates] == [estimate.value for estimate in expected.estimates]
    assert "'propensity_score' for the propensity" in " ".join(map(str, found.messages))
