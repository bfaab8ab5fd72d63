"""A simulated platform: a week of long, uneven sessions with four rewards, logged by one ranker, re-ranked by another.

A session has a list of `length` items. Item a has appeal z ~ N(0, 1); reward c of a viewed item has probability
logistic(base_c + slope_c z + u + mood of the day), u ~ N(0, `users`²). The logging ranker orders the list by a score
that correlates with z (`old`), the new one by a better score (`new`). Users view the list from the top down to a depth
D with P(D >= r) of the Yule-Simon law, r^-ρ in the long run, whose log ρ differs by user (`patience`) and day
(`lengths`): few sessions are very long. All assumptions of paper 3 hold; the position model is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.chance import generator
from truerank.exposure.positions.depths import FAMILIES, Depths, fit_depths

# base and slope on the logit scale: two explicit rewards, which are rare, and two implicit ones
REWARDS = {"share": (-5.0, 1.2), "like": (-3.5, 1.2), "long view": (-1.5, 0.8), "complete": (-0.4, 0.8)}
OLD, NEW = "R0", "Rt"


@dataclass(frozen=True, slots=True)
class Platform:
    """One level of a feed, and how its days and users differ."""

    length: int = 100
    rate: float = 0.7  # ρ of the Yule-Simon law: the smaller, the longer and the more uneven sessions are
    days: int = 6
    sessions: int = 2000  # a day
    lengths: float = 0.3
    moods: float = 0.3
    patience: float = 0.3
    users: float = 0.5
    old: float = 0.4
    new: float = 0.8


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
        reward = np.einsum("sr,src->sc", view, self.quality)
        return np.stack([reward[self.day == day].mean(axis=0) for day in range(self.platform.days)])

    def logged(self, day: int) -> pl.DataFrame:
        """The viewed items of one day, with their ranks under both rankers."""
        session, item = np.nonzero(self.viewed & (self.day == day)[:, None])
        rewards = {name: self.reward[session, item, c].astype(np.int8) for c, name in enumerate(REWARDS)}
        ranks = {"position": item + 1, OLD: item + 1, NEW: self.rank[session, item]}
        return pl.DataFrame({"session": session, "item": item, **ranks, **rewards})

    def position(self, day: int | None = None) -> Any:
        """The position model fitted to the scroll depths of one day, or of the whole week."""
        viewed = self.viewed if day is None else self.viewed[self.day == day]
        depth = viewed.sum(axis=1)
        return fit_depths("yule", Depths.of(depth, censored=depth >= self.platform.length)).model


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
    place = np.arange(1.0, platform.length + 1.0)
    view = np.exp(FAMILIES["yule"].reached(np.log(platform.rate) - shift[:, None], place)[0])
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
