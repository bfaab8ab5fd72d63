"""Users who are in the data because they have a positive label: no verdict, from `evaluate`, `watch` and `plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from shown import Shown, uniform

import truerank as tr
from truerank.core.messages import Message, Severity
from truerank.core.results import INSUFFICIENT
from truerank.evaluation import sources
from truerank.io import partition

CODE = "users-selected-by-label"
N_USERS, N_ITEMS = 600, 80


@pytest.fixture(scope="module")
def dataset() -> Shown:
    return Shown.of(np.random.default_rng(21), N_USERS, N_ITEMS)


def labelled(dataset: Shown, *, per_user: Any = 6, selected: bool, seed: int = 22) -> pl.DataFrame:
    """Random rows of every user, or only those of users with a positive label."""
    rows = dataset.judged(uniform(np.random.default_rng(seed), dataset.label.shape, per_user))
    return rows.filter(pl.col("label").max().over("user") > 0) if selected else rows


def coded(messages: Any) -> list[Message]:
    return [message for message in messages if message.code == CODE]


@pytest.mark.parametrize("metric", ["Precision@10", "Recall@10", "DCG@10", "Coverage@10"])
def test_evaluate_gives_no_verdict(dataset: Shown, metric: str) -> None:
    results = tr.evaluate(dataset.models, labelled(dataset, selected=True), exposure="random", metrics=[metric])
    (message,) = coded(results.messages)
    assert message.severity is Severity.WARNING
    assert message.numbers["users"] == 0
    of_labels = metric != "Coverage@10"  # which looks at lists alone, whoever was labelled
    for estimate in results.estimates:
        assert bool(coded(estimate.warnings)) is of_labels
    for comparison in results.comparisons:
        assert bool(coded(comparison.reasons)) is of_labels
        assert comparison.verdict == INSUFFICIENT or not of_labels


def test_random_rows_of_all_users_give_no_alarm(dataset: Shown) -> None:
    results = tr.evaluate(
        dataset.models, labelled(dataset, selected=False), exposure="random", metrics=["Precision@10"]
    )
    assert not coded(results.messages)
    assert not any(coded(comparison.reasons) for comparison in results.comparisons)


def test_other_exposures_are_not_tested(dataset: Shown) -> None:
    rows = labelled(dataset, selected=True).with_columns(propensity=pl.lit(6 / N_ITEMS))
    assert not coded(tr.evaluate(dataset.models, rows, exposure="biased", metrics=["Precision@10"]).messages)


def test_chunks_and_exclusions_change_no_bit(
    dataset: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Unequal numbers of rows and candidates, of a file that is read in chunks of users, by several threads."""
    rng = np.random.default_rng(23)
    rows = labelled(dataset, per_user=rng.integers(2, 9, N_USERS), selected=True)
    user, item = np.nonzero(rng.random(dataset.label.shape) < 0.15 * rng.random((N_USERS, 1)))
    path = str(tmp_path / "labels.parquet")
    exclude = pl.DataFrame({"user": user, "item": item})
    rows = rows.join(exclude, on=["user", "item"], how="anti").filter(pl.col("label").max().over("user") > 0)
    rows.sample(fraction=1, shuffle=True, seed=1).write_parquet(path)

    def message(**options: Any) -> Message:
        results = tr.evaluate(
            dataset.models, path, exposure="random", metrics=["Precision@10"], exclude=exclude, **options
        )  # fmt: skip
        return coded(results.messages)[0]

    at_once = message(threads=1)
    for module in (sources, partition):
        monkeypatch.setattr(module, "MEMORY_ROWS", 100)
    monkeypatch.setattr(partition, "CHUNK_ROWS", 300)
    assert message(threads=2).numbers == at_once.numbers


def test_plan_says_that_a_pilot_does_not_carry_it(dataset: Shown) -> None:
    def messages(*, selected: bool) -> list[Message]:
        pilot = labelled(dataset, selected=selected)
        plan = tr.plan_exposure(pilot, dataset.models, difference=0.02, metrics=["Precision@10"])
        return coded(plan.messages)

    assert len(messages(selected=True)) == 1
    assert not messages(selected=False)


def test_watch_gives_no_verdict(dataset: Shown) -> None:
    def watched(*, selected: bool) -> Any:
        came = np.random.default_rng(24).permutation(N_USERS)
        rows = labelled(dataset, selected=selected).with_columns(
            time=pl.col("user").replace_strict(range(N_USERS), came)
        )
        return tr.watch(
            dataset.models, rows, require="taste > guess", exposure="random", metrics=["Precision@10"], planned=600
        )  # fmt: skip

    (pair,) = watched(selected=True).pairs
    assert pair.state == "no promise"
    assert coded(pair.reasons)
    assert watched(selected=False).pairs[0].state == "shown"


# --------------------------------------------------------------------------------------------------------------- rates


def users_drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, candidates and positive rows of users: unequal numbers, unequal tastes, which may go with each other."""
    n_users, n_items, most = int(rng.choice([300, 1000])), int(rng.integers(100, 2000)), int(rng.integers(3, 40))
    rows = np.full(n_users, most) if rng.random() < 0.3 else rng.integers(1, most + 1, n_users)
    taste = rng.choice([0.05, 0.1, 0.2]) * rng.lognormal(0, rng.choice([0.0, 0.5, 1.0]), n_users)
    taste = taste * (rows / rows.mean()) ** rng.choice([0.0, -0.5, -1.0])  # few rows, more liked
    positives = np.round(n_items * np.clip(taste, 0, 0.9)).astype(np.int64)
    return rows, np.full(n_users, float(n_items)), rng.hypergeometric(positives, n_items - positives, rows)


@pytest.mark.slow
def test_false_alarms_and_power() -> None:
    """No alarm in 2,000 random logs; where 300 users are left and a fifth were dropped it is found."""
    from truerank.exposure.randomness.labelled import UserCounts

    rng = np.random.default_rng(25)
    alarms, found = 0, []
    for _ in range(2000):
        rows, candidates, positive = users_drawn(rng)
        alarms += UserCounts.from_users(rows, candidates, positive).test().too_few
        left = positive > 0
        if left.sum() >= 300 and left.mean() <= 0.8:
            found.append(UserCounts.from_users(rows[left], candidates[left], positive[left]).test().too_few)
    assert alarms == 0
    assert len(found) > 300
    assert np.mean(found) > 0.99
