"""The simulated feed: exposures and truth are right, each switch breaks what it says, files are as promised."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

from truerank.core.arrays import Floats, sums_by
from truerank.exposure.policies.rankers import ranker_exposures
from truerank.exposure.positions.position_models import Exponential
from truerank.simulation.feed import Broken, Feed, FeedPolicy, FeedSettings, Surface, make_feed
from truerank.simulation.feed_truth import (
    Sessions,
    draw_log,
    draw_sessions,
    target_table,
    truth_of,
    write_feed,
)

SMALL = FeedSettings(kinds=8, items=40, pool=8, candidates=6, length=5, sessions=2000, days=3)


@pytest.fixture(scope="module")
def feed() -> Feed:
    return make_feed(SMALL, seed=1)


def weighted_rewards(feed: Feed, drawn: Sessions, policy: str) -> Floats:
    """Per session, the sum of reward x ε / ε0 (eq. 8)."""
    session, rank = np.nonzero(drawn.viewed)
    x = drawn.kind[session], drawn.day[session], drawn.surface[session], drawn.place[session, rank]
    weight = feed.exposure(feed.policy(policy))[x] / feed.logging_exposure()[x]
    return sums_by(session, weight * drawn.reward[session, rank, 0], n=len(drawn))


def ratio(feed: Feed, policy: str, *, runs: int = 30) -> tuple[float, float]:
    """The mean estimate of a policy over logs, and its Monte-Carlo error."""
    found = [weighted_rewards(feed, draw_log(feed, seed=run), policy).mean() for run in range(runs)]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(runs))


def test_exposures_are_those_of_two_stage_rankers() -> None:
    settings = replace(
        SMALL, kinds=2, days=1, patience=0.0, lengths=0.0, surfaces=(Surface("only", "exp:0.7", 1.0),),
        policies=(FeedPolicy("logging"), FeedPolicy("sharp", 0.9, 0.0)),
    )  # fmt: skip
    feed, position = make_feed(settings, seed=2), Exponential(0.7, cutoff=SMALL.length)
    for kind in range(2):
        for policy, temperature in ((0, 1.0), (1, None)):
            exposure = ranker_exposures(feed.weight[policy, kind], position, temperature=temperature, n_candidates=6)
            np.testing.assert_allclose(feed.exposure(policy)[kind, 0, 0], exposure, atol=1e-12)


@pytest.mark.parametrize("policy", ["logging", "better", "worse"])
def test_the_truth_is_what_the_policy_earns(feed: Feed, policy: str) -> None:
    truth = truth_of(feed, policy)
    drawn = draw_sessions(feed, policies=(feed.policy(policy),), n=60_000, seed=9)
    for at, name in enumerate(("reward", "complete")):
        earned = drawn.reward[:, :, at].sum(axis=1).reshape(-1, SMALL.visits).mean(axis=1)
        error = earned.std(ddof=1) / np.sqrt(len(earned))
        assert abs(earned.mean() - truth[name].value) < 4 * error
        assert truth[name].stderr == 0
        by_day = [drawn.reward[drawn.day == day, :, at].sum(axis=1).mean() for day in range(SMALL.days)]
        np.testing.assert_allclose(by_day, truth[name].by_day, rtol=0.06)
    assert drawn.viewed.sum() / len(drawn) == pytest.approx(truth["reward"].impressions, rel=0.02)


def test_the_importance_weighted_sum_is_on_target(feed: Feed) -> None:
    for policy in ("logging", "better", "worse"):
        mean, error = ratio(feed, policy)
        assert abs(mean - truth_of(feed, policy)["reward"].value) < 4 * error
    assert truth_of(feed, "better")["reward"].value > truth_of(feed, "worse")["reward"].value


@pytest.mark.parametrize("broken", list(Broken))
def test_each_switch_biases_the_estimate(broken: Broken) -> None:
    """What is unbiased otherwise is off by many standard errors, against the truth of the broken feed."""
    feed = make_feed(
        replace(SMALL, broken=frozenset({broken}), policies=(SMALL.policies[0], FeedPolicy("sharp", 0.95, 0.3))), seed=3
    )
    truth = truth_of(feed, "sharp", sessions=100_000)["reward"]
    mean, error = ratio(feed, "sharp", runs=40)
    noise = np.hypot(error, truth.stderr)
    assert abs(mean - truth.value) > 3 * noise
    assert (truth.stderr > 0) == (broken in {Broken.STATE, Broken.CASCADE, Broken.NEIGHBOUR})


def test_files(tmp_path: Path) -> None:
    settings = replace(SMALL, sessions=100)
    paths = write_feed(settings, tmp_path / "feed", seed=1)
    log, target = pl.read_parquet(paths["log"]), pl.read_parquet(paths["better"])
    assert log.columns == [
        "session", "user", "item", "position", "reward", "complete", "propensity", "time", "surface",
    ]  # fmt: skip
    assert log["session"].n_unique() == 100
    assert target.columns == ["session", "item", "exposure"]
    assert log.join(target, on=["session", "item"], how="anti").is_empty()
    logging = pl.read_parquet(paths["logging"])
    both = log.join(logging, on=["session", "item"])
    np.testing.assert_allclose(both["propensity"].to_numpy(), both["exposure"].to_numpy())
    truth = json.loads(paths["truth"].read_text())
    assert {(each["policy"], each["reward"]) for each in truth["truth"]} == {
        (policy, reward) for policy in ("logging", "better", "worse") for reward in ("reward", "complete")
    }
    assert truth["loggers"] == ["logging"]
    feed = make_feed(settings, seed=1)
    assert target_table(feed, draw_log(feed, seed=1), "better").equals(target)
    (tmp_path / "file").write_text("")
    with refused("cannot be written"):
        write_feed(settings, tmp_path / "file" / "feed")


@pytest.mark.parametrize(
    "wrong",
    [
        {"length": 9, "candidates": 6},
        {"pool": 400},
        {"loggers": 4},
        {"policies": (FeedPolicy("a", noise=0.0), FeedPolicy("b"))},
        {"surfaces": (Surface("only", "log", 1.0),)},
        {"broken": frozenset({Broken.TRUNCATION}), "candidates": 20},
    ],
)
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with refused(r"expected|Give it some"):
        FeedSettings(**wrong)
