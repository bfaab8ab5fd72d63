"""Off-policy estimates against the truth: of feeds with and without a violated assumption, and of a sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from truerank.studies.feed import Broken, FeedSettings, Surface
from truerank.studies.feed_truth import TRUE_SESSIONS
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.offpolicy.logs import ManyLogs, chosen_clips, many_logs
from truerank_research.validation.offpolicy.sample import directions, made_sample, sample_of

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
