"""The demo's feed: what other rankers would earn, estimated from the log of the deployed one, beside the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from truerank.estimators.ranked.ips import RankedIPS
from truerank.estimators.ranked.naive import LearntDiscountRaw
from truerank.estimators.ranked.snips import RankedSNIPS
from truerank.evaluation.ranked import off_policy
from truerank.studies.feed import FeedSettings
from truerank.studies.feed_truth import write_feed

SETTINGS = FeedSettings(sessions=4000)
TARGETS = ("better", "worse")
WHY = {
    "dcg-raw": "counts clicks by the new rank alone, on a scale of its own: what the old ranker buried had no chance "
    "to be clicked",
    "ips": "each click counts by how much likelier the new ranker shows the item than the old one did",
    "snips": "the same as a ratio: chance in how much exposure the log happens to carry cancels",
}

Say = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Earned:
    """The reward per session of a policy: the truth, and what each estimator says with its interval."""

    policy: str
    truth: float
    found: dict[str, tuple[float, float, float]]


def earned(folder: Path, *, seed: int, say: Say | None = None) -> list[Earned]:
    """Write a feed to a folder and estimate from its log what the other policies earn."""
    paths = write_feed(SETTINGS, folder, seed=seed, say=say)
    results = off_policy(
        paths["log"],
        {name: paths[name] for name in TARGETS},
        estimators=[LearntDiscountRaw(), RankedIPS(), RankedSNIPS()],
        rewards=["reward"],
    )
    known = msgspec.json.decode(paths["truth"].read_bytes())["truth"]
    truth = {each["policy"]: each["value"] for each in known if each["reward"] == "reward"}
    return [
        Earned(
            name,
            truth[name],
            {each.estimator: (each.value, each.low, each.high) for each in results.estimates if each.model == name},
        )
        for name in TARGETS
    ]
