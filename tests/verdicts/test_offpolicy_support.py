"""What a log cannot show of a target takes verdicts away, unless they hold whatever is earned there."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.exposure.policies.targets import RankColumn

if TYPE_CHECKING:
    from truerank.core.results import Estimate

VIEW = 0.7
LOGGED = {"log": RankColumn("position")}


def turned_round(seed: int, *, n: int = 400, size: int = 8) -> tuple[pl.DataFrame, pl.DataFrame, float]:
    """A log, a target that turns its lists round, and how much more the target truly earns per session.

    The last items of the log's lists are slightly better.
    """
    rng = np.random.default_rng(seed)
    quality = np.linspace(0.23, 0.27, size)
    logged = np.argsort(np.argsort(rng.normal(size=(n, size)) + 1.2 * np.arange(size), axis=1), axis=1) + 1
    target = size + 1 - logged
    session, item = np.nonzero(logged <= rng.geometric(1 - VIEW, size=n)[:, None])
    log = pl.DataFrame(
        {
            "session": session,
            "item": item,
            "position": logged[session, item],
            "reward": (rng.random(len(session)) < quality[item]).astype(int),
        }
    )
    table = pl.DataFrame(
        {"session": np.repeat(np.arange(n), size), "item": np.tile(np.arange(size), n), "rank": target.ravel()}
    )
    gain = (VIEW ** (target - 1.0) - VIEW ** (logged - 1.0)) * quality
    return log, table, float(gain.sum(axis=1).mean())


def compared(log: pl.DataFrame, table: pl.DataFrame, **options: Any) -> tr.Results:
    return tr.off_policy(log, {"new": table, **LOGGED}, position=f"exp:{VIEW}", baseline="log", threads=1, **options)


def test_a_clipped_target_is_not_called_worse_when_it_is_better() -> None:
    """100 logs at clip 4 where the truth is +.056; 97 said that the log was better."""
    verdicts: Counter[tuple[str, str]] = Counter()
    for seed in range(100):
        log, table, truth = turned_round(seed)
        assert truth > 0.05
        for each in compared(log, table, clips=[4.0]).comparisons:
            verdicts[each.estimator, each.verdict] += 1
            assert each.verdict != "insufficient" or each.reasons[-1].code == "unseen-exposure"
    assert verdicts["ips", "worse"] == verdicts["snips", "worse"] == 0
    assert verdicts["ips", "insufficient"] >= 95


def never_logged(*estimators: str) -> tr.Results:
    """A target whose items the log has never shown, against the log's own lists."""
    log, table, _ = turned_round(3)
    targets = {"new": table.with_columns(pl.col("item") + 1000), "log": table.with_columns(rank=9 - pl.col("rank"))}
    return tr.off_policy(log, targets, position=f"exp:{VIEW}", baseline="log", estimators=list(estimators), threads=1)


@pytest.mark.parametrize("estimator", ["ips", "snips", "doubly-robust"])
def test_items_that_were_never_logged_carry_no_verdict(estimator: str) -> None:
    found = never_logged(estimator)
    (difference,) = found.comparisons
    assert difference.verdict == "insufficient"
    assert estimator == "snips" or "unseen-exposure" in {each.code for each in difference.reasons}
    assert found.estimates[0].evidence.unsupported == pytest.approx(1.0)
    assert found.estimates[1].evidence.unsupported == pytest.approx(0.0, abs=0.05)


def test_what_each_estimator_has_in_place_of_unseen_rewards_is_said() -> None:
    found = never_logged("ips", "doubly-robust")
    said = {each.estimator: said_of(each, "unsupported") for each in found.estimates if each.model == "new"}
    assert "missing from the value" in said["ips"]
    assert "missing" not in said["doubly-robust"]
    assert "extrapolation" in said["doubly-robust"]


def said_of(estimate: Estimate, code: str) -> str:
    return next((str(each) for each in estimate.warnings if each.code == code), "")


