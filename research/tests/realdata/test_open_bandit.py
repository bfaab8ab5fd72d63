"""The Open Bandit sample with item-choice propensities, from each policy's log to the other policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from realdata import folder_of
from truerank.core.log import Log
from truerank.datasets.open_bandit import CAMPAIGNS, OpenBandit
from truerank.estimators.weighted import IPS
from truerank.evaluation.impressions import off_policy
from truerank.exposure.policies.targets import ExposureColumn

pytestmark = pytest.mark.realdata


def sample_of(folder: Path) -> dict[str, pl.DataFrame]:
    """Impressions by policy and campaign, as they were published."""
    return {name: impressions(log) for name, log in OpenBandit().load(folder).items()}


def impressions(log: Log) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "item": log.item,
            "position": np.asarray(log.position),
            "propensity": np.asarray(log.propensity),
            "click": log.label.astype(np.int8),
        }
    )


def directions(logs: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
    """One row for each campaign, direction and estimator; `warnings` has what was said of the estimate."""
    return [
        row
        for campaign in CAMPAIGNS
        for source, target in (("random", "bts"), ("bts", "random"))
        for row in one_direction(logs[f"{source} {campaign}"], logs[f"{target} {campaign}"], campaign, source, target)
    ]


def one_direction(
    table: pl.DataFrame, other: pl.DataFrame, campaign: str, source: str, target: str
) -> list[dict[str, Any]]:
    if target == "random":
        table = table.with_columns(target_propensity=pl.lit(1 / CAMPAIGNS[campaign]))
    else:
        table = table.join(thompson(other), on=["item", "position"], how="left", maintain_order="left")
        # what the Thompson policy's log never shows, it is taken never to show
        table = table.with_columns(pl.col("target_propensity", "frequency").fill_null(0.0))
    targets = {target: ExposureColumn("target_propensity")}
    if target != "random":
        targets[f"{target} by frequency"] = ExposureColumn("frequency")
    found = off_policy(table, targets, rewards=["click"])
    (own,) = off_policy(other, {target: ExposureColumn("propensity")}, rewards=["click"], estimators=[IPS()]).estimates
    return [
        {
            "campaign": campaign,
            "target": each.model,
            "log": source,
            "clicks": int(table["click"].sum()),
            "estimator": each.estimator,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "own": own.value,
            "own low": own.low,
            "own high": own.high,
            "effective rows": each.ess,
            "warnings": list(each.warning_texts),
        }
        for each in found.estimates
    ]


def thompson(own: pl.DataFrame) -> pl.DataFrame:
    """What the Thompson policy gives each item at each position, in two ways, from its own log.

    The mean of its propensities is over impressions of the item, hence leans to moments at which it was likely, and the
    means of all items sum to more than 1. The share of the impressions at a position that show the item does not.
    """
    size = own.group_by("position").agg(size=pl.len())
    found = own.group_by(["item", "position"]).agg(target_propensity=pl.col("propensity").mean(), shown=pl.len())
    found = found.join(size, on="position", maintain_order="left").with_columns(
        frequency=pl.col("shown") / pl.col("size")
    )
    return found.select("item", "position", "target_propensity", "frequency")


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
            assert any("more than is possible" in each for each in row["warnings"])
        if row["target"] == "bts by frequency":
            assert not any("more than is possible" in each for each in row["warnings"])
