"""Off-policy estimates against the truth: of feeds with and without a violated assumption, and of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.chance import generator
from truerank.core.log import Log
from truerank.data.datasets.open_bandit import CAMPAIGNS, POLICIES, SAMPLE, OpenBandit
from truerank.estimators.ranked.ips import RankedIPS
from truerank.evaluation.ranked import off_policy
from truerank.exposure.policies.targets import ExposureColumn
from truerank.studies.feed import Broken, FeedSettings, Surface
from truerank.studies.feed_truth import TRUE_SESSIONS
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.offpolicy.logs import ManyLogs, chosen_clips, many_logs

PLACES, MOMENTS, RATE = 3, 4, 0.005  # of a made sample: positions, changes of the Thompson policy, clicks


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


def made_sample(seed: int, *, rows: int = SAMPLE) -> dict[str, pl.DataFrame]:
    """A sample of the same shape: one policy shows all items alike, the other prefers some and changes its mind."""
    found = {}
    for campaign, items in CAMPAIGNS.items():
        rng = generator(seed, f"open bandit {campaign}")
        clicked = RATE * rng.gamma(1.0, size=items)
        for policy in POLICIES:
            liked = np.zeros((MOMENTS, items)) if policy == "random" else rng.normal(size=(MOMENTS, items))
            chance = np.exp(liked) / np.exp(liked).sum(axis=1, keepdims=True)
            moment = np.arange(rows) * MOMENTS // rows
            item = np.concatenate([rng.choice(items, int((moment == at).sum()), p=chance[at]) for at in range(MOMENTS)])
            found[f"{policy} {campaign}"] = pl.DataFrame(
                {
                    "item": item,
                    "position": rng.integers(1, PLACES + 1, rows),
                    "propensity": chance[moment, item],
                    "click": (rng.random(rows) < clicked[item]).astype(np.int8),
                }
            )
    return found


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
    (own,) = off_policy(
        other, {target: ExposureColumn("propensity")}, rewards=["click"], estimators=[RankedIPS()]
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


STEEP = (Surface("second", "exp:0.5", 1.0),)
SWITCHED = ("broken", "estimator", "clip", "reward", "relative bias", "relative rmse", "coverage")


@dataclass(frozen=True, slots=True)
class FeedStudySize:
    """How many logs of which feed."""

    feed: FeedSettings
    logs: int
    switched: int
    chosen: int
    chosen_sessions: int
    true_sessions: int
    impressions: int  # of a made sample


FULL = FeedStudySize(FeedSettings(), 2000, 300, 200, 600, TRUE_SESSIONS, 10_000)
QUICK = FeedStudySize(
    FeedSettings(kinds=8, items=40, pool=8, candidates=6, length=5, sessions=150), 3, 2, 2, 100, 2000, 1500
)


def measure(run: Run) -> Measured:
    """What off-policy estimates are worth; the seed is that of the feed, logs have the seeds 0, 1, 2, ..."""
    source, full, seed = run.source, run.full, run.seed
    asked = FULL if full else QUICK
    made = source.is_synthetic
    # first: a folder without the data is refused at once
    logs = made_sample(seed, rows=asked.impressions) if made else sample_of(source.path("open-bandit"))
    return Measured(
        {
            "coverage": list(many_logs(_logs("every assumption", asked.feed, asked.logs, asked, seed), run)),
            "switches": list(_switched(asked, seed, run)),
            "chosen clip": list(_chosen(asked, seed, run)),
            "open bandit": [
                {name: value for name, value in row.items() if name != "warnings"} for row in directions(logs)
            ],
        },
        {
            "logs": asked.logs, "switched logs": asked.switched, "chosen logs": asked.chosen,
            "chosen sessions": asked.chosen_sessions,
            "kinds": asked.feed.kinds, "pool": asked.feed.pool, "candidates": asked.feed.candidates,
            "length": asked.feed.length, "sessions": asked.feed.sessions, "users": asked.feed.n_users,
            "impressions": max(each.height for each in logs.values()),
        },
    )  # fmt: skip


def _logs(of: str, feed: FeedSettings, n: int, asked: FeedStudySize, seed: int) -> ManyLogs:
    return ManyLogs(of, "estimates", feed, seed, n, asked.true_sessions)


def _switched(asked: FeedStudySize, seed: int, run: Run) -> Iterator[dict[str, Any]]:
    for name in ("none", *Broken):
        feed = replace(asked.feed, broken=frozenset() if name == "none" else frozenset({Broken(name)}))
        for row in many_logs(_logs(f"broken {name}", feed, asked.switched, asked, seed), run):
            if row["what"] == "value":
                row |= {"broken": str(name), "relative rmse": row["rmse"] / row["truth"]}
                yield {column: row[column] for column in SWITCHED}


def _chosen(asked: FeedStudySize, seed: int, run: Run) -> Iterator[dict[str, Any]]:
    feed = replace(asked.feed, sessions=asked.chosen_sessions)
    for name, each in (("default", feed), ("steep", replace(feed, surfaces=STEEP))):
        yield from chosen_clips(ManyLogs(name, "chosen clip", each, seed, asked.chosen, asked.true_sessions), run)


STUDIES = (
    Study(
        "offpolicy", "How accurate are off-policy estimates, and which violated assumptions bias them?",
        measure, data=("open-bandit",), minutes=10,
    ),
)  # fmt: skip
