"""Users whose sessions are logged in a random order, and rankers whose true reward is known: for `off_policy`.

Every user has a twin with the ranks of `a` and `b` exchanged, so that these two earn the same; `c` earns less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import generator
from truerank.core.results import Results
from truerank.evaluation.ranked import off_policy
from truerank.exposure.policies.targets import RankColumn
from truerank_research.validation.calibration.said import Said, said_of

TWINS = 1500
LENGTH = 8  # items in a session
MODELS = ("a", "b", "c")
MOST_SESSIONS = 400  # of one user


@dataclass(frozen=True, slots=True)
class RankedWorld:
    """A population of users; `n_users` of them are drawn with all their sessions.

    The number of sessions of a user is 5, or follows a Pareto distribution of index `pareto`; `spread` is that of a
    lognormal reward, 0 for clicks; `strong` users carry half of all sessions.
    """

    name: str
    n_users: int
    pareto: float | None = None
    spread: float = 0.0
    strong: int = 0
    estimators: tuple[str, ...] = ("ips", "snips")

    @property
    def ample(self) -> bool:
        """Whether so much is known that nothing should be warned of."""
        return self.n_users >= 1000 and self.pareto is None and not self.spread and not self.strong

    def draw(self, seed: int, run: int) -> Results:
        """The results of one draw of users, of what they were shown and did."""
        rng = generator(seed, f"calibration {self.name} {run}")
        population = _viewers(self.pareto, seed)
        user = rng.integers(0, 2 * TWINS, self.n_users)
        sessions = population.sessions[user]
        if self.strong:
            sessions[: self.strong] = max(int(sessions.sum()) // self.strong, 1)
        owner = np.repeat(np.arange(self.n_users), sessions)
        shape = (len(owner), LENGTH)
        position = rng.random(shape).argsort(axis=1) + 1
        viewed = rng.random(shape) < 1 / np.log2(position + 1)
        liked = rng.random(shape) < population.liking[user[owner]]
        reward = (viewed & liked) * np.exp(self.spread * rng.normal(size=shape) - self.spread**2 / 2)
        session, item = np.nonzero(viewed)  # the first position always is
        frame = pl.DataFrame(
            {
                "session": session,
                "user": owner[session],
                "item": item,
                "position": position[session, item],
                "reward": reward[session, item],
                "candidates": np.full(len(session), LENGTH),
                **{name: population.ranks[name][user[owner[session]], item] for name in MODELS},
            }
        )
        return off_policy(
            frame,
            self._targets(population, user[owner]),
            position="log",
            estimators=self.estimators,
            baseline="a",
            threads=1,
        )

    def said(self, seed: int, run: int) -> Iterator[Said]:
        return said_of(self.draw(seed, run), run)

    def _targets(self, population: Viewers, user: Ints) -> dict[str, RankColumn | pl.DataFrame]:
        """Ranks as columns of the log; as tables of whole lists where rewards of unseen items are predicted."""
        if "doubly-robust" not in self.estimators:
            return {name: RankColumn(name) for name in MODELS}
        session, item = np.repeat(np.arange(len(user)), LENGTH), np.tile(np.arange(LENGTH), len(user))
        return {
            name: pl.DataFrame({"session": session, "item": item, "rank": population.ranks[name][user].ravel()})
            for name in MODELS
        }

    def n_draws(self, asked: int) -> int:
        """Of the draws that are asked for."""
        return asked

    def true_values(self, seed: int) -> dict[tuple[str, str, str], float]:
        """The mean reward per session of each ranker over the population, and differences, whatever the estimator."""
        population = _viewers(self.pareto, seed)
        earned = {name: (population.liking / np.log2(population.ranks[name] + 1)).sum(axis=1) for name in MODELS}
        weight = population.sessions / population.sessions.sum()
        values = {name: float(weight @ each) for name, each in earned.items()}
        apart = {(f"{name} - a", "", ""): value - values["a"] for name, value in values.items() if name != "a"}
        return {(name, "", ""): value for name, value in values.items()} | apart


@dataclass(frozen=True, slots=True, eq=False)
class Viewers:
    """How many sessions each user has, how likely each item is liked if seen, and where rankers put it."""

    sessions: Ints
    liking: Floats
    ranks: dict[str, Ints]


@lru_cache(maxsize=4)
def _viewers(pareto: float | None, seed: int) -> Viewers:
    rng = generator(seed, f"calibration viewers {pareto}")
    shape = (TWINS, LENGTH)
    taste = rng.normal(size=shape)
    liking = 1 / (1 + np.exp(1.5 - taste - rng.normal(scale=0.7, size=(TWINS, 1))))
    sessions = np.full(TWINS, 5)
    if pareto is not None:
        sessions = np.minimum(np.ceil(rng.pareto(pareto, TWINS) + 0.5), MOST_SESSIONS).astype(np.int64)
    ranks = {
        name: (-(signal * taste + rng.normal(size=shape))).argsort(axis=1).argsort(axis=1) + 1
        for name, signal in (("a", 0.8), ("b", 0.8), ("c", 0.2))
    }
    twice = {
        "a": np.concatenate([ranks["a"], ranks["b"]]),
        "b": np.concatenate([ranks["b"], ranks["a"]]),
        "c": np.concatenate([ranks["c"], ranks["c"]]),
    }
    return Viewers(np.tile(sessions, 2), np.concatenate([liking, liking]), twice)
