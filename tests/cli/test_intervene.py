"""truerank intervene: rows and columns as they were, one message for each mistake, nothing half-written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import polars as pl
import pytest
from calling import Run

HELDOUT = "video_id,note,user_id,stars\n" + "\n".join(
    f"{item},n{user}-{item},{user},{(user + item // 10) % 5 + 1}"
    for user in (4, 2, 1, 3)
    for item in (50, 10, 30, 20)
    if user + item != 53
)
BIASED = "user_id,video_id\n" + "\n".join(
    f"{user},{item}" for item, users in ((10, (1, 2, 3, 4)), (20, (1, 2)), (30, (3,)), (40, (4,))) for user in users
)
COLUMNS = "--columns user=user_id,item=video_id,rating=stars"
CALL = f"intervene heldout.csv --train biased.csv {COLUMNS}"


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "heldout.csv").write_text(HELDOUT + "\n")
    (folder / "biased.csv").write_text(BIASED + "\n")
    (folder / "few.csv").write_text("user_id,video_id\n1,10\n2,20\n3,30\n")
    (folder / "mar.csv").write_text("user_id,video_id\n1,10\n2,20\n3,30\n4,50\n")


def call(run: Run, text: str) -> str:
    outcome = run(text).fine()
    assert outcome.out == ""
    return outcome.err


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
@pytest.mark.parametrize(
    "strategy",
    ["full", "reg", "skew", "wtd --random mar.csv", "wtd_h", "popularity-stratified", "equal-per-item"],
)
def test_rows_and_columns_of_the_log(run: Run, folder: Path, strategy: str, ending: str) -> None:
    said = call(run, f"{CALL} --strategy {strategy} --fraction 0.8 --out test.{ending}")
    source = pl.read_csv(folder / "heldout.csv")
    path = folder / f"test.{ending}"
    found = (
        pl.read_parquet(path) if ending == "parquet" else pl.read_csv(path, separator="\t" if ending == "tsv" else ",")
    )
    assert found.columns == ["video_id", "note", "user_id", "stars"]
    assert found.schema == source.schema
    assert found["note"].is_unique().all()
    assert f"{len(found)} of 15 rows drawn" in said
    # in the order they had
    assert found.equals(source.filter(pl.col("note").is_in(found["note"].to_list())))
    assert len(found) == (15 if strategy == "full" else 12)


def test_inclusion_probabilities_through_evaluate(run: Run, folder: Path) -> None:
    """All rows with their probabilities; one evaluation gives what all test sets give on average."""
    said = call(run, f"{CALL} --strategy skew --inclusion --out all.parquet")
    assert "15 rows with their probability to be drawn, 7.0 on average." in said
    found = pl.read_parquet(folder / "all.parquet")
    assert found.drop("inclusion").equals(pl.read_csv(folder / "heldout.csv"))
    assert found["inclusion"].sum() == pytest.approx(7)
    outcome = run(
        *shlex.split(
            f"evaluate all.parquet {COLUMNS} --positive >3 --unlisted negative --exclude biased.csv --overlap keep "
            "--scores a=a.npz --metric Recall@2 --metric Precision@2 --estimator intervened "
            "--estimator intervened-pooled --format json"
        )
    ).fine()
    values = {(e["metric"], e["estimator"]): e["value"] for e in json.loads(outcome.out)["estimates"]}
    assert set(values) == {
        ("Recall@2", "intervened"),
        ("Recall@2", "intervened-pooled"),
        ("Precision@2", "intervened"),
    }
    assert all(0 < value < 1 for value in values.values())
    assert "inclusion probabilities" not in outcome.err
    plain = run(f"evaluate all.parquet {COLUMNS} --positive >3 --unlisted negative --scores a=a.npz").fine()
    assert "all.parquet: the inclusion probabilities are not used, all 15 rows count as the test set" in " ".join(
        plain.out.split()
    )


BAD = {
    "no training log": (f"intervene heldout.csv {COLUMNS} --strategy skew", "skew counts rows in the training log"),
    "no random slice": (f"{CALL} --strategy wtd", "--random MAR"),
    "empty random slice": (f"{CALL} --strategy wtd --random empty.csv", "empty.csv: no rows; wtd counts rows there"),
    "fraction 0": (f"{CALL} --strategy reg --fraction 0", "a fraction of 0; expected a number in (0, 1]"),
    "fraction above 1": (f"{CALL} --strategy reg --fraction 1.5", "a fraction of 1.5"),
    "unknown strategy": (
        f"{CALL} --strategy weighted",
        "unknown strategy 'weighted'; expected one of equal-per-item, full",
    ),
    "floor for skew": (
        f"{CALL} --strategy skew --floor 0.1",
        "--floor has no meaning for skew; it goes with wtd, wtd_h",
    ),
    "power for reg": (
        f"{CALL} --strategy reg --item-power 1",
        "--item-power has no meaning for reg; it goes with skew",
    ),
    "two rules": (f"{CALL} --strategy wtd_h --floor 0.1 --smoothing 1", "give one of them"),
    "negative floor": (f"{CALL} --strategy wtd_h --floor -1", "floor: least=-1; expected a number from 0 up to 1"),
    "negative power": (f"{CALL} --strategy wtd_h --user-power -1", "user_power=-1; expected a number from 0"),
    "no positive weight": (
        f"intervene heldout.csv --train heldout.csv --random elsewhere.csv {COLUMNS} --strategy wtd --floor 0",
        "no row has a positive weight",
    ),
    "unseen with floor 0": (f"{CALL} --strategy wtd_h --floor 0", "item 50 unseen in biased.csv"),
    "other items": (
        f"intervene heldout.csv --train other-items.csv {COLUMNS} --strategy skew",
        "have no item in common: items such as 10, 20, 30 against 7",
    ),
    "other users": (
        f"intervene heldout.csv --train other-users.csv {COLUMNS} --strategy wtd_h",
        "have no user in common",
    ),
    "text ids": (f"intervene heldout.csv --train text.csv {COLUMNS} --strategy skew", "text never matches numbers"),
    "repeated pair": (f"intervene twice.csv {COLUMNS} --strategy reg", "1 pairs occur more than once"),
    "no such column": ("intervene heldout.csv --strategy reg --columns user=nobody", "no column 'nobody'"),
    "no such file": ("intervene absent.csv --strategy reg", "absent.csv: no such file"),
    "no rows": (f"intervene empty.csv {COLUMNS} --strategy reg", "empty.csv: no rows"),
    "inclusion there": (
        f"intervene weighed.csv {COLUMNS} --strategy reg --inclusion",
        "has a column 'inclusion' already",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_one_message_and_nothing_left_behind(run: Run, folder: Path, name: str) -> None:
    (folder / "empty.csv").write_text("user_id,video_id\n")
    (folder / "elsewhere.csv").write_text("user_id,video_id\n1,70\n2,71\n")
    (folder / "other-items.csv").write_text("user_id,video_id\n1,7\n")
    (folder / "other-users.csv").write_text("user_id,video_id\n77,10\n")
    (folder / "text.csv").write_text("user_id,video_id\n1,ten\n")
    (folder / "twice.csv").write_text("user_id,video_id\n1,10\n1,10\n")
    (folder / "weighed.csv").write_text("user_id,video_id,inclusion\n1,10,0.5\n")
    before = sorted(folder.iterdir())
    text, words = BAD[name]
    outcome = run(f"{text} --out test.parquet")
    assert outcome.code == 2
    assert outcome.out == ""
    assert words in outcome.message
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL} --strategy reg --out heldout.csv",
        f"{CALL} --strategy reg --out ../{{folder}}/heldout.csv",
        f"{CALL} --strategy skew --out biased.csv",
        f"{CALL} --strategy wtd --random mar.csv --out mar.csv",
        f"intervene 'held*.csv' {COLUMNS} --strategy reg --out heldout.csv",
        f"evaluate heldout.csv {COLUMNS} --positive >3 --unlisted negative --scores a=a.npz --out a.npz",
        f"evaluate heldout.csv {COLUMNS} --positive >3 --exclude biased.csv --scores a=a.npz --out biased.csv",
        f"advise heldout.csv {COLUMNS} --positive >3 --out heldout.csv",
        f"offpolicy heldout.csv {COLUMNS} --target a=biased.csv --out biased.csv",
        f"train popularity a.npz {COLUMNS} --out a.npz",
    ],
)
def test_no_input_is_replaced(run: Run, folder: Path, text: str) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    outcome = run(text.format(folder=folder.name))
    assert outcome.code == 2
    assert "would be replaced. Choose another name." in outcome.message
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
