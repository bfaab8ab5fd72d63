"""Off-policy estimates against the truth of a simulated feed."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from offpolicy_study import COVERAGE_LOGS, coverage, estimates_of
from truerank.studies.feed import Broken, FeedSettings, make_feed
from truerank.studies.feed_truth import truth_of

SMALL = FeedSettings(kinds=20, items=80, pool=10, candidates=7, length=6, sessions=800)
N = 40


def errors(settings: FeedSettings) -> dict[str, tuple[float, float]]:
    """Mean error in parts of the truth and its Monte-Carlo error, of every estimator of the explicit reward."""
    feed = make_feed(settings, seed=5)
    truth = truth_of(feed, "better")["reward"].value
    rows = [row for seed in range(N) for row in estimates_of(feed, seed)]
    table = pl.DataFrame(rows, schema=["what", "estimator", "reward", "value", "low", "high"], orient="row")
    table = table.filter((pl.col("what") == "value") & (pl.col("reward") == "reward"))
    found = {}
    for (name,), part in table.group_by(["estimator"], maintain_order=True):
        value = part["value"].to_numpy() / truth - 1
        found[str(name)] = (float(value.mean()), float(value.std(ddof=1) / math.sqrt(N)))
    return found


def test_unclipped_estimates_are_on_target_where_all_assumptions_hold() -> None:
    found = errors(SMALL)
    for name in ("ips", "snips", "doubly-robust"):
        mean, error = found[name]
        assert abs(mean) <= 3 * error
    assert found["ips, clip 8"][0] <= found["ips"][0]
    assert found["dcg-raw"][0] < -0.3  # raw labels count what was hardly seen as if nobody liked it


def test_items_that_are_never_retrieved_are_missing_from_ips() -> None:
    mean, error = errors(
        FeedSettings(
            kinds=20, items=80, pool=10, candidates=7, length=6, sessions=800, broken=frozenset({Broken.TRUNCATION})
        )
    )["ips"]
    assert mean < -5 * error


@pytest.mark.slow
def test_intervals_cover_in_93_to_97_percent_of_2000_logs() -> None:
    found = coverage()
    for each in found:
        if each["estimator"] in ("ips", "snips", "doubly-robust"):
            assert each["logs"] == COVERAGE_LOGS == 2000
            assert 0.93 <= each["coverage"] <= 0.97
            assert abs(each["bias"]) <= max(3 * each["bias_error"], 0.005 * abs(each["truth"]))
    assert np.isfinite([each["rmse"] for each in found]).all()
