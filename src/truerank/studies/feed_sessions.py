"""What users of a feed see and do under a policy, session by session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.chance import generator
from truerank.core.errors import InputError
from truerank.studies.feed import REWARDS, Broken, Feed

STOP = 0.7  # CASCADE: the chance to stop scrolling after a reward of any kind
BOREDOM = 3.0  # NEIGHBOUR: loss on the logit scale per unit of cosine similarity to the item before
TRUST = 0.15  # TRUST: P(reward | viewed) is divided by 1 + TRUST (rank - 1)
STATE = 0.8  # STATE: gain on the logit scale per explicit reward of the session before, minus STATE / 2


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """Sessions [sessions] with the items shown [sessions x ranks], as places in the pool of the user's kind."""

    user: Ints
    kind: Ints
    day: Ints
    surface: Ints
    policy: Ints
    place: Ints
    viewed: Bools
    reward: Bools  # [sessions x ranks x rewards]; only viewed items have any

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True, slots=True, eq=False)
class FeedLog:
    """The viewed items of a log, one row each, in the order of sessions and ranks; `sessions` has the rest."""

    sessions: Sessions
    session: Ints
    item: Ints
    position: Ints
    rewards: dict[str, Floats]
    propensity: Floats

    def __len__(self) -> int:
        return len(self.session)


def draw_log(feed: Feed, *, seed: int, sessions: int | None = None) -> FeedLog:
    """A log under the logging policies, of users who are all drawn anew."""
    n = feed.settings.sessions if sessions is None else sessions
    drawn = draw_sessions(feed, policies=tuple(range(feed.settings.loggers)), n=n, seed=seed)
    exposure = feed.logging_exposure()
    return _rows(feed, drawn, exposure[drawn.kind[:, None], drawn.day[:, None], drawn.surface[:, None], drawn.place])


def draw_sessions(feed: Feed, *, policies: tuple[int, ...], n: int, seed: int) -> Sessions:
    """n sessions under policies with equal shares, rounded up to whole users of `visits` sessions each.

    Users are drawn from the kinds; the days of a user's sessions are drawn and put in order.
    """
    settings = feed.settings
    if n < 1:
        raise InputError(f"a log of {n} sessions; expected at least 1.")
    rng = generator(seed, f"feed {feed.seed} sessions {policies}")
    n_users = -(-n // settings.visits)
    kind = rng.integers(0, settings.kinds, n_users)
    day = np.sort(rng.integers(0, settings.days, (n_users, settings.visits)), axis=1)
    parts = []
    mood = np.zeros(n_users)
    for visit in range(settings.visits):
        part = _visit(feed, kind, day[:, visit], mood, policies=policies, rng=rng)
        if Broken.STATE in settings.broken:
            mood = STATE * part.reward[:, :, 0].sum(axis=1) - STATE / 2
        parts.append(part)
    # the sessions of a user stand together
    order = np.arange(n_users * settings.visits).reshape(settings.visits, n_users).T.ravel()
    return Sessions(*(np.concatenate([getattr(each, name) for each in parts])[order] for name in _FIELDS))


_FIELDS = ("user", "kind", "day", "surface", "policy", "place", "viewed", "reward")


def _visit(
    feed: Feed, kind: Ints, day: Ints, mood: Floats, *, policies: tuple[int, ...], rng: np.random.Generator
) -> Sessions:
    settings, n = feed.settings, len(kind)
    shares = np.cumsum([each.share for each in settings.surfaces])
    surface = np.minimum(np.searchsorted(shares, rng.random(n), side="right"), len(shares) - 1)
    policy = np.asarray(policies)[rng.integers(0, len(policies), n)]
    place = _rank(feed, kind, policy, rng)
    view = feed.view[kind, day, surface]
    reached = view > rng.random(n)[:, None]
    chance = rng.random((n, settings.length, len(REWARDS)))
    stops = rng.random((n, settings.length))
    logit = feed.logit[kind[:, None], place] + (feed.mood[day] + mood)[:, None, None]
    if Broken.NEIGHBOUR in settings.broken:
        logit = logit - BOREDOM * _similarity(feed, feed.pool[kind[:, None], place])[:, :, None]
    quality = 1.0 / (1.0 + np.exp(-logit))
    if Broken.TRUST in settings.broken:
        quality = quality * trust(settings.length)[None, :, None]
    reward = (chance < quality) & reached[:, :, None]
    if Broken.CASCADE in settings.broken:
        ends = reward.any(axis=2) & (stops < STOP)
        before = np.logical_or.accumulate(ends, axis=1)
        goes_on = np.concatenate([np.ones((n, 1), dtype=bool), ~before[:, :-1]], axis=1)
        reached, reward = reached & goes_on, reward & goes_on[:, :, None]
    return Sessions(
        user=np.arange(n),
        kind=kind,
        day=day,
        surface=surface,
        policy=policy,
        place=place,
        viewed=reached,
        reward=reward,
    )


def trust(length: int) -> Floats:
    """What is left of P(reward | viewed) at each rank where users trust high ranks."""
    return np.asarray(1.0 / (1.0 + TRUST * np.arange(length)))


def _rank(feed: Feed, kind: Ints, policy: Ints, rng: np.random.Generator) -> Ints:
    """A uniform subset of the pool, ranked by weight with Gumbel noise (Plackett-Luce)."""
    settings, n = feed.settings, len(kind)
    key = feed.weight[policy, kind] + rng.gumbel(size=(n, settings.pool))
    able = np.isfinite(key)
    chance = np.where(able, rng.random((n, settings.pool)), np.inf)
    drawn = np.argpartition(chance, settings.candidates - 1, axis=1)[:, : settings.candidates]
    order = np.argsort(-np.take_along_axis(key, drawn, axis=1), axis=1)[:, : settings.length]
    return np.take_along_axis(drawn, order, axis=1)


def _similarity(feed: Feed, item: Ints) -> Floats:
    """The cosine of each item with the one before it; 0 at rank 1."""
    direction = feed.vector / np.linalg.norm(feed.vector, axis=1, keepdims=True)
    found = np.zeros(item.shape)
    found[:, 1:] = np.einsum("srd,srd->sr", direction[item[:, 1:]], direction[item[:, :-1]])
    return found


def _rows(feed: Feed, drawn: Sessions, exposure: Floats) -> FeedLog:
    session, rank = np.nonzero(drawn.viewed)
    place = drawn.place[session, rank]
    return FeedLog(
        sessions=drawn,
        session=session,
        item=feed.pool[drawn.kind[session], place],
        position=rank + 1,
        rewards={name: drawn.reward[session, rank, at].astype(np.float64) for at, name in enumerate(REWARDS)},
        propensity=exposure[session, rank],
    )
