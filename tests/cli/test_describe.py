"""`truerank data describe`: what a log holds and whether it is random, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.fixture
def logs(folder: Path) -> Path:
    """A random log drawn among items unseen in training, and the training log."""
    rng = np.random.default_rng(1)
    order = np.argsort(rng.gumbel(size=(100, 30)) + np.linspace(0, 2, 30), axis=1)[:, ::-1]
    user = np.arange(100)
    for name, items in (("known", order[:, :6]), ("shown", np.array([rng.permutation(row[6:])[:5] for row in order]))):
        n = items.shape[1]
        rows = {"user": np.repeat(user, n), "item": items.ravel(), "rating": rng.integers(1, 6, 100 * n)}
        pl.DataFrame(rows).write_csv(folder / f"{name}.csv")
    pl.DataFrame({"item": np.arange(40)}).write_csv(folder / "catalogue.csv")
    (folder / "far.csv").write_text("user,item\n1001,1\n")
    return folder


def test_table(logs: Path, run: Run) -> None:
    found = run("data", "describe", "shown.csv", "--train", "known.csv", "--positive", ">3")
    assert found.code == 0
    assert "rows per user" in found.out
    assert "Is this log random? Consistent with random exposure" in found.out
    assert "popularity in training" in found.out
    assert "drawn among items the user had no training row for" in found.out
    alone = run("data", "describe", "known.csv", "--positive", ">3")
    assert "Is this log random? Not random: some items were shown far more often" in alone.out


def test_json(logs: Path, run: Run) -> None:
    found = json.loads(run("data", "describe", "shown.csv", "--train", "known.csv", "--format", "json", "--quiet").out)
    assert found["rows"] == 500
    told = found["randomness"]
    assert (told["random"], told["drawn"], told["overlap"]) == (True, "unseen", 0)
    assert {each["name"] for each in told["checks"]} >= {"items", "popularity in training"}
    assert all(each["p"] is not None for each in told["checks"])
    assert any(each["df"] is None for each in told["checks"])


def test_csv(logs: Path, run: Run) -> None:
    out = run("data", "describe", "shown.csv", "--train", "known.csv", "--format", "csv", "--quiet").out
    found = dict(csv.reader(io.StringIO(out)))
    assert found["random: verdict"].startswith("Consistent")
    assert "random: items, p" in found


def test_all_items_and_users(logs: Path, run: Run) -> None:
    call = ("data", "describe", "shown.csv", "--items", "catalogue.csv", "--quiet")
    assert "25.00% of items were shown to nobody" in run(*call).out
    assert run(*call, "--train", "known.csv", "--drawn", "all").code == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("shown.csv --train gone.csv", ("gone.csv", "no such file")),
        ("shown.csv --drawn unseen", ("--train",)),
        ("shown.csv --items train.csv", ("not among the given items",)),
        ("a.npz --train known.csv", ("--train", "user-item rows")),
        ("shown.csv --train far.csv", ("no user in common",)),
    ],
)
def test_wrong_calls(logs: Path, run: Run, call: str, words: tuple[str, ...]) -> None:
    found = run("data", "describe", *call.split(), "--quiet")
    assert found.code == 2
    assert any(each in found.message for each in words)
