"""Off-policy estimates against the truth: of feeds with and without a violated assumption."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.estimators.discounted import LearntDiscountRaw
from truerank.estimators.doubly_robust import RankedDoublyRobust
from truerank.estimators.impressions import Limited
from truerank.estimators.weighted import IPS, SNIPS
from truerank.evaluation.impressions import off_policy
from truerank.exposure.policies.targets import RankColumn
from truerank.simulation.feed import REWARDS, Broken, Feed, FeedSettings, make_feed
from truerank.simulation.feed_truth import TRUE_SESSIONS, draw_log, log_table, target_table, truth_of
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

PAPER = Limited.INVERSE  # what clips limit in the paper, and in this study
CLIP = 8.0
AT_ONCE = 25  # logs that are drawn and kept together
TRUE_OF = ("logging", "better")


@cache
def feed_of(settings: FeedSettings, seed: int) -> Feed:
    """A feed, made once in a process."""
    return make_feed(settings, seed=seed)


# --------------------------------------------------------------------------------------------------------- one log


def estimates_of(feed: Feed, seed: int) -> pl.DataFrame:
    """What one log says: values of the policy `better`, and differences to the log without a clip."""
    log = draw_log(feed, seed=seed)
    found = off_policy(
        log_table(feed, log),
        {"better": target_table(feed, log, "better"), "log": RankColumn("position")},
        rewards=list(REWARDS),
        clips=(CLIP, math.inf),
        estimators=[IPS(of=PAPER), SNIPS(of=PAPER), RankedDoublyRobust(of=PAPER), LearntDiscountRaw()],
        baseline="log",
        threads=1,
    )
    values = [
        ("value", each.estimator, each.clip, each.reward, each.value, each.low, each.high)
        for each in found.estimates
        if each.model == "better"
    ]
    differences = [
        ("difference", each.estimator, each.clip, str(each.reward), each.difference, each.low, each.high)
        for each in found.comparisons
        if each.clip is None
    ]
    return _frame(values + differences, what=pl.String, estimator=pl.String, clip=pl.Float64, reward=pl.String)


def _frame(rows: Sequence[tuple[Any, ...]], **columns: type[pl.DataType]) -> pl.DataFrame:
    ends: dict[str, type[pl.DataType]] = dict.fromkeys(("value", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema=columns | ends, orient="row")


# ----------------------------------------------------------------------------------------------------------- pieces


def read_logs(settings: FeedSettings, seed: int, first: int, last: int) -> pl.DataFrame:
    """The estimates from some logs of a feed; users and their contexts are drawn anew in each."""
    feed = feed_of(settings, seed)
    return pl.concat([estimates_of(feed, log) for log in range(first, last)])


def true_rewards(settings: FeedSettings, seed: int, sessions: int) -> pl.DataFrame:
    """What every policy truly earns; simulated where a switch is on."""
    feed = feed_of(settings, seed)
    return pl.DataFrame(
        [
            {"policy": policy, "reward": name, "truth": reward.value}
            for policy in TRUE_OF
            for name, reward in truth_of(feed, policy, sessions=sessions).items()
        ]
    )


@dataclass(frozen=True, slots=True)
class ManyLogs:
    """Logs of a feed; `true_sessions` are simulated for a truth that is not exact."""

    name: str
    settings: FeedSettings
    seed: int
    n: int
    true_sessions: int

    def draw(self, run: Run) -> tuple[pl.DataFrame, dict[tuple[str, str], float]]:
        """What all logs say, and the truth by policy and reward."""
        about, feed = f"drawing logs ({self.name})", (self.settings, self.seed)
        (truth,) = run.pieces(true_rewards, [(*feed, self.true_sessions)], about=about)
        starts = range(0, self.n, AT_ONCE)
        arguments = [(*feed, first, min(first + AT_ONCE, self.n)) for first in starts]
        parts = run.pieces(read_logs, arguments, about=about)
        return pl.concat(parts), {(policy, reward): value for policy, reward, value in truth.rows()}


# ----------------------------------------------------------------------------------------------------------- figures


def figures(value: Floats, low: Floats, high: Floats, truth: float) -> dict[str, float]:
    """Bias and its Monte-Carlo error in parts of the truth, RMSE, and how often the interval holds the truth."""
    return {
        "relative bias": float(value.mean() - truth) / truth,
        "relative noise": float(value.std(ddof=1)) / math.sqrt(len(value)) / abs(truth),
        "rmse": float(np.sqrt(((value - truth) ** 2).mean())),
        "coverage": float(((low <= truth) & (truth <= high)).mean()),
    }


def many_logs(logs: ManyLogs, run: Run) -> Iterator[dict[str, Any]]:
    """Bias, error and coverage of every estimate over many logs."""
    table, truth = logs.draw(run)
    by = ["what", "estimator", "clip", "reward"]
    for (what, estimator, clip, reward), part in table.group_by(by, maintain_order=True):
        true = truth["better", str(reward)] - (truth["logging", str(reward)] if what == "difference" else 0.0)
        yield {
            "what": what,
            "estimator": estimator,
            "clip": clip,
            "reward": reward,
            "truth": true,
            **figures(*_ends(part), true),
        }


def _ends(part: pl.DataFrame) -> tuple[Floats, Floats, Floats]:
    return part["value"].to_numpy(), part["low"].to_numpy(), part["high"].to_numpy()


SWITCHED = ("broken", "estimator", "clip", "reward", "relative bias", "relative rmse", "coverage")


@dataclass(frozen=True, slots=True)
class FeedStudySize:
    """How many logs of which feed."""

    feed: FeedSettings
    logs: int
    switched: int
    true_sessions: int


FULL = FeedStudySize(FeedSettings(), 2000, 300, TRUE_SESSIONS)
QUICK = FeedStudySize(FeedSettings(kinds=8, items=40, pool=8, candidates=6, length=5, sessions=150), 3, 2, 2000)


def measure(run: Run) -> Measured:
    """What off-policy estimates are worth; the seed is that of the feed, logs have the seeds 0, 1, 2, ..."""
    asked, seed = FULL if run.full else QUICK, run.seed
    return Measured(
        {
            "coverage": list(many_logs(_logs("every assumption", asked.feed, asked.logs, asked, seed), run)),
            "switches": list(_switched(asked, seed, run)),
        },
        {
            "logs": asked.logs, "switched logs": asked.switched, "length": asked.feed.length, "sessions": asked.feed.sessions,
        },
    )  # fmt: skip


def _logs(of: str, feed: FeedSettings, n: int, asked: FeedStudySize, seed: int) -> ManyLogs:
    return ManyLogs(of, feed, seed, n, asked.true_sessions)


def _switched(asked: FeedStudySize, seed: int, run: Run) -> Iterator[dict[str, Any]]:
    for name in ("none", *Broken):
        feed = replace(asked.feed, broken=frozenset() if name == "none" else frozenset({Broken(name)}))
        for row in many_logs(_logs(f"broken {name}", feed, asked.switched, asked, seed), run):
            if row["what"] == "value":
                row |= {"broken": str(name), "relative rmse": row["rmse"] / row["truth"]}
                yield {column: row[column] for column in SWITCHED}


STUDIES = (
    Study(
        "offpolicy", "How accurate are off-policy estimates, and which violated assumptions bias them?",
        measure, minutes=10,
    ),
)  # fmt: skip
