"""The Open Bandit sample: from the log of one policy to the other, and beside it what the other's own log says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank.core.log import Log
from truerank.data.datasets.open_bandit import CAMPAIGNS, OpenBandit
from truerank.estimators.ranked.ips import RankedIPS
from truerank.exposure.policies.targets import ExposureColumn


def open_bandit_rows(folder: Path) -> list[dict[str, Any]]:
    """One row for each campaign, direction and estimator."""
    logs = OpenBandit().load(folder)
    return [
        row
        for campaign in CAMPAIGNS
        for source, target in (("random", "bts"), ("bts", "random"))
        for row in one_direction(logs[f"{source} {campaign}"], logs[f"{target} {campaign}"], campaign, source, target)
    ]


def one_direction(log: Log, other: Log, campaign: str, source: str, target: str) -> list[dict[str, Any]]:
    table = impressions(log)
    if target == "random":
        table = table.with_columns(target_propensity=pl.lit(1 / CAMPAIGNS[campaign]))
    else:
        table = table.join(thompson(impressions(other)), on=["item", "position"], how="left", maintain_order="left")
        # what the Thompson policy's log never shows, it is taken never to show
        table = table.with_columns(pl.col("target_propensity", "frequency").fill_null(0.0))
    targets = {target: ExposureColumn("target_propensity")}
    if target != "random":
        targets[f"{target} by frequency"] = ExposureColumn("frequency")
    found = tr.off_policy(table, targets, rewards=["click"])
    (own,) = tr.off_policy(
        impressions(other), {target: ExposureColumn("propensity")}, rewards=["click"], estimators=[RankedIPS()]
    ).estimates
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
            "ess": each.ess,
            "own": own.value,
            "own_low": own.low,
            "own_high": own.high,
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


def impressions(log: Log) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "item": log.item,
            "position": np.asarray(log.position),
            "propensity": np.asarray(log.propensity),
            "click": log.label.astype(np.int8),
        }
    )
