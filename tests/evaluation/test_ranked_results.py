"""What ranked logs give at the edges: one stated result each."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.estimators.discounted import LearntDiscountRaw, RankedNDCG, RankedPostNormalised
from truerank.estimators.weighted import IPS
from truerank.exposure.policies.targets import ExposureColumn, RankColumn
from truerank.exposure.positions import parse_position
from truerank.exposure.positions.position_models import Exponential

HALF = Exponential(0.5)
LOG = pl.DataFrame(
    {
        "session": [1, 1, 2, 2, 3], "item": [10, 20, 10, 20, 30], "position": [1, 2, 1, 2, 1],
        "reward": [1, 0, 0, 1, 1], "new": [2, 1, 2, 1, 1],
    }
)  # fmt: skip
NEW = {"new": RankColumn("new")}
PLAIN = [IPS()]


def first(frame: Any, targets: Any = NEW, **options: Any) -> Any:
    settings: dict[str, Any] = {"position": HALF, "estimators": PLAIN} | options
    return tr.off_policy(frame, targets, **settings).estimates[0]


def test_no_reward_at_all_is_a_value_without_an_interval() -> None:
    found = first(LOG.with_columns(reward=pl.lit(0)))
    assert found.value == 0
    assert math.isnan(found.low)
    assert "no-reward" in [message.code for message in found.warnings]


def test_sessions_without_a_ranking_are_left_out_and_counted() -> None:
    table = pl.DataFrame({"session": [1, 1, 2, 2], "item": [10, 20, 10, 20], "rank": [2, 1, 2, 1]})
    found = first(LOG, {"new": table})
    assert (found.value, found.units, found.undefined) == (pytest.approx((0.5 + 2) / 2), 2, 1)
    assert any("no ranking of this target" in each for each in found.warning_texts)


def test_items_that_a_target_misses_have_no_weight_and_unknown_items_count_in_its_list() -> None:
    table = pl.DataFrame({"session": [1, 2, 2, 3], "item": [20, 10, 77, 30], "rank": [1, 1, 2, 1]})
    assert first(LOG, {"new": table}).value == pytest.approx((0 + 0 + 1) / 3)
    # 1 - Σ w / Σ ε: weights are 2, 1, 1 and exposures 1, 1 + 0.5, 1
    results = tr.off_policy(LOG, {"new": table}, position=HALF, estimators=PLAIN)
    assert results.provenance.details["diagnostics"][0]["unsupported"] == pytest.approx(1 - 4 / 3.5)


def test_the_variance_is_within_loggers() -> None:
    """Loggers of fixed size: what their means differ by is no chance."""
    frame = pl.DataFrame(
        {"session": range(8), "item": 1, "reward": [0, 1, 0, 1, 5, 6, 5, 6], "a": 0.5, "b": 0.5, "t": 0.5,
         "logger": ["a"] * 4 + ["b"] * 4}
    )  # fmt: skip
    loggers = {"a": ExposureColumn("a"), "b": ExposureColumn("b")}
    found = first(frame, {"new": ExposureColumn("t")}, position=None, loggers=loggers)
    assert found.value == 3
    # within each logger the variance of 0, 1, 0, 1 is 1/3: sqrt(2 · 4 · 1/3) / 8
    assert found.stderr == pytest.approx(math.sqrt(8 / 3) / 8)


BEYOND = pl.DataFrame(
    {"session": [1, 1, 1, 2, 2], "item": [1, 2, 3, 2, 1], "position": [1, 2, 3, 1, 2], "reward": [1, 0, 1, 0, 1]}
)  # fmt: skip
CUT = parse_position("exp:0.5@2")


@pytest.mark.parametrize("rank", [None, 1, 3])
def test_a_view_beyond_the_cut_off_is_refused_whatever_the_target(rank: int | None) -> None:
    """Also where the target would not show the item: its reward must not vanish."""
    frame = BEYOND.with_columns(new=pl.Series([2, 4, rank, 1, 2]))
    table = pl.DataFrame({"session": [2], "item": [1], "rank": [1]})  # session 1 has no ranking
    for target in (RankColumn("new"), RankColumn("position"), table):
        for estimator in (IPS(), LearntDiscountRaw()):
            with refused(r"position 3 was viewed .* infinite", RefusedError):
                first(frame, {"new": target}, position=CUT, estimators=[estimator])
    with refused("position 3 has a reward", RefusedError):
        first(frame, position=CUT, logged="displayed")


def test_a_difference_without_any_reward_has_no_interval() -> None:
    frame = LOG.with_columns(reward=pl.lit(0))
    both = NEW | {"log": RankColumn("position")}
    for interval in (None, tr.Bootstrap(20)):  # from passes over the rows, and from terms
        (found,) = tr.off_policy(frame, both, position=HALF, estimators=PLAIN, interval=interval).comparisons
        assert found.difference == 0
        assert all(math.isnan(each) for each in (found.stderr, found.low, found.high, found.p, found.p_adjusted))
    # a reward that one of the two would show is a difference
    frame = LOG.with_columns(new=pl.lit(None, dtype=pl.Int64))
    (found,) = tr.off_policy(frame, both, position=HALF, estimators=PLAIN).comparisons
    assert abs(found.difference) == 1
    assert math.isnan(found.p)  # all three sessions alike: nothing tells how others would differ
    assert found.verdict == "insufficient"


def test_negative_rewards_have_no_normalised_form() -> None:
    frame = LOG.with_columns(other=pl.Series([1.0, 0.0, 0.0, -1.0, 0.5]))
    for estimator in (RankedNDCG(), RankedPostNormalised()):
        with refused(f"{estimator.info.name}: other has negative values", RefusedError):
            first(frame, estimators=[estimator], rewards=["other"])
        results = tr.off_policy(frame, NEW, position=HALF, estimators=[estimator], rewards=["reward", "other"])
        assert [each.reward for each in results.estimates] == ["reward"]
        assert any(f"excluded: {estimator.info.name} of other" in note for note in results.notes)


def test_why_there_is_no_interval() -> None:
    def because(found: Any) -> str:
        assert math.isnan(found.low)
        return " ".join(found.warning_texts)

    assert "from one session" in because(first(LOG.filter(pl.col("session") == 2)))
    assert "from one user" in because(first(LOG.with_columns(user=pl.lit(1))))
    frame = LOG.with_columns(logger=pl.Series(["a", "a", "a", "a", "b"]))
    loggers = {"a": RankColumn("position"), "b": RankColumn("position")}
    assert "a logging policy has a single session" in because(first(frame, loggers=loggers))
