"""Few sessions that earn most, and users of very unequal numbers of sessions, are said; ample evidence is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.arrays import Floats
from truerank.exposure.policies.targets import RankColumn
from truerank.inference.tails import tail_index
from truerank.inference.weights import pareto_tail

TAILS = {"heavy-rewards", "few-carry", "unequal-clusters"}


def codes_of(reward: Floats, *, sessions: Any = None, seed: int = 0) -> set[str]:
    """The codes of what is said of a target that shows a random order; one viewed item per session of a list of 4."""
    rng = np.random.default_rng(seed)
    n = len(reward)
    user = np.arange(n) if sessions is None else np.repeat(np.arange(len(sessions)), sessions.astype(int))
    log = pl.DataFrame(
        {
            "session": np.arange(n),
            "user": user,
            "item": np.arange(n),
            "position": [1] * n,
            "reward": reward,
            "new": rng.integers(1, 3, n),
        }
    )
    found = tr.off_policy(log, {"new": RankColumn("new")}, position="exp:0.7", estimators=["ips"])
    return {each.code for estimate in found.estimates for each in estimate.warnings}


@pytest.mark.parametrize("n", [300, 2000])
def test_lognormal_rewards_are_said_to_have_a_heavy_tail(n: int) -> None:
    """exp(2 z): coverage was .753 to .873, and nothing was said. In every one of 20 draws."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        assert "heavy-rewards" in codes_of(np.exp(2.0 * rng.normal(size=n)), seed=seed)


def test_pareto_numbers_of_sessions_per_user_are_said() -> None:
    """P(sessions > s) = 1/s, 60 users and 300: in at least 16 of 20 draws each; in others the largest are not there."""
    for n_users in (60, 300):
        said = 0
        for seed in range(20):
            rng = np.random.default_rng(seed)
            sessions = np.minimum(np.ceil(1.0 / (1.0 - rng.random(n_users))), 3000)
            liking = np.repeat(rng.beta(2, 5, n_users), sessions.astype(int))
            found = codes_of((rng.random(len(liking)) < liking).astype(float), sessions=sessions, seed=seed)
            said += bool(found & TAILS)
        assert said >= 16


@pytest.mark.parametrize("kind", ["liked", "counts", "seconds", "prices"])
def test_ample_evidence_says_nothing_of_tails(kind: str) -> None:
    """300 users with about five sessions each: 0/1, Poisson and exponential rewards; at most 1 of 20 draws.

    A click or a purchase, 1 or 50, has an end: it is carried by few, and its tail is not heavy.
    """
    said, wrong = 0, {"heavy-tailed-rewards"} | (TAILS if kind != "prices" else set())
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sessions = 1.0 + rng.poisson(4, size=300)
        n = int(sessions.sum())
        drawn = {"liked": rng.random(n) < 0.3, "counts": rng.poisson(1.0, n), "seconds": rng.exponential(size=n),
                 "prices": np.where(rng.random(n) < 0.05, 50.0, 1.0)}  # fmt: skip
        said += bool(codes_of(drawn[kind].astype(float), sessions=sessions, seed=seed) & wrong)
    assert said <= 1


def test_few_who_carry_a_value_are_said() -> None:
    """200 sessions earn 1 or 2, and five earn 500: worth (2,800)² / (5 · 250,000 + ...) = 6 equal ones."""
    reward = np.concatenate([np.tile([1.0, 2.0], 100), np.full(5, 500.0)])
    assert "few-carry" in codes_of(reward)
    assert "few-carry" not in codes_of(reward[:200])


def test_five_users_with_many_sessions_are_few() -> None:
    rng = np.random.default_rng(1)
    assert "few-units" in codes_of((rng.random(1000) < 0.3).astype(float), sessions=np.full(5, 200.0))


def test_the_tail_index_of_known_distributions() -> None:
    """Of Pareto numbers it is their index; the largest number of all hardly moves it."""
    rng = np.random.default_rng(3)
    for index in (0.3, 0.7, 1.2):
        drawn = (1.0 - rng.random(50_000)) ** -index
        assert tail_index(drawn) == pytest.approx(index, rel=0.05)
        assert tail_index(np.sort(drawn)[:-1]) == pytest.approx(tail_index(drawn), abs=0.01)
    assert np.isnan(tail_index(np.ones(49)))
    assert tail_index(np.ones(60)) == 0


def test_heavy_rewards_are_said_also_where_sums_of_users_look_tame() -> None:
    """60 users with five lognormal rewards each: in some draws the users' sums show no tail, the rewards always do."""
    tame = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        said = codes_of(np.exp(2.0 * rng.normal(size=300)), sessions=np.full(60, 5.0), seed=seed)
        tame += not said & TAILS
        assert "heavy-tailed-rewards" in said
    assert tame >= 2


def test_weights_most_of_which_are_clipped_have_no_heavy_tail() -> None:
    """One of the shapes that the fit tries is then exactly exponential (k = 0), where the likelihood was 0 / 0."""
    weights = np.concatenate([[1.0], np.arange(1.5, 4.5, 0.5), np.full(104, 9.0)])
    assert pareto_tail(weights) < 0
