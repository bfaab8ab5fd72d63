"""truerank advise: what comes out in every form, and one sentence for everything that can be wrong."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest
from calling import Run
from tiny_advice import tiny_studied, write_studied

SAID = "--study study --study-logger uniform --sparsity 0.5"


@pytest.fixture
def study(folder: Path) -> Path:
    """A study, a log of 40 users and 20 items in which early items are shown more often, and its positives alone."""
    rows = [
        (user, item, int((user + item) % 4 == 0))
        for user in range(40)
        for item in range(20)
        if (user * 7 + item * 3) % 20 < 12 - item // 2
    ]
    log = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
    log.write_csv(folder / "log.csv")
    log.filter(pl.col("label") == 1).write_csv(folder / "liked.csv")
    log.filter(pl.col("label") == 1).drop("label").write_csv(folder / "pairs.csv")
    log.with_columns(rating=4 * pl.col("label") + 1).drop("label").write_csv(folder / "rated.csv")
    log.filter(pl.col("user") == 4).write_csv(folder / "one.csv")
    log.filter(pl.col("label") == 0).write_csv(folder / "disliked.csv")
    log.clear().write_csv(folder / "empty.csv")
    pl.DataFrame({"item": range(30)}).write_csv(folder / "items.csv")
    return write_studied(tiny_studied(metrics=("nDCG@100", "Recall@5")), folder / "study")


def test_candidates_come_below_the_answer_on_the_log(run: Run, study: Path) -> None:
    found = run("advise log.csv --study study --sparsity 0.3").fine()
    for part in ("is a biased log", "Your log: 40 users", "by nDCG@100 over", "recommended", "taken", "30.0%"):
        assert part in found.out
    assert found.err == "the catalogue is taken to be the 20 items in log.csv; --n-items or --items say otherwise.\n"


def test_json_and_csv_have_the_same_figures(run: Run, study: Path) -> None:
    found = run("advise log.csv --study study --n-items 30 --format json --metric Recall@5")
    assert (found.code, found.err) == (0, "")
    content = json.loads(found.out)["candidates"]
    assert (content["metric"], content["log"]["items"], len(content["choices"])) == ("Recall@5", 30, 3)
    assert content["users"] == 40
    same = run("advise log.csv --study study --items items.csv --out x.csv --metric Recall@5")
    assert (same.code, same.out) == (0, "")
    rows = list(csv.DictReader(io.StringIO(Path("x.csv").read_text())))
    assert [float(row["tau"]) for row in rows] == [each["tau"] for each in content["choices"]]
    assert [row["recommended"] for row in rows].count("true") == 1


def test_what_the_log_does_not_say_can_be_said(run: Run, study: Path) -> None:
    for name in ("liked.csv", "pairs.csv"):
        run(f"advise {name} --study study --study-logger uniform --sparsity 0.5").fine()
        full = [
            each["negatives"]
            for given in ("", "--items items.csv", "--n-items 50")
            for each in json.loads(run(f"advise {name} {SAID} {given} --format json --quiet").out)["candidates"][
                "choices"
            ]
            if each["sampler"] == "Full"
        ]
        assert full[0] < full[1] < full[2] < 50
    assert run("advise rated.csv --study study --positive >3").code == 0
    content = json.loads(run("advise log.csv --study study --n-users 7 --format json").out)
    assert content["candidates"]["users"] == 7


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("log.csv --metric Recall@7", "metric 'Recall@7' is in none of the studies that come with truerank"),
        ("log.csv --study nowhere", "nowhere: is not complete"),
        ("log.csv --study result", "result: is not complete"),
        ("log.csv --study study --metric nDCG@7", "metric 'nDCG@7' is not in study"),
        ("log.csv --study study --study-logger mine", "logger 'mine' is not in study"),
        ("log.csv --study study --sparsity 1.5", "sparsity 1.5; expected a share from 0 to below 1"),
        ("log.csv --study study --n-users 1", "users with a positive: 1; expected at least 2"),
        ("log.csv --study study --top 0", "0 is not in the range"),
        ("log.csv --study study --n-items 3", "20 items, but the catalogue is said to have 3"),
        ("log.csv --study study --n-items 30 --items items.csv", "give one of them"),
        ("liked.csv --study study", "positives alone do not show what else was exposed"),
        ("rated.csv --study study", "positive"),
        ("one.csv --study study", "users with a positive: 1"),
        ("disliked.csv --study study", "no positive label"),
        ("empty.csv --study study", "no rows"),
        (f"liked.csv {SAID} --n-items 3", "items, but the catalogue is said to have 3"),
    ],
)
def test_one_sentence_for_what_is_wrong(run: Run, study: Path, args: str, message: str) -> None:
    found = run(f"advise {args}")
    assert found.code == 2
    assert message in found.message
    assert not found.out
