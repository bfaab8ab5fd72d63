"""A simulated platform: a week of long, uneven sessions with four rewards, logged by one ranker, re-ranked by another.

A session has a list of `length` items. Item a has appeal z ~ N(0, 1); reward c of a viewed item has probability
logistic(base_c + slope_c z + u + mood of the day), u ~ N(0, `users`²). The logging ranker orders the list by a score
that correlates with z (`old`), the new one by a better score (`new`). Users view the list from the top down to a depth
D with P(D >= r) of the Yule-Simon law (1st level of the paper's feed) or γ^(r - 1) (2nd level), whose log ρ or logit γ
differs by user (`patience`) and day (`lengths`). All assumptions of paper 3 hold; the position model is estimated.

What the new ranker's ranks are is not stated: among all candidates, or among the viewed items, which alone are logged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.rng import generator
from truerank.exposure.positions.depths import FAMILIES, Depths, fit_depths

# base and slope on the logit scale: two explicit rewards, which are rare, and two implicit ones
REWARDS = {"share": (-5.0, 1.2), "like": (-3.5, 1.2), "long view": (-1.5, 0.8), "complete": (-0.4, 0.8)}
OLD, NEW = "R0", "Rt"
CANDIDATES, VIEWED = READINGS = ("among all candidates", "among viewed items")
FORMS = ("DCG log, C", "DCG log, Q̂", "DCG pbm, C", "DCG pbm, Q̂", "nDCG pbm, Q̂")


@dataclass(frozen=True, slots=True)
class Platform:
    """One level of a feed, and how its days and users differ."""

    family: str = "yule"
    rate: float = 1.2  # ρ: the smaller, the longer and more uneven sessions are; or γ
    length: int = 20
    clip: float = math.inf  # the largest 1 / ε0
    days: int = 6
    sessions: int = 800  # a day
    lengths: float = 0.3
    moods: float = 0.3
    patience: float = 0.3
    users: float = 0.5
    old: float = 0.4
    new: float = 0.8


LEVELS = {"1st level": Platform(), "2nd level": Platform("exp", 0.95, length=200, clip=200.0)}


class Logged(NamedTuple):
    """The viewed items [rows]: session, position from 0, ranks under the new ranker by reading, rewards."""

    session: Ints
    item: Ints
    rank: dict[str, Ints]
    reward: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Week:
    """Sessions [sessions] with lists [sessions x ranks] in the order of the logging ranker."""

    platform: Platform
    day: Ints
    rank: Ints  # that the new ranker gives each item
    view: Floats  # P(V | rank) of the session
    viewed: Bools
    quality: Floats  # [sessions x ranks x rewards]
    reward: Bools

    def online(self, policy: str) -> Floats:
        """Expected reward of a policy per session on each day [days x rewards]."""
        view = self.view if policy == OLD else np.take_along_axis(self.view, self.rank - 1, axis=1)
        return self.by_day(np.einsum("sr,src->sc", view, self.quality))

    def by_day(self, values: Floats) -> Floats:
        """Means over the sessions of each day, without those that have no value."""
        parts = [values[self.day == day] for day in range(self.platform.days)]
        with np.errstate(invalid="ignore"):
            return np.stack([np.nansum(part, axis=0) / np.isfinite(part).sum(axis=0) for part in parts])

    def logged(self) -> Logged:
        session, item = np.nonzero(self.viewed)
        order = np.lexsort((self.rank[session, item], session))
        first = np.concatenate([[0], np.cumsum(self.viewed.sum(axis=1))])
        within = np.empty(len(session), dtype=np.int64)
        within[order] = np.arange(len(session)) - first[session[order]] + 1
        ranks = {CANDIDATES: self.rank[session, item], VIEWED: within}
        return Logged(session, item, ranks, self.reward[session, item])

    def position(self, day: int | None = None) -> Floats:
        """P(V | r) for every rank, fitted to the scroll depths of one day, or of the whole week."""
        viewed = self.viewed if day is None else self.viewed[self.day == day]
        depth = viewed.sum(axis=1)
        fit = fit_depths(self.platform.family, Depths.from_sessions(depth, censored=depth >= self.platform.length))
        return fit.model.view(np.arange(1.0, self.platform.length + 1.0))

    def estimates(self, logged: Logged, rank: Ints, view: Floats, clip: float) -> dict[str, Floats]:
        """Every form by session and reward [sessions x rewards]; nDCG is NaN where a session has no reward.

        `view` is P(V | r) [ranks], or by day [days x ranks].
        """
        n = len(self.day)
        place = self.day[logged.session] if view.ndim == 2 else np.zeros(len(rank), dtype=np.int64)
        view = np.atleast_2d(view)
        inverse = np.minimum(clip, 1.0 / view[place, logged.item])[:, None] * logged.reward
        discounts = {"log": 1.0 / np.log2(rank + 1.0), "pbm": view[place, rank - 1]}
        labels = {"C": logged.reward.astype(np.float64), "Q̂": inverse}
        sums = {
            f"DCG {name}, {label}": np.stack(
                [np.bincount(logged.session, discount * column, n) for column in labels[label].T], axis=1
            )
            for name, discount in discounts.items()
            for label in labels
        }
        best = np.empty((n, inverse.shape[1]))
        start = np.concatenate([[0], np.cumsum(self.viewed.sum(axis=1))])
        for column, values in enumerate(inverse.T):
            order = np.lexsort((-values, logged.session))
            ranked = np.arange(len(values)) - start[logged.session[order]]
            best[:, column] = np.bincount(logged.session[order], values[order] * view[place[order], ranked], n)
        ndcg = np.divide(sums["DCG pbm, Q̂"], best, out=np.full(best.shape, np.nan), where=best > 0)
        return sums | {FORMS[-1]: ndcg}


def draw_week(platform: Platform, *, seed: int, part: str = "log") -> Week:
    """A week of sessions; days are those of the seed, sessions those of the seed and the part.

    >>> week = draw_week(Platform(length=4, days=2, sessions=3), seed=0)
    >>> week.viewed.shape, bool(week.viewed[:, 0].all())  # everybody views the first item
    ((6, 4), True)
    """
    days = generator(seed, "platform days")
    mood, longer = (_standard(days, platform.days) for _ in range(2))
    rng = generator(seed, f"platform sessions {part}")
    n = platform.days * platform.sessions
    day = np.repeat(np.arange(platform.days), platform.sessions)
    appeal = rng.normal(size=(n, platform.length))
    score = [
        skill * appeal + np.sqrt(1 - skill**2) * rng.normal(size=appeal.shape) for skill in (platform.old, platform.new)
    ]
    order = np.argsort(-score[0], axis=1)
    appeal, new = (np.take_along_axis(values, order, axis=1) for values in (appeal, score[1]))
    rank = np.argsort(np.argsort(-new, axis=1), axis=1) + 1
    shift = platform.lengths * longer[day] + platform.patience * rng.normal(size=n)
    sign, rate = (-1.0, platform.rate) if platform.family == "yule" else (1.0, platform.rate / (1 - platform.rate))
    place = np.arange(1.0, platform.length + 1.0)
    view = np.exp(FAMILIES[platform.family].reached(np.log(rate) + sign * shift[:, None], place)[0])
    viewed = view > rng.random(n)[:, None]
    level = platform.users * rng.normal(size=n) + platform.moods * mood[day]
    base, slope = np.array(list(REWARDS.values())).T
    logit = base + slope * appeal[:, :, None] + level[:, None, None]
    quality = 1.0 / (1.0 + np.exp(-logit))
    reward = (rng.random(quality.shape) < quality) & viewed[:, :, None]
    return Week(platform, day, rank, view, viewed, quality, reward)


def _standard(rng: np.random.Generator, n: int) -> Floats:
    """Draws with mean 0 and standard deviation 1."""
    drawn = rng.normal(size=n)
    return np.asarray((drawn - drawn.mean()) / max(float(drawn.std()), 1e-12))
