"""Off-policy estimates against the truth: of feeds with and without a broken assumption, of days, and of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from truerank.core.progress import Progress
from truerank.studies.feed import Broken, FeedSettings, Surface
from truerank.studies.feed_truth import TRUE_SESSIONS
from truerank.studies.own.offpolicy.days import (
    DailyCorrelations,
    DailyImprovements,
    clip_curves,
    correlations,
    improvements,
)
from truerank.studies.own.offpolicy.logs import ManyLogs, choices, chosen_clips, many_logs
from truerank.studies.own.offpolicy.sample import directions, made_sample, sample_of
from truerank.studies.own.study import Row, StudyTables
from truerank.studies.work import Keep, StudySize, StudySource

FIRST, SECOND = (Surface("first", "yule:0.7", 1.0),), (Surface("second", "exp:0.5", 1.0),)
SWITCHED = ("broken", "estimator", "clip", "reward", "relative bias", "relative rmse", "coverage")
DIFFERENT = ("broken", "estimator", "reward", "truth", "relative bias", "coverage")
TOLD = ("ips", "snips")  # whose differences are told where an assumption fails


@dataclass(frozen=True, slots=True)
class FeedStudySize:
    """How many logs of which feed."""

    feed: FeedSettings
    logs: int
    switched: int
    chosen: int
    chosen_sessions: int
    feeds: int
    sessions: int  # of the days of a feed
    true_sessions: int
    impressions: int  # of a made sample


FULL = FeedStudySize(FeedSettings(), 2000, 300, 200, 600, 20, 12_000, TRUE_SESSIONS, 10_000)
QUICK = FeedStudySize(
    FeedSettings(kinds=8, items=40, pool=8, candidates=6, length=5, sessions=150), 3, 2, 2, 100, 2, 900, 2000, 1500
)


@dataclass(frozen=True, slots=True)
class OffPolicyStudy:
    """What off-policy estimates are worth; the seed is that of the feed, logs have the seeds 0, 1, 2, ..."""

    name: ClassVar[str] = "offpolicy"
    about: ClassVar[str] = "What are off-policy estimates worth, and what breaks them, where the truth is known?"
    data: ClassVar[tuple[str, ...]] = ("open-bandit",)
    minutes: ClassVar[float] = 10.0

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> StudyTables:
        del progress
        asked = FULL if size is StudySize.FULL else QUICK
        made = source.is_synthetic
        # first: a folder without the data is refused at once
        logs = made_sample(seed, rows=asked.impressions) if made else sample_of(source.place(self.data[0]))
        feeds = range(seed, seed + asked.feeds)
        first, second = (replace(asked.feed, surfaces=surfaces) for surfaces in (FIRST, SECOND))
        switched = list(_switched(asked, seed, keep))
        chosen = list(_chosen(asked, seed, keep))
        days = keep([DailyCorrelations(first, each, asked.sessions) for each in feeds], about="drawing days")
        cells = keep([DailyImprovements(second, each, asked.sessions) for each in feeds], about="comparing days")
        true = improvements(cells)
        return StudyTables(
            {
                "coverage": list(many_logs(_logs("every assumption", asked.feed, asked.logs, asked, seed), keep)),
                "switches": _picked((row for row in switched if row["what"] == "value"), SWITCHED),
                "switched differences": _picked(
                    (row for row in switched if row["what"] == "difference" and row["estimator"] in TOLD), DIFFERENT
                ),
                "correlations": correlations(days),
                "clips": list(clip_curves(cells)),
                "chosen clip": chosen,
                "choice": list(choices(chosen)),
                "open bandit": [
                    {name: value for name, value in row.items() if name != "warnings"} for row in directions(logs)
                ],
            },
            {
                "logs": asked.logs, "switched logs": asked.switched, "chosen logs": asked.chosen,
                "chosen sessions": asked.chosen_sessions, "feeds": asked.feeds, "sessions of days": asked.sessions,
                "sessions of a day": asked.sessions // asked.feed.days,
                "kinds": asked.feed.kinds, "pool": asked.feed.pool, "candidates": asked.feed.candidates,
                "length": asked.feed.length, "sessions": asked.feed.sessions, "users": asked.feed.n_users,
                "cells": len(true), "improvements": float((true > 0).mean()),
                "impressions": max(each.height for each in logs.values()),
            },
        )  # fmt: skip


def _logs(of: str, feed: FeedSettings, n: int, asked: FeedStudySize, seed: int) -> ManyLogs:
    return ManyLogs(of, "estimates", feed, seed, n, asked.true_sessions)


def _switched(asked: FeedStudySize, seed: int, keep: Keep) -> Iterator[dict[str, Any]]:
    for name in ("none", *Broken):
        feed = replace(asked.feed, broken=frozenset() if name == "none" else frozenset({Broken(name)}))
        for row in many_logs(_logs(f"broken {name}", feed, asked.switched, asked, seed), keep):
            yield {"broken": str(name), **row, "relative rmse": row["rmse"] / row["truth"]}


def _chosen(asked: FeedStudySize, seed: int, keep: Keep) -> Iterator[dict[str, Any]]:
    feed = replace(asked.feed, sessions=asked.chosen_sessions)
    for name, each in (("default", feed), ("steep", replace(feed, surfaces=SECOND))):
        yield from chosen_clips(ManyLogs(name, "chosen clip", each, seed, asked.chosen, asked.true_sessions), keep)


def _picked(rows: Iterator[dict[str, Any]], columns: Sequence[str]) -> list[Row]:
    return [{name: row[name] for name in columns} for row in rows]
