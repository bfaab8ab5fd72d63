"""Lists of positives: pairs without values, where every pair that is not listed is negative."""

from __future__ import annotations

import polars as pl
from refusals import refused

from truerank import evaluate
from truerank.exposure.kinds import FullExposure, Unlisted
from truerank.io.read import read
from truerank.metrics.additive import Recall

PAIRS = pl.DataFrame({"user": [1, 1, 2], "item": [5, 7, 5], "split": ["a", "b", "a"]})
SCORES = pl.DataFrame({"user": [1, 1, 1, 2, 2, 2], "item": [5, 6, 7] * 2, "score": [0.1, 0.2, 0.3, 0.3, 0.1, 0.2]})


def test_each_row_is_positive_where_that_is_said() -> None:
    assert read(PAIRS, positive="all").label.tolist() == [1.0, 1.0, 1.0]
    rated = read(PAIRS.with_columns(rating=pl.Series([5, 1, 3])), positive=" all ")
    assert rated.label.tolist() == [1.0, 1.0, 1.0]
    assert rated.rewards["rating"].tolist() == [5.0, 1.0, 3.0]


def test_it_is_never_guessed() -> None:
    """A value column of another name would make negatives positive."""
    with refused(r"no value column.*if each row is a positive, say .*positive=\"all\""):
        evaluate({"a": SCORES}, PAIRS, exposure=FullExposure(Unlisted.NEGATIVE), metrics=[Recall(2)])
