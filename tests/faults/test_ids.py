"""Ids and scores that were once changed in silence: rewritten, rounded, unmasked, or taken for their neighbours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from calling import Called
from refusals import refused

import truerank as tr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def value(outcome: Called, at: int = 0) -> float:
    assert outcome.code == 0, outcome
    found: float = json.loads(outcome.out)["estimates"][at]["value"]
    return found


# ------------------------------------------------------------------------------------------------------------ precision


@pytest.mark.parametrize("apart", [1e-9, 1e-15])
@pytest.mark.parametrize("fast", [False, True])
def test_factors_keep_their_precision(here: Path, apart: float, *, fast: bool) -> None:
    """The better item differs by what single precision does not hold, in factors and in biases."""
    if fast:
        pytest.importorskip("numba")
    from truerank.core.ranking import Candidates
    from truerank.ranking.kernel.rank import rank

    log = tr.read(pl.DataFrame({"user": [0], "item": [1], "label": [1]}), items=[0, 1])
    by_factor = tr.scores.factors(np.ones((1, 1)), np.array([[1.0], [1.0 + apart]]))
    by_bias = tr.scores.factors(np.ones((1, 1)), np.ones((2, 1)), item_bias=np.array([0.0, apart]))
    for scores in (by_factor, by_bias):
        found = rank(scores, log, pools=[Candidates(1, 2.0)], fast=fast)[0]
        assert (found.above.tolist(), found.tied.tolist()) == ([0.0], [0.0])
    tr.write_scores(by_factor, "m.npz")
    assert tr.read_scores("m.npz").block(np.array([0])).tolist() == [[1.0, 1.0 + apart]]


def test_masks_are_respected() -> None:
    hidden = np.ma.array([[1.0, 2.0]], mask=[[False, True]])
    for make in (
        lambda: tr.scores.dense(hidden),
        lambda: tr.scores.factors(np.ones((1, 2)), hidden),
        lambda: tr.scores.factors(hidden, np.ones((1, 2))),
        lambda: tr.scores.factors(np.ones((1, 1)), np.ones((2, 1)), item_bias=hidden[0]),
        lambda: tr.scores.dense(np.ones((1, 2)), items=np.ma.array([1, 2], mask=[False, True])),
        lambda: tr.evaluate({"m": hidden}, pl.DataFrame({"user": [0, 0], "item": [0, 1], "label": [1, 0]})),
    ):
        with refused("1 values are masked"):
            make()
    bare = np.ma.array([[1.0, 2.0]])
    assert tr.scores.dense(bare).block(np.array([0])).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean"])
def test_nulls_are_no_values(kind: str) -> None:
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 2], "label": pd.array([1, None], dtype=kind)})
    with refused("row 2"):
        tr.read(frame)
    with refused("row 2"):
        tr.scores.lists(frame.rename(columns={"label": "score"}) if kind != "boolean" else scored(frame))
    swapped = pd.DataFrame({"user": pd.array([2**60 + 1, None], dtype="Int64"), "item": [1, 2], "label": [1, 0]})
    with refused("row 2 has no id"):
        tr.read(swapped)
    assert tr.read(swapped[:1]).users.values.to_list() == [2**60 + 1]


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(score=pd.array([1, None], dtype="Int64")).drop(columns="label")


# ------------------------------------------------------------------------------------------------- matrices without ids


MATRIX = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])


def labelled(first: int, n: int = 3) -> pl.DataFrame:
    """User u likes the item that row u of the matrix has first; ids begin with `first`."""
    rows = [(user + first, item + first, int(user == item)) for user in range(n) for item in range(3)]
    return pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")


def test_arrays_in_python_are_not_numbered_in_silence() -> None:
    metric: dict[str, Any] = {"metrics": ["Recall@1"]}
    texts = labelled(0).with_columns(pl.col("user").cast(pl.String))
    for labels in (labelled(1), texts):
        with refused("3 rows without ids of users"):
            tr.evaluate({"m": MATRIX}, labels, **metric)
    results = tr.evaluate({"m": MATRIX}, labelled(0), **metric)
    assert [message.code for message in results.messages].count("numbered") == 2
    ids = [1, 2, 3]
    results = tr.evaluate({"m": tr.scores.dense(MATRIX, users=ids, items=ids)}, labelled(1), **metric)
    assert results.estimates[0].value == 1.0
