"""Reading, writing and splitting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.io.facts import summary
from truerank.io.files import to_frame


@pytest.fixture
def log() -> tr.Log:
    rng = np.random.default_rng(0)
    cell = rng.choice(40 * 30, 600, replace=False)
    frame = {"user": [f"u{c // 30}" for c in cell], "item": cell % 30, "label": rng.integers(0, 2, 600)}
    return tr.read(pl.DataFrame({**frame, "time": rng.integers(0, 90, 600)}))


def pairs(log: tr.Log) -> set[tuple[int, int]]:
    return set(zip(log.user.tolist(), log.item.tolist(), strict=True))


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".tsv"])
def test_written_logs_read_back(log: tr.Log, tmp_path: Path, ending: str) -> None:
    tr.write(log, tmp_path / f"log{ending}")
    again = tr.read(tmp_path / f"log{ending}")
    assert again.users == log.users
    assert again.items == log.items
    assert to_frame(again).equals(to_frame(log).cast({"label": pl.Int8}))
    assert [path.name for path in tmp_path.iterdir()] == [f"log{ending}"]


def test_random_split_is_a_partition_of_about_the_right_size(log: tr.Log) -> None:
    first, second = tr.split(log, "random", 0.3, seed=1)
    assert pairs(first) | pairs(second) == pairs(log)
    assert not pairs(first) & pairs(second)
    assert abs(len(second) - 180) < 3 * np.sqrt(600 * 0.3 * 0.7)
    assert second.users == log.users


def test_per_user_split_takes_the_floor_of_each_users_share(log: tr.Log) -> None:
    first, second = tr.split(log, "user", 0.3, seed=1)
    assert pairs(first) | pairs(second) == pairs(log)
    count = np.bincount(log.user, minlength=40)
    assert (np.bincount(second.user, minlength=40) == np.floor(0.3 * count)).all()


def test_splits_do_not_depend_on_the_order_of_rows(log: tr.Log) -> None:
    shuffled = log.select(np.random.default_rng(3).permutation(len(log)))
    for by in ("random", "user"):
        assert pairs(tr.split(log, by, 0.3, seed=1).test) == pairs(tr.split(shuffled, by, 0.3, seed=1).test)
        assert pairs(tr.split(log, by, 0.3, seed=1).test) != pairs(tr.split(log, by, 0.3, seed=2).test)
        one, other = (tr.split(each, by, folds=3, seed=1) for each in (log, shuffled))
        assert [pairs(part.test) for part in one] == [pairs(part.test) for part in other]
    assert pairs(tr.split(log, "last").test) == pairs(tr.split(shuffled, "last").test)


def test_split_by_time_keeps_equal_times_together(log: tr.Log) -> None:
    first, second = tr.split(log, "time", 0.25)
    assert first.time is not None
    assert second.time is not None
    assert first.time.max() < second.time.min()
    assert len(second) >= 150
    with refused("no time column"):
        tr.split(tr.read(pl.DataFrame({"user": [1], "item": [1], "label": [1]})), "time", 0.5)


def test_summary_counts(log: tr.Log) -> None:
    found = summary(log)
    assert (found["rows"], found["users"], found["items"]) == (600, 40, 30)
    assert found["density"] == pytest.approx(0.5)
    assert found["repeated pairs"] == 0
    assert found["positives"] == int(log.label.sum())


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1]], ids=["in order", "shuffled"])
def test_impressions_do_not_change_with_the_arrays_they_came_from(order: list[int]) -> None:
    """A frame shares its memory with the arrays it was made of; a log that was read and checked does not."""
    given = {
        "session": np.array([0, 0, 1, 1])[order],
        "item": np.array([0, 1, 0, 1])[order],
        "time": np.array([5, 6, 7, 8])[order],
        "dwell": np.array([0.5, 2.0, 0.0, 1.5])[order],
        "propensity": np.array([0.5, 0.25, 1.0, 0.2])[order],
        "new": np.array([1.0, 2.0, 2.0, 1.0])[order],
    }
    log = tr.read_impressions(pl.DataFrame(given), rewards=["dwell"], extra=["new"])
    for values in given.values():
        values[:] = 0
    assert log.unit.tolist() == [0, 0, 1, 1]
    assert log.item.tolist() == [0, 1, 0, 1]
    assert log.time is not None
    assert log.time.tolist() == [5, 6, 7, 8]
    assert log.reward("dwell").tolist() == [0.5, 2.0, 0.0, 1.5]
    assert log.propensity is not None
    assert log.propensity.tolist() == [0.5, 0.25, 1.0, 0.2]
    assert log.columns["new"].tolist() == [1.0, 2.0, 2.0, 1.0]
