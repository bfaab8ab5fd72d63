"""truerank advise on logs of every kind: the right verdict, and commands that run as they are printed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import Run

from realdata import folder_of
from truerank.io.read import read

N_USERS, N_ITEMS, JUDGED = 120, 60, 12


def world(seed: int = 0) -> pl.DataFrame:
    """Every pair of a world in which some items are liked more."""
    rng = np.random.default_rng(seed)
    user, item = np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS)
    liked = rng.random(len(user)) < 0.1 + 0.3 * (item < 15)
    return pl.DataFrame({"user": user, "item": item, "label": liked.astype(np.int64)})


def shown(frame: pl.DataFrame, weight: np.ndarray[Any, Any], seed: int = 1) -> pl.DataFrame:
    """So many items of each user, drawn one after the other with chances in proportion to weights."""
    rng = np.random.default_rng(seed)
    key = rng.exponential(size=len(frame)) / weight
    first = pl.Series("place", key).to_frame().with_columns(user=frame["user"])
    place = first.select(pl.col("place").rank("ordinal").over("user"))["place"]
    return frame.filter(place <= JUDGED)


def advised(run: Run, *words: str) -> dict[str, Any]:
    found = run("advise", *words, "--format", "json").fine()
    content: dict[str, Any] = json.loads(found.out)
    return content


def runs(run: Run, commands: list[str]) -> None:
    """The evaluation as it is printed, with the scores of a model where it names them."""
    program, *words = shlex.split(commands[-1])
    assert program == "truerank"
    if "model=scores.csv" in words:
        log = read(words[1], columns=dict(part.split("=") for part in words[words.index("--columns") + 1].split(","))
                   if "--columns" in words else None, values=False)  # fmt: skip
        pairs = log.users.values.to_frame("user").join(log.items.values.to_frame("item"), how="cross")
        pairs.with_columns(score=pl.int_range(pl.len()) * 7919 % 1009).write_csv("scores.csv")
    for command in commands[-1:]:
        found = run(*words)
        assert found.code == 0, (command, found.err)


def valid(content: dict[str, Any]) -> set[str]:
    return {each["estimator"] for each in content["estimators"] if each["valid"]}


def test_full_random_biased_and_holdout_logs_are_told_apart(run: Run) -> None:
    every = world()
    every.write_csv("full.csv")
    even = np.ones(len(every))
    shown(every, even).rename({"user": "userId", "item": "movieId"}).write_csv("random.csv")
    uneven = np.where(every["item"].to_numpy() < 15, 8.0, 1.0)
    shown(every, uneven).write_csv("biased.csv")
    every.filter(pl.col("label") == 1).drop("label").write_csv("held.csv")
    expected = {
        "full.csv": ("full", {"full", "pooled", "horvitz-thompson"}, {"ips", "holdout"}),
        "random.csv": ("random", {"pooled", "horvitz-thompson", "hajek"}, {"full", "ips", "snips"}),
        "biased.csv": ("biased", {"snips"}, {"ips", "doubly-robust", "pooled", "full"}),
        "held.csv": ("holdout", {"holdout"}, {"pooled", "full", "snips"}),
    }
    for name, (exposure, can, cannot) in expected.items():
        content = advised(run, name)
        assert content["exposure"] == exposure, name
        assert can <= valid(content), name
        assert not cannot & valid(content), name
        runs(run, content["next"])
    biased = advised(run, "biased.csv")
    assert "no-propensities" in {each["code"] for each in biased["findings"]}
    assert "advise biased.csv --exclude" in biased["next"][0]  # the check of the likely cause comes first
    text = run("advise random.csv").out
    assert "userId (the user), movieId (the item)" in text
    assert len(text.splitlines()) <= 25


def test_propensities_are_checked(run: Run) -> None:
    every = world()
    chance = np.where(every["item"].to_numpy() < 15, 0.6, 0.15)
    seen = np.random.default_rng(3).random(len(every)) < chance
    log = every.with_columns(propensity=pl.Series(chance)).filter(pl.Series(seen))
    log.write_csv("known.csv")
    log.with_columns(propensity=pl.col("propensity") / 10).write_csv("scaled.csv")
    log.rename({"propensity": "pscore"}).write_csv("named.csv")
    content = advised(run, "known.csv")
    assert (content["exposure"], [each["code"] for each in content["findings"]]) == ("biased", ["propensities"])
    assert {"ips", "snips", "doubly-robust"} <= valid(content)
    runs(run, content["next"])
    wrong = advised(run, "scaled.csv")
    assert "propensity-scale" in {each["code"] for each in wrong["findings"]}
    assert "ips" not in valid(wrong)
    assert "snips" in valid(wrong)
    runs(run, advised(run, "named.csv")["next"])


def test_scores_and_exclusions_come_into_the_command(run: Run) -> None:
    content = advised(run, "sample.csv", "--scores", "a=a.npz", "--scores", "b=b.csv", "--exclude", "train.csv")
    assert [each["code"] for each in content["findings"]].count("scores") == 2
    assert "few-users" in {each["code"] for each in content["findings"]}
    assert "--scores a=a.npz --scores b=b.csv" in content["next"][0]
    assert "--exclude train.csv" in content["next"][0]
    runs(run, content["next"])
    pl.DataFrame({"user": ["x"], "item": [10], "score": [1.0]}).write_csv("other.csv")
    assert run("advise sample.csv --scores other=other.csv").code == 2


def test_a_ranked_log_and_its_positions(run: Run) -> None:
    rows = [(session, session % 9, session * 3 % 7 + at, at, int((session + at) % 4 == 0), 4 - at)
            for session in range(60) for at in (1, 2, 3)]  # fmt: skip
    columns = ["session_id", "user", "item", "position", "click", "new"]
    log = pl.DataFrame(rows, schema=columns, orient="row")
    log.write_csv("feed.csv")
    log.with_columns(position=1 + pl.col("position") // 3).write_csv("shared.csv")
    content = advised(run, "feed.csv")
    assert content["exposure"] == "ranked"
    assert {"ips", "snips", "doubly-robust"} <= valid(content)
    assert "pooled" not in valid(content)
    assert content["facts"]["users"] == 9
    runs(run, content["next"])
    assert "two items at one position" in run("advise shared.csv").message
    log.filter(pl.col("position") == 1).write_csv("first.csv")
    assert "one-position" in {each["code"] for each in advised(run, "first.csv")["findings"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("session,item,position,click\n1,2,0,1\n1,3,1,0\n", "position"),
        ("session,item,position\n1,2,1\n1,3,2\n", "no reward"),
    ],
)
def test_broken_files_end_in_one_sentence(run: Run, content: str, message: str) -> None:
    Path("broken.csv").write_text(content)
    found = run("advise broken.csv")
    assert found.code == 2
    assert message in found.message
    assert not found.out


def test_what_is_readable_but_says_nothing_is_warned_of(run: Run) -> None:
    Path("twice.csv").write_text("user,item,label\n1,2,1\n1,2,0\n2,3,0\n2,2,1\n")
    content = advised(run, "twice.csv")
    assert {"repeated-pairs", "few-users", "few-positives"} <= {each["code"] for each in content["findings"]}
    assert not content["next"]
    Path("none.csv").write_text("user,item,label\n" + "".join(f"{u},{i},0\n" for u in range(9) for i in (u, u + 1)))
    assert "no-positive" in {each["code"] for each in advised(run, "none.csv")["findings"]}


# ------------------------------------------------------------------------------------------------------------ real data


def test_the_open_bandit_sample_has_propensities_of_choices(run: Run) -> None:
    place = folder_of("open_bandit_sample") / "random_all.parquet"
    content = advised(run, str(place))
    assert content["exposure"] == "ranked"
    assert "known propensity" in content["why"]
    assert {"ips", "snips"} <= valid(content)
    assert not [each for each in content["findings"] if each["severity"] == "warning"]
    runs(run, content["next"])