def half_logged(reward: list[float]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Items 1 and 2 compete; the target gives half of its exposure to item 3, which the log cannot show.

    20 sessions in which both items were viewed: ips earns .5 / 1 of item 1 and .5 / .5 of item 2 where it shows them.
    """
    n = 20
    log = pl.DataFrame(
        {
            "session": np.repeat(np.arange(n), 2),
            "item": [1, 2] * n,
            "position": [1, 2] * n,
            "reward": (reward * n)[: 2 * n],
        }
    ).with_columns(candidates=pl.lit([1, 2]))
    table = pl.DataFrame(
        {"session": np.repeat(np.arange(n), 2), "item": [1, 3] * n, "exposure": [0.5, 0.5] * n},
    )
    return log, table


def test_bounds_can_be_checked_by_hand() -> None:
    """Value .5 (w = .5 on item 1, always liked); half an exposure per session is unseen, worth 0 to .5."""
    log, table = half_logged([1, 0])
    found = tr.off_policy(log, {"new": table}, position="exp:0.5", estimators=["ips", "doubly-robust"]).estimates
    ips, robust = found
    assert ips.value == 0.5
    assert "between 0.5 and 1, sampling error apart, whatever is earned there" in said_of(ips, "unseen-bounds")
    assert ips.evidence.unsupported == 0.5
    # what a model predicts there may be anything between 0 and .5: the value may be as much too high as too low
    bounds = next(each.numbers for each in robust.warnings if each.code == "unseen-bounds")
    assert (bounds["low"], bounds["high"]) == pytest.approx((robust.value - 0.5, robust.value + 0.5))


def test_bounds_of_other_rewards_need_their_range() -> None:
    log, table = half_logged([2.5, 0.0])
    call: dict[str, Any] = {"position": "exp:0.5", "estimators": ["ips"]}
    (unknown,) = tr.off_policy(log, {"new": table}, **call).estimates
    assert said_of(unknown, "unseen-bounds") == ""
    (known,) = tr.off_policy(log, {"new": table}, reward_range=(-1, 5), **call).estimates
    # 1.25, and half an exposure of -1 to 5
    assert "between 0.75 and 3.75" in said_of(known, "unseen-bounds")
    with refused(r"reward has values from 0 to 2\.5; expected all between 0 and 2"):
        tr.off_policy(log, {"new": table}, reward_range=(0, 2), **call)
    with refused("the smaller one first"):
        tr.off_policy(log, {"new": table}, reward_range=(2, 0), **call)


def test_a_verdict_that_holds_whatever_is_earned_is_given() -> None:
    """The log earns about .9 per session; the target shows a tenth of an exposure, all of it unseen."""
    rng = np.random.default_rng(2)
    n = 300
    log = pl.DataFrame(
        {"session": np.arange(n), "item": [1] * n, "position": [1] * n, "reward": (rng.random(n) < 0.9).astype(int)}
    ).with_columns(candidates=pl.lit([1]))
    table = pl.DataFrame({"session": np.arange(n), "item": [3] * n, "exposure": [0.1] * n})
    (found,) = tr.off_policy(
        log, {"new": table, **LOGGED}, position="exp:0.5", estimators=["ips"], baseline="log"
    ).comparisons
    assert found.verdict == "worse"
    assert found.high + 0.1 < 0


def test_a_column_target_that_shows_nothing_of_the_log_carries_no_verdict() -> None:
    log, _, _ = turned_round(5)
    log = log.with_columns(new=pl.lit(None, dtype=pl.Int64))
    (found,) = tr.off_policy(
        log, {"new": RankColumn("new"), **LOGGED}, position=f"exp:{VIEW}", estimators=["ips"], baseline="log"
    ).comparisons
    assert found.verdict == "insufficient"
    assert math.isfinite(found.difference)


def test_a_supported_target_loses_no_verdict() -> None:
    """A target that shows what the log shows, a little otherwise, with plainly better items on top."""
    rng = np.random.default_rng(7)
    n, size = 1500, 4
    logged = np.argsort(rng.random((n, size)), axis=1) + 1
    target = np.tile(np.arange(1, size + 1), (n, 1))
    quality = np.array([0.6, 0.3, 0.2, 0.1])
    session, item = np.nonzero(logged <= rng.geometric(1 - VIEW, size=n)[:, None])
    reward = (rng.random(len(session)) < quality[item]).astype(int)
    log = pl.DataFrame({"session": session, "item": item, "position": logged[session, item], "reward": reward})
    table = pl.DataFrame(
        {"session": np.repeat(np.arange(n), size), "item": np.tile(np.arange(size), n), "rank": target.ravel()}
    )
    found = compared(log, table)
    assert [each.verdict for each in found.comparisons] == ["better", "better"]
    assert not [each for each in found.estimates if each.warnings]
