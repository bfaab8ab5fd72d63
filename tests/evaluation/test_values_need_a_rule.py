"""Values that are neither 0 nor 1 are labels only by a rule, in every command and function; rewards fit their range."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import call
from refusals import refused

import truerank as tr

N_USERS, N_ITEMS = 40, 12
RNG = np.random.default_rng(3)
USER, ITEM = (each.ravel() for each in np.indices((N_USERS, N_ITEMS)))
LABELS = pl.DataFrame({
    "user": USER, "item": ITEM, "rating": RNG.integers(1, 6, len(USER)), "propensity": 0.5,
    "time": RNG.permutation(len(USER)),
})  # fmt: skip
SCORES = {name: pl.DataFrame({"user": USER, "item": ITEM, "score": RNG.normal(size=len(USER))}) for name in "ab"}
EXPOSURES = ["full", "holdout", "random", "designed", "biased"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    LABELS.write_csv(tmp_path / "labels.csv")
    for name, table in SCORES.items():
        table.write_csv(tmp_path / f"{name}.csv")
    return [
        str(tmp_path / "labels.csv"),
        *(word for name in "ab" for word in ("--scores", f"{name}={tmp_path}/{name}.csv")),
    ]


@pytest.mark.parametrize("exposure", EXPOSURES)
def test_ratings_without_a_rule_are_refused(exposure: str, files: list[str]) -> None:
    for metrics in (None, ["Recall@5"], ["Precision@5", "Serendipity@5"]):
        with refused(r"positive=\">3\""):
            tr.evaluate(SCORES, LABELS, exposure=exposure, exclude={0: [0]}, metrics=metrics)
    with refused(r"positive=\">3\""):
        tr.watch(SCORES, LABELS, exposure=exposure, require="a > b", metrics=["Precision@5"])
    for words in (["evaluate", *files], ["watch", *files, "--require", "a > b", "--metric", "Precision@5"]):
        ended = call(*words, "--exposure", exposure)
        assert (ended.code, "--positive" in ended.err) == (2, True), ended.err
        assert not ended.out


def test_a_rule_decides(files: list[str], tmp_path: Path) -> None:
    values = set()
    for rule in (">3", ">=2", "all"):
        words = ("--exposure", "holdout", "--positive", rule, "--metric", "Recall@5", "--out", str(tmp_path / "r.json"))
        call("evaluate", *files, *words).fine()
        (value, _) = (each["value"] for each in json.loads((tmp_path / "r.json").read_text())["estimates"])
        labels = tr.read(LABELS, positive=rule)
        results = tr.evaluate(SCORES, labels, exposure="holdout", metrics=["Recall@5"])
        assert results.estimates[0].value == value
        values.add(value)
    assert len(values) == 3


@pytest.mark.parametrize("command", ["train popularity", "train ease", "study reliability"])
def test_other_commands_need_it_too(command: str, files: list[str], tmp_path: Path) -> None:
    scores = files[1:] if command.startswith("study") else []
    ended = call(*command.split(), files[0], *scores, "--out", str(tmp_path / "out.npz"))
    assert (ended.code, "--positive" in ended.err) == (2, True), ended.err


# -------------------------------------------------------------------------------------------------------------- rewards

LOG = pl.DataFrame({
    "session": np.repeat(np.arange(60), 5), "item": np.tile(np.arange(5), 60), "position": np.tile(np.arange(1, 6), 60),
    "click": RNG.integers(0, 2, 300), "rating": RNG.integers(1, 6, 300),
})  # fmt: skip
TARGETS: dict[str, Any] = {"log": tr.exposure.RankColumn("position")}


def rewarded(log: Any, reward: str, between: tuple[float, float]) -> tr.Results:
    return tr.off_policy(log, TARGETS, position="yule:1", rewards=[reward], reward_range=between)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_range_must_hold_every_reward(streamed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LOG.write_parquet(tmp_path / "log.parquet")
    log: Any = tmp_path / "log.parquet" if streamed else LOG
    if streamed:
        monkeypatch.setattr("truerank.evaluation.sources.MEMORY_ROWS", 10)
    for reward, between in (("click", (0, 0.5)), ("click", (0.5, 2)), ("rating", (2, 5)), ("rating", (0, 4))):
        with refused(reward):
            rewarded(log, reward, between)
    for reward, between in (("click", (0, 1)), ("click", (-1, 5)), ("rating", (1, 5)), ("rating", (0, 5))):
        assert rewarded(log, reward, between).estimates
