"""Recommendations and rows in the shapes in which libraries return them, and what is refused of them."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from calling import call
from refusals import refused

import truerank as tr
from newcomers import LensKitStandIn
from truerank.io.features import read_features

# of Surprise 1.1: what algo.test(testset) is a list of
Prediction = namedtuple("Prediction", ["uid", "iid", "r_ui", "est", "details"])
PREDICTIONS = [
    Prediction("u", "a", 4.0, 3.5, {"was_impossible": False}),
    Prediction("u", "b", 5.0, 3.9, {"was_impossible": False}),
    Prediction("v", "a", 2.0, 4.1, {"was_impossible": True, "reason": "user is unknown"}),
]
TEST = {"u": ["b", "d"], "v": ["c"]}


def recall(scores: Any, test: Any = TEST, k: int = 1) -> float:
    return tr.evaluate({"m": scores}, test, exposure="holdout", metrics=[f"Recall@{k}"]).estimates[0].value


# ------------------------------------------------------------------------------------------------- rows and lists


def test_predictions_of_surprise_are_scores_and_ratings() -> None:
    log = tr.read(PREDICTIONS, positive=">3")
    assert log.users.texts() == ["u", "v"]
    assert log.rewards["rating"].tolist() == [4.0, 5.0, 2.0]
    assert recall(PREDICTIONS, log) == 0.5  # b of a and b for u; v has nothing relevant
    assert recall(PREDICTIONS, {"u": ["a"], "v": ["a"]}) == 0.5


@pytest.mark.parametrize(
    "rows", [[("u", "b"), ("u", "d"), ("v", "c")], [("u", "b", 1.0), ("u", "d", 1.0), ("u", "e", 0.0), ("v", "c", 1)]]
)
def test_a_list_of_tuples_is_a_table_of_rows(rows: Any) -> None:
    """As Cornac takes its data, and Surprise its test sets."""
    assert recall({"u": ["b", "a"], "v": ["c"]}, rows) == 0.75


@pytest.mark.parametrize("rows", [[], [("u",)], [("u", "a"), ("u", "b", 1.0)], ["ab", "cd"], [("u", "a"), (1, "b")]])
def test_other_lists_are_refused_in_one_sentence(rows: Any) -> None:
    with refused("a list of rows: "):
        tr.read(rows)


def test_lists_and_datasets_of_lenskit() -> None:
    lists = LensKitStandIn(pd.DataFrame({"user_id": [1, 1], "item_id": [5, 6], "score": [2.0, 1.0]}), "to_df")
    train = LensKitStandIn(pd.DataFrame({"user_id": [1], "item_id": [5]}), "interaction_table")
    results = tr.evaluate({"m": lists}, {1: [6]}, exclude=train, exposure="holdout", metrics=["Recall@1"])
    assert results.estimates[0].value == 1.0
    with refused(r"LensKit's LensKitStandIn.*truerank\.models\.from_lenskit"):
        recall(LensKitStandIn(None, "run"), {1: [6]})


def test_equal_scores_are_in_the_order_of_ranks_where_there_are_both() -> None:
    frame = pl.DataFrame({"user_id": [1, 1, 1], "item_id": [5, 6, 7], "score": [1.0, 1.0, 2.0], "rank": [3, 2, 1]})
    lists = tr.scores.lists(frame)
    assert lists.distinct
    assert lists.items.texts(lists.item.astype(np.int64)) == ["7", "6", "5"]
    assert lists.notes[-1] == "frame: items of equal scores are in the order of the column 'rank'."
    tied = tr.scores.lists(frame.with_columns(rank=pl.Series([2, 2, 1])))
    assert tied.tied.tolist() == [0, 1, 1]
    plain = tr.scores.lists(frame.with_columns(score=pl.Series([1.0, 2.0, 3.0])))
    assert not [said for said in plain.notes if "rank" in said]


# ---------------------------------------------------------------------------------------------------- arrays of items


IDS, USERS, ITEMS = np.array([[1, 0], [2, -1]]), ["u", "v"], ["a", "b", "c"]


@pytest.mark.parametrize(
    ("ids", "scores", "items"),
    [
        (IDS, None, ITEMS),
        (IDS.astype(np.int32), np.array([[0.9, 0.5], [0.1, 0.1]], dtype=np.float32), ITEMS),
        (np.array([["b", "a"], ["c", "x"]]), np.array([[0.9, 0.5], [0.1, -np.inf]]), None),
        ([["b", "a"], ["c", "x"]], np.array([[0.9, 0.5], [0.1, np.finfo(np.float32).min]], dtype=np.float32), None),
    ],
    ids=["places", "implicit", "ids", "filtered"],
)
def test_arrays_of_recommended_items(ids: Any, scores: Any, items: Any) -> None:
    top = tr.scores.top(ids, scores, users=USERS, items=items)
    assert [
        top.items.texts(top.item[start:end].astype(np.int64))
        for start, end in zip(top.start, top.start[1:], strict=False)
    ] == [
        ["b", "a"],
        ["c"],
    ]
    assert recall(top) == 0.75


def test_the_order_of_a_row_is_the_order_of_the_list() -> None:
    top = tr.scores.top(np.array([[1, 0]]), np.array([[0.5, 0.5]]), users=["u"], items=ITEMS)
    assert top.distinct
    assert top.items.texts(top.item.astype(np.int64)) == ["b", "a"]


def test_a_user_to_whom_nothing_is_recommended_is_known() -> None:
    top = tr.scores.top(np.array([[1], [-1]]), users=USERS, items=ITEMS)
    assert top.users.texts() == ["u", "v"]
    assert np.diff(top.start).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("ids", "given", "said"),
    [
        (np.array([1, 2]), {}, r"of shape \(2,\); expected ids or places of items \[users x k\]"),
        (np.array([[1.5], [2.0]]), {}, "recommended items are float64"),
        (np.array([[3], [0]]), {"items": ITEMS}, r"an item is .*3.*; expected places in the 3 `items`, from 0 to 2"),
        (np.array([["a"], ["b"]]), {"items": ITEMS}, "Leave items= out where items are named by their ids"),
        (np.array([[0], [1], [2]]), {}, "2 ids for 3 rows"),
        (np.array([[-1], [-1]]), {}, "no item is recommended to any user"),
        (np.array([[0], [1]]), {"scores": np.array([[1.0, 2.0]])}, r"scores are float64 of shape \(1, 2\)"),
        (np.array([[0], [1]]), {"scores": np.array([[1.0], [np.nan]])}, "expected a number for each"),
        (np.array([[0, 0], [1, 2]]), {}, "rows repeat a pair"),
    ],
)
def test_other_arrays_are_refused(ids: Any, given: dict[str, Any], said: str) -> None:
    with refused(said):
        tr.scores.top(ids, users=USERS, **given)


@pytest.mark.parametrize(
    ("tokens", "ids"), [(["[PAD]", "7", "10"], ["7", "10"]), (["[PAD]", "07", "10"], ["07", "10"])]
)
def test_tokens_of_recbole_are_ids_as_in_its_files(tokens: list[str], ids: list[str], tmp_path: Path) -> None:
    dataset = SimpleNamespace(
        uid_field="user_id", iid_field="item_id",
        field2id_token={"user_id": np.array(["[PAD]", "u", "v"]), "item_id": np.array(tokens)},
    )  # fmt: skip
    top = np.array([[0.9, 0.5], [0.8, -np.inf]]), np.array([[2, 1], [1, 0]])
    lists = tr.models.from_recbole(top, dataset, users=np.array([2, 1]))
    assert lists.items.texts() == sorted(ids) if ids[0] == "07" else ids
    test = tmp_path / "x.inter"
    test.write_text(f"user_id:token\titem_id:token\nv\t{tokens[2]}\nu\t{tokens[1]}\n")
    assert recall(lists, tr.read(test)) == 1.0
    with refused("full_sort_topk"):
        tr.models.from_recbole(top[0], dataset, users=[1])


# -------------------------------------------------------------------------------------------------- files and columns


def test_columns_of_one_file(tmp_path: Path) -> None:
    """Names that would be taken for each other, were they said of all files."""
    pl.DataFrame({"a": [1, 2], "b": [5, 6]}).write_csv(tmp_path / "test.csv")
    pl.DataFrame({"b": [1, 2], "a": [5, 7], "s": [1.0, 1.0]}).write_csv(tmp_path / "m.csv")
    pl.DataFrame({"x": [1], "y": [9]}).write_csv(tmp_path / "train.csv")
    named = "labels.user=a,labels.item=b,scores.user=b,scores.item=a,score=s,exclude.user=x,exclude.item=y"
    said = call(
        "evaluate", f"{tmp_path}/test.csv", "--scores", f"m={tmp_path}/m.csv", "--exclude", f"{tmp_path}/train.csv",
        "--exposure", "holdout", "--metric", "Recall@1", "--columns", named, "--format", "csv", seconds=60,
    ).fine()  # fmt: skip
    assert ",0.5," in said.out


def test_features_of_recbole(tmp_path: Path) -> None:
    path = tmp_path / "films.item"
    path.write_text("item_id:token\tyear:float\tkind:token\n7\t1999\tdrama\n8\t2001\tcomedy\n")
    found = read_features(path, kind="item")
    assert found.ids.texts() == ["7", "8"]
    assert found.names == ("year:float", "kind:token=drama")
