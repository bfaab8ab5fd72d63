"""Days of a feed: daily estimates against daily online reward, and what is found of improvements at each clip."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.estimators.ranked import RankedEstimator
from truerank.estimators.ranked.ips import RankedIPS
from truerank.estimators.ranked.naive import LearntDiscountRaw, LogDiscountDebiased, LogDiscountRaw
from truerank.estimators.ranked.normalised import RankedNDCG
from truerank.evaluation.ranked import off_policy
from truerank.exposure.policies.targets import RankColumn
from truerank.exposure.positions.fits import Depths, fit_depths
from truerank.studies.feed import REWARDS, Feed, FeedSettings
from truerank.studies.feed_truth import Sessions, draw_sessions
from truerank.uncertainty.agreement import correlation, sensitivity_curve
from truerank.uncertainty.clipping import GRID
from truerank_research.validation.offpolicy.logs import PAPER, feed_of

CORRELATED = ("dcg-log-raw", "dcg-log-debiased", "dcg-raw", "ips", "ndcg")
COMPARED = ("ips", "ndcg")
POLICIES = ("logging", "better")
OLD_AND_NEW = {"logging": RankColumn("old"), "better": RankColumn("new")}
FAMILY = {"first": "yule", "second": "exp"}  # of scroll depths, by surface


@dataclass(frozen=True, slots=True)
class ReorderedLists:
    """Displayed lists [sessions x ranks] in the order of the logging policy, and how `better` would order each."""

    drawn: Sessions
    reordered: Ints  # places of the pool, best first
    rank: Ints  # the new rank of what stood at each rank


def lists_of(feed: Feed, *, n: int, seed: int) -> ReorderedLists:
    drawn = draw_sessions(feed, policies=(0,), n=n, seed=seed)
    score = np.take_along_axis(feed.weight[feed.policy("better")][drawn.kind], drawn.place, axis=1)
    order = np.argsort(-score, axis=1, kind="stable")
    return ReorderedLists(drawn, np.take_along_axis(drawn.place, order, axis=1), np.argsort(order, axis=1) + 1)


def views_and_quality(feed: Feed, lists: ReorderedLists, place: Ints) -> tuple[Floats, Floats]:
    drawn = lists.drawn
    view = feed.view[drawn.kind, drawn.day, drawn.surface]
    return view, feed.quality()[drawn.kind[:, None], drawn.day[:, None], place]


def online(feed: Feed, lists: ReorderedLists, policy: str) -> dict[str, list[float]]:
    """The mean reward per session of each day: as drawn, or with lists in their new order and users drawn again."""
    drawn = lists.drawn
    earned = drawn.reward.sum(axis=1).astype(np.float64)
    if policy == "better":
        view, quality = views_and_quality(feed, lists, lists.reordered)
        rng = np.random.default_rng(feed.seed)
        viewed = rng.random((len(drawn), 1)) < view
        earned = ((rng.random(quality.shape) < quality) & viewed[:, :, None]).sum(axis=1).astype(np.float64)
    return {
        reward: [float(earned[drawn.day == day, c].mean()) for day in range(feed.settings.days)]
        for c, reward in enumerate(REWARDS)
    }


def day_log(lists: ReorderedLists, day: int) -> pl.DataFrame:
    """The viewed items of one day with their positions (old) and new ranks, as in eq. 9."""
    drawn = lists.drawn
    session, at = np.nonzero(drawn.viewed & (drawn.day == day)[:, None])
    return pl.DataFrame(
        {
            "session": session,
            "user": drawn.user[session],
            "item": drawn.place[session, at],
            "position": at + 1,
            "old": at + 1,
            "new": lists.rank[session, at],
            **{reward: drawn.reward[session, at, c].astype(np.int8) for c, reward in enumerate(REWARDS)},
        }
    )


def learnt(table: pl.DataFrame, settings: FeedSettings) -> Any:
    """The position model that the day's own scroll depths give."""
    depth = table.group_by("session").agg(pl.col("position").max())["position"].to_numpy()
    (surface,) = settings.surfaces
    return fit_depths(FAMILY[surface.name], Depths.of(depth, censored=depth >= settings.length)).model


