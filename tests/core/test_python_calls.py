"""What Python users give and get: frames, one text, short reprs, the names of the package."""

from __future__ import annotations

import polars as pl
from refusals import refused

import truerank as tr

LABELS = pl.DataFrame(
    {"user": [1, 1, 2, 2, 3, 3], "item": [1, 2, 1, 3, 2, 3], "label": [1, 0, 1, 0, 1, 1], "time": [1, 2, 3, 4, 5, 6]}
)
SCORES = {name: LABELS.select("user", "item", score=sign * pl.col("item")) for name, sign in (("up", 1), ("down", -1))}


def test_a_frame_is_split_and_comes_back() -> None:
    train, test = tr.split(LABELS, by="last")
    assert sorted((*train.to_polars().rows(), *test.to_polars().rows())) == sorted(LABELS.rows())
    assert tr.read(LABELS).to_pandas().columns.tolist() == ["user", "item", "label", "time"]
    assert repr(tr.read(LABELS)) == "Log(frame: 6 rows, 3 users, 3 items; label, time)"
    with refused("split: log is 3"):
        tr.split(3)


def test_one_text_is_a_list_of_one_and_ratings_take_a_rule() -> None:
    rated = LABELS.with_columns(label=1 + 4 * pl.col("label"))
    results = tr.evaluate(SCORES, rated, metrics="Recall@1", exposure="holdout", positive=">3")
    same = tr.evaluate(SCORES, LABELS, metrics=["Recall@1"], exposure="holdout")
    assert results.estimates == same.estimates
    assert results.table().columns == ["model", "Recall@1"]
    assert results.table().rows() == [(each.model, each.value) for each in sorted(
        same.estimates, key=lambda estimate: -estimate.value)]  # fmt: skip
    assert all(len(repr(each)) < 100 for each in (*results.estimates, *results.comparisons))


def test_names_of_the_package() -> None:
    assert len(dir(tr)) < 30
    assert all(getattr(tr, name) is not None for name in dir(tr))
    assert all(name in (tr.__doc__ or "") for name in dir(tr))
