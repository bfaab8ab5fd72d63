"""Training data of `truerank study` have values, labels or neither, and a rule of their own."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from calling import Run
from small_study import small_scores, small_train, small_world

from truerank.io.files import write
from truerank.ranking.scores.files import write_scores

CALL = ("--scores", "m0.npz", "--scores", "m1.npz", "--sparsities", "0.5", "--samplers", "Random", "--sizes", "3",
        "--metric", "nDCG@5", "--bootstrap", "5", "--preset", "released", "--quiet")  # fmt: skip


@pytest.fixture
def world(folder: Path) -> None:
    made = small_world(missing=0)
    write(made, folder / "truth.csv")
    truth = pl.read_csv(folder / "truth.csv")
    truth.with_columns(rating=1 + 4 * pl.col("label")).drop("label").write_csv(folder / "rated.csv")
    truth.filter(pl.col("label") == 1).drop("label").write_csv(folder / "liked.csv")
    write(small_train(), folder / "train.csv")
    train = pl.read_csv(folder / "train.csv")
    train.drop("label").write_csv(folder / "pairs.csv")
    train.with_columns(rating=1 + 4 * pl.col("label")).drop("label").write_csv(folder / "stars.csv")
    for name, each in small_scores(made).items():
        write_scores(each, folder / f"{name}.npz")


@pytest.mark.usefixtures("world")
def test_the_same_world_and_training_data_in_any_form(run: Run, folder: Path) -> None:
    calls = {
        "plain": ("truth.csv", "--train", "train.csv"),
        "rated truth": ("rated.csv", "--positive", ">3", "--train", "train.csv"),
        "both rated": ("rated.csv", "--positive", ">3", "--train", "stars.csv"),
        "own rule": ("truth.csv", "--train", "stars.csv", "--train-positive", ">3"),
        "positives": ("liked.csv", "--positive", "all", "--unlisted", "negative", "--train", "train.csv",
                      "--population", "truth.csv"),
    }  # fmt: skip
    found = []
    for name, call in calls.items():
        run("study", "reliability", *call, *CALL, "--out", name).fine()
        found.append(pl.read_parquet(folder / name / "results.parquet"))
    assert all(each.equals(found[0], null_equal=True) for each in found)
