"""Lists of positives: pairs without values, where every pair that is not listed is negative."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from truerank import evaluate
from truerank.core.errors import InputError
from truerank.exposure.kinds import FullExposure, Unlisted
from truerank.io.read import read
from truerank.metrics.recall import Recall
from truerank.reliability import Grid, study

PAIRS = pl.DataFrame({"user": [1, 1, 2], "item": [5, 7, 5], "split": ["a", "b", "a"]})
SCORES = pl.DataFrame({"user": [1, 1, 1, 2, 2, 2], "item": [5, 6, 7] * 2, "score": [0.1, 0.2, 0.3, 0.3, 0.1, 0.2]})


def test_each_row_is_positive_where_that_is_said() -> None:
    assert read(PAIRS, positive="all").label.tolist() == [1.0, 1.0, 1.0]
    rated = read(PAIRS.with_columns(rating=pl.Series([5, 1, 3])), positive=" all ")
    assert rated.label.tolist() == [1.0, 1.0, 1.0]
    assert rated.rewards["rating"].tolist() == [5.0, 1.0, 3.0]


def test_it_is_never_guessed() -> None:
    """A value column of another name would make negatives positive."""
    with pytest.raises(InputError, match=r"no value column.*if each row is a positive, say .*positive=\"all\""):
        evaluate({"a": SCORES}, PAIRS, exposure=FullExposure(Unlisted.NEGATIVE), metrics=[Recall(2)])


def test_they_are_all_that_an_evaluation_needs() -> None:
    """User 1 likes 5 and 7, and 7 is in the top two; user 2 likes 5, the first."""
    labels = read(PAIRS, positive="all")
    found = evaluate({"a": SCORES}, labels, exposure=FullExposure(Unlisted.NEGATIVE), metrics=[Recall(2)])
    assert found.estimates[0].value == pytest.approx((0.5 + 1) / 2)


def test_they_are_a_world_to_study(tmp_path: Path) -> None:
    labels = replace(read(PAIRS, positive="all"), complete=True)
    other = SCORES.with_columns(score=-pl.col("score"))
    grid = Grid.from_names(loggers=["uniform"], samplers=["Random"], sizes=[1], sparsities=[0.5], metrics=[Recall(1)])
    found = study({"a": SCORES, "b": other}, labels, tmp_path, grid=replace(grid, holdout=None), resamples=5)
    full = found.means.filter((pl.col("sampler") == "Full") & (pl.col("sparsity") == 0))
    # a puts 7 first for user 1 and 5 first for user 2; b puts 5 first for user 1 and 6 for user 2
    assert full.sort("model")["mean"].to_list() == pytest.approx([0.75, 0.25])
