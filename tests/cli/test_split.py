"""truerank split: rows of a file in two parts or in folds, all of them, under the names they have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from calling import call
from refusals import refused

import truerank as tr


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    path = tmp_path / "ratings.csv"
    cells = rng.choice(40 * 60, 600, replace=False)
    table = {
        "userId": [f"{cell // 60:03d}" for cell in cells],
        "movieId": cells % 60,
        "rating": rng.integers(1, 6, 600),
        "timestamp": rng.integers(0, 10_000, 600),
        "comment": ['=1+1, "x"'] * 600,
    }
    pl.DataFrame(table).write_csv(path)
    return path


def fields(path: Path) -> list[tuple[str, ...]]:
    return pl.read_csv(path, infer_schema=False).rows()


@pytest.mark.parametrize("by", ["time", "last", "random", "user"])
def test_every_row_is_in_one_part_with_all_its_fields(by: str, log: Path, tmp_path: Path) -> None:
    ended = call(f"split {log} --by {by} --test 0.25 --out {tmp_path / 'parts'}").fine()
    train, test = (fields(tmp_path / "parts" / f"{name}.csv") for name in ("train", "test"))
    assert sorted(train + test) == sorted(fields(log))
    assert "users have no test rows" in ended.err
    if by == "time":
        assert max(int(row[3]) for row in train) < min(int(row[3]) for row in test)
        assert len(test) == 150
    if by == "last":
        users = {row[0] for row in train + test}
        assert len(test) == len({row[0] for row in test}) == len(users)
        latest = {row[0]: int(row[3]) for row in test}
        assert all(int(row[3]) <= latest[row[0]] for row in train)
    if by == "user":
        rows = pl.read_csv(log, infer_schema=False).group_by("userId").len()
        assert len(test) == int((rows["len"] // 4).sum())


def test_folds_test_each_row_once(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "parts"
    assert call(f"split {log} --by user --folds 4 --out {out} --quiet").code == 0
    tested = [row for fold in range(1, 5) for row in fields(out / f"fold-{fold}" / "test.csv")]
    assert sorted(tested) == sorted(fields(log))
    for fold in range(1, 5):
        whole = fields(out / f"fold-{fold}" / "train.csv") + fields(out / f"fold-{fold}" / "test.csv")
        assert sorted(whole) == sorted(fields(log))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--by", "time", "--folds", "3"), "not time"),
        (("--by", "random", "--folds", "1"), "expected 2 or more"),
        (("--by", "random", "--test", "1.5"), "between 0 and 1"),
    ],
)
def test_what_makes_no_split_is_refused(words: tuple[str, ...], said: str, log: Path, tmp_path: Path) -> None:
    ended = call("split", str(log), *words, "--out", str(tmp_path / "parts"))
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert not (tmp_path / "parts").exists()


def test_a_protocol_of_another_package_names_its_parts(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def halves(folder: Path, *, seed: int) -> dict[str, tr.Log]:
        rows = tr.read(folder, positive="all")
        return {"mine": rows.select(slice(100 + seed)), "rest": rows.select(slice(100 + seed, None))}

    monkeypatch.setattr("truerank.datasets.split.plugins", lambda group: {"halves": halves})
    words = ("split", str(log), "--seed", "1", "--out", str(tmp_path / "parts"), "--protocol")
    unknown = call(*words, "other")
    assert (unknown.code, "halves" in unknown.err) == (2, True)
    assert call(*words, "halves").code == 0
    sizes = {path.stem: len(pl.read_parquet(path)) for path in (tmp_path / "parts").glob("*.parquet")}
    assert sizes == {"mine": 101, "rest": 499}


def test_a_log_without_times_has_no_last_row() -> None:
    with refused("time column"):
        tr.split(tr.read(pl.DataFrame({"user": [1, 1], "item": [1, 2]})), "last")


def test_users_with_one_row_keep_it_for_training() -> None:
    log = tr.read(pl.DataFrame({"user": [1, 2, 2], "item": [1, 2, 3], "time": [5, 7, 6]}))
    train, test = tr.split(log, "last")
    assert test.users.texts(test.user) == ["2"]
    assert test.items.texts(test.item) == ["2"]
    assert sorted(train.items.texts(train.item)) == ["1", "3"]
