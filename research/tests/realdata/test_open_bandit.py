"""The Open Bandit sample with item-choice propensities, from each policy's log to the other policy."""

from __future__ import annotations

import pytest

from realdata import folder_of
from truerank_research.validation.offpolicy.study import directions, sample_of

pytestmark = pytest.mark.realdata


def test_each_log_tells_of_the_other_policy() -> None:
    rows = directions(sample_of(folder_of("open_bandit_sample")))
    assert len(rows) == 3 * (2 * 2 + 2)
    assert {row["clicks"] for row in rows} == {38, 42, 46, 69}
    for row in rows:
        # 40 to 70 clicks decide little: the interval of a fair estimate overlaps the other side's own
        if row["target"] != "bts" or row["estimator"] == "snips":
            assert row["low"] <= row["own high"]
            assert row["own low"] <= row["high"]
    for row in rows:
        if row["target"] == "bts":
            # means of logged propensities sum to more than 1 over the items, and that is said
            assert any("more than can be" in each for each in row["warnings"])
        if row["target"] == "bts by frequency":
            assert not any("more than can be" in each for each in row["warnings"])


def test_one_campaign_hangs_on_two_rows() -> None:
    rows = directions(sample_of(folder_of("open_bandit_sample")))
    women = [row for row in rows if row["campaign"] == "women" and row["target"] == "random"]
    for row in women:
        assert row["effective rows"] < 3
        assert any("one row carries" in each for each in row["warnings"])