@dataclass(frozen=True, slots=True)
class DailyCorrelations:
    """A piece: the correlation over days of each offline form with the reward that fresh sessions of a policy earn."""

    settings: FeedSettings
    seed: int
    sessions: int

    @property
    def name(self) -> str:
        return f"correlations {self.seed}"

    def table(self) -> pl.DataFrame:
        feed = feed_of(self.settings, self.seed)
        lists, fresh = (lists_of(feed, n=self.sessions, seed=each) for each in (1, 2))
        truth = {policy: online(feed, fresh, policy) for policy in POLICIES}
        forms: list[RankedEstimator] = [LogDiscountRaw(), LogDiscountDebiased(), LearntDiscountRaw()]
        forms += [RankedIPS(), RankedNDCG()]
        offline: dict[tuple[str, str, str], list[float]] = {}
        for day in range(self.settings.days):
            table = day_log(lists, day)
            found = off_policy(
                table,
                OLD_AND_NEW,
                position=learnt(table, self.settings),
                estimators=forms,
                rewards=list(REWARDS),
                threads=1,
            )
            for each in found.estimates:
                offline.setdefault((each.estimator, each.model, each.reward), []).append(each.value)
        return pl.DataFrame(
            [
                {"reward": reward, "policy": policy, "estimator": name, "r": found.r, "p": found.p}
                for reward in REWARDS
                for policy in POLICIES
                for name in CORRELATED
                for found in [correlation(offline[name, policy, reward], truth[policy][reward])]
            ]
        )


def correlations(feeds: Sequence[pl.DataFrame]) -> list[dict[str, Any]]:
    """Pearson's r over days: the mean over feeds, and the share of feeds with p < 0.05."""
    by = pl.concat(feeds).group_by("reward", "policy", "estimator", maintain_order=True)
    return by.agg(pl.col("r").mean(), shown=(pl.col("p") < 0.05).mean()).to_dicts()


@dataclass(frozen=True, slots=True)
class DailyImprovements:
    """A piece: differences better - logging on every day, for each reward, form and clip, and the true ones."""

    settings: FeedSettings
    seed: int
    sessions: int

    @property
    def name(self) -> str:
        return f"improvements {self.seed}"

    def table(self) -> pl.DataFrame:
        feed = feed_of(self.settings, self.seed)
        lists = lists_of(feed, n=self.sessions, seed=1)
        view, new = views_and_quality(feed, lists, lists.reordered)
        _, old = views_and_quality(feed, lists, lists.drawn.place)
        gain = np.einsum("sr,src->sc", view, new - old)
        rows = []
        for day in range(self.settings.days):
            table = day_log(lists, day)
            results = off_policy(
                table,
                OLD_AND_NEW,
                position=learnt(table, self.settings),
                clips=GRID,
                estimators=[RankedIPS(of=PAPER), RankedNDCG(of=PAPER)],
                rewards=list(REWARDS),
                baseline="logging",
                threads=1,
            )
            true = {name: float(gain[lists.drawn.day == day, c].mean()) for c, name in enumerate(REWARDS)}
            rows += [
                {
                    "form": each.estimator,
                    "clip": math.inf if each.clip is None else each.clip,
                    "difference": each.difference,
                    "stderr": each.stderr,
                    "true": true[str(each.reward)],
                }
                for each in results.comparisons
            ]
        return pl.DataFrame(rows)


def clip_curves(feeds: Sequence[pl.DataFrame]) -> Iterator[dict[str, Any]]:
    """What is found of the improvements at every clip: above 0 at 99 %, the mean one-sided p, the right sign."""
    table = pl.concat(feeds)
    for form in COMPARED:
        own = table.filter(pl.col("form") == form)
        cells = [own.filter(pl.col("clip") == clip) for clip in GRID]
        difference, error = (np.array([each[name] for each in cells]) for name in ("difference", "stderr"))
        for point in sensitivity_curve(GRID, difference, error):
            yield {
                "form": form,
                "clip": None if math.isinf(point.clip) else point.clip,
                "found": point.true_positive_rate,
                "p": point.mean_p,
                "right sign": point.sign_agreement,
            }


def improvements(feeds: Sequence[pl.DataFrame]) -> Floats:
    """The true difference of every cell: feeds x days x rewards."""
    table = pl.concat(feeds)
    one = table.filter((pl.col("form") == COMPARED[0]) & pl.col("clip").is_infinite())
    return one["true"].to_numpy()
