"""truerank train, as a user calls it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from truerank import models

Run = Callable[..., Any]
OPEN = [name for name, each in models.catalogue().items() if each.needs != "torch"]


def test_train_lists_every_model_and_the_settings_of_one(run: Run) -> None:
    listing = run("train --list").fine()
    assert [line.split()[0] for line in listing.out.splitlines()] == list(models.catalogue())
    out = run("train sar --list").out
    assert "--set similarity=cosine" in out
    assert "cosine or jaccard" in out
    assert "pip install '.[models]'" in run("train als --list").out
    assert run("train saar --list").message.endswith("Did you mean sar?")
    assert "needs NAME and LOG" in run("train als").message


@pytest.mark.parametrize("name", OPEN)
def test_train_writes_what_evaluate_reads(run: Run, folder: Path, name: str) -> None:
    found = run(f"train {name} labels.csv --out result/s.npz").fine()
    assert f"{name}: 4 users x 5 items, 20 rows, fitted in " in found.err  # after progress, where that took a second
    once = (folder / "result" / "s.npz").read_bytes()
    assert run(f"train {name} labels.csv --out result/s.npz --quiet").err == ""
    assert (folder / "result" / "s.npz").read_bytes() == once
    assert run("evaluate labels.csv --scores m=result/s.npz --metric Recall@2").code == 0


def test_settings_seed_and_populations(run: Run, folder: Path) -> None:
    assert run("train als labels.csv --set factors=2 --set alpha=3 --out result/s.npz").code == 0
    with np.load(folder / "result" / "s.npz") as arrays:
        assert arrays["user_factors"].shape == (4, 2)
    (folder / "all.csv").write_text("item\n10\n20\n30\n40\n50\n60\n")
    (folder / "everyone.csv").write_text("user\n1\n9\n")
    words = "train random labels.csv --items all.csv --population everyone.csv --out"
    assert run(f"{words} result/a.npz").code == run(f"{words} result/b.npz --seed 1").code == 0
    with np.load(folder / "result" / "a.npz") as a, np.load(folder / "result" / "b.npz") as b:
        assert a["users"].tolist() == [1, 2, 3, 4, 9]
        assert a["scores"].shape == (5, 6)
        assert (a["scores"] != b["scores"]).all()


@pytest.mark.lightfm
def test_features_and_a_random_slice(run: Run, folder: Path) -> None:
    (folder / "features.csv").write_text("thing,kind\n10,a\n20,a\n30,b\n99,b\n")
    words = "train lightfm labels.csv --item-features features.csv --out result/s.npz"
    assert "no column 'item'" in run(words).message
    (folder / "features.csv").write_text("item,kind\n10,a\n20,a\n30,b\n99,b\n")
    (folder / "mar.csv").write_text("user,item,label\n1,60,1\n7,10,0\n")
    assert run(f"{words} --random mar.csv").code == 0
    with np.load(folder / "result" / "s.npz") as arrays:  # the slice's users and items count too
        assert arrays["users"].tolist() == [1, 2, 3, 4, 7]
        assert arrays["items"].tolist() == [10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train alss labels.csv --out x.npz", "unknown model 'alss'; expected one of"),
        ("train als labels.csv --out x.csv", "expected a name that ends in .npz"),
        ("train als labels.csv --out no/x.npz", "its folder is missing"),
        ("train als none.csv --out x.npz", "none.csv: no such file"),
        ("train avg-rating train.csv --out x.npz --quiet", "train.csv: no value column"),
        ("train als labels.csv --out x.npz --set factors", "expected NAME=VALUE"),
        ("train als labels.csv --out x.npz --set factors=2 --set factors=3", "given twice"),
        ("train als labels.csv --out x.npz --set factors=two", "expected a whole number from 1"),
        ("train als labels.csv --out x.npz --set dim=2", "no setting 'dim'"),
        ("train als labels.csv --out x.npz --positive >5", "none of 20 rows is positive"),
    ],
)
def test_wrong_calls_say_what_to_do_and_leave_nothing(run: Run, folder: Path, words: str, message: str) -> None:
    before = sorted(path.name for path in folder.iterdir())
    found = run(words)
    assert found.code == 2
    assert message in found.message
    assert [name for name in sorted(path.name for path in folder.iterdir()) if name != "t"] == before
