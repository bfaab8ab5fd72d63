"""plan exposure --allocate, evaluate --exposure designed, and watch, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from calling import Run

BOTH = "--scores a.npz --scores b.csv"
ALLOCATE = f"plan exposure --allocate {BOTH} --exclude train.csv"
MADE = f"{ALLOCATE} --metric Precision@2 --per-user 3 --out design --quiet"
DESIGNED = f"evaluate back.csv --exposure designed {BOTH} --exclude train.csv --metric Precision@2"
FULL = "evaluate labels.csv --scores a.npz"
WATCH = f"watch timed.csv {BOTH} --metric Precision@2 --quiet"


def came_back() -> None:
    shown = pl.read_parquet("design/shown.parquet")
    shown.join(pl.read_csv("labels.csv"), on=["user", "item"]).select("user", "item", "label").write_csv("back.csv")


def test_a_design_is_made_shown_and_evaluated(run: Run) -> None:
    found = run(MADE)
    assert (found.code, found.err) == (0, "")
    assert "12 pairs to expose, 3 items to each of 4 users" in found.out
    assert "variance / uniform" in found.out
    assert "at most about 4 times" in found.out
    shown = pl.read_parquet("design/shown.parquet")
    assert shown.columns == ["user", "item", "batch", "propensity"]
    assert json.loads(Path("design/design.json").read_bytes())["metrics"] == ["Precision@2"]
    came_back()
    results = run(f"{DESIGNED} --design design").fine()
    assert "hajek" in results.out
    assert "12 of the 12 pairs that the design sampled for these users" in results.err
    shown.join(pl.read_csv("labels.csv"), on=["user", "item"]).drop("batch").write_csv("back.csv")
    again = run(f"{DESIGNED} --format json")
    by_design = run(f"{DESIGNED} --design design --format json")
    first, second = (json.loads(each.out)["estimates"][0]["value"] for each in (again, by_design))
    assert first == second


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (f"{ALLOCATE} --metric Precision@2", "--out is missing"),
        (f"{ALLOCATE} --out design", "--metric is missing"),
        (f"{MADE} --difference 0.1", "--difference says how much data"),
        (f"{MADE} --per-user 2.5", "--per-user 2.5; expected a whole number"),
        (f"{MADE} --uniform 0", "above 0"),
        (f"{MADE} --batches 4", "4 batches of 3 items"),
        ("plan exposure --metric Precision@2", "--difference is missing"),
        ("plan exposure --difference 0.1 --batches 2", "--batches goes with --allocate"),
        ("plan exposure --difference 0.1 --force", "--force replaces the folder"),
        (f"{FULL} --design design --exposure random", "--design goes with --exposure designed"),
        (f"{FULL} --exposure designed", "--design DIR"),
        (f"{FULL} --exposure designed --design result", "not complete"),
        (f"{WATCH} --require 'a > c'", "no model 'c'"),
        (f"watch labels.csv {BOTH} --require 'a > b'", "no time column"),
    ],
)
def test_what_is_wrong_is_said(run: Run, args: str, message: str) -> None:
    pl.read_csv("labels.csv").with_columns(time=pl.int_range(pl.len())).write_csv("timed.csv")
    found = run(args)
    assert found.code == 2
    assert message in found.err
    assert not Path("design").exists()


def test_a_folder_that_is_there_stays(run: Run) -> None:
    assert run(MADE).code == 0
    before = Path("design/shown.parquet").read_bytes()
    again = run(f"{MADE} --seed 5")
    assert again.code == 2
    assert "already" in again.err
    assert Path("design/shown.parquet").read_bytes() == before
    assert run(f"{MADE} --seed 5 --force").code == 0


def many_users() -> None:
    rows = [(user, item, int(item == 0), user) for user in range(200) for item in range(6)]
    pl.DataFrame(rows, schema=["user", "item", "label", "time"], orient="row").write_csv("timed.csv")
    for name, lucky in (("good", 8), ("poor", 2)):
        table = [(user, item, float(item == (0 if user % 10 < lucky else 1)) - item / 100)
                 for user in range(200) for item in range(6)]  # fmt: skip
        pl.DataFrame(table, schema=["user", "item", "score"], orient="row").write_csv(f"{name}.csv")


@pytest.mark.parametrize(("rule", "code"), [("good > poor", 0), ("poor > good", 5)])
def test_watching_ends_with_what_is_shown(run: Run, rule: str, code: int) -> None:
    many_users()
    words = f"watch timed.csv --scores good.csv --scores poor.csv --metric Precision@1 --require '{rule}' --planned 200"
    found = run(f"{words} --quiet")
    assert (found.code, found.err) == (code, "")
    assert "Stop: good is better than poor" in found.out
    plain = json.loads(run(f"{words} --format json").out)
    assert plain["watched"][0]["users"] == 200
    assert run(f"{words} --out looks.csv").code == code
    assert pl.read_csv("looks.csv")["state"].to_list() == [plain["watched"][0]["state"]]
    early = pl.read_csv("timed.csv").filter(pl.col("user") < 12)
    early.write_csv("timed.csv")
    assert run(words).code == 4
