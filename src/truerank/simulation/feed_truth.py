"""What every policy of a feed truly earns per session, and the files of a feed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.core.rng import generator
from truerank.core.sizes import check_size
from truerank.core.special import expit
from truerank.io.atomic_write import FolderKind, whole_file, whole_folder
from truerank.io.files import write_table
from truerank.simulation.feed import REWARDS, Broken, Feed, FeedSettings, make_feed

STOP = 0.7  # CASCADE: the probability to stop scrolling after a reward of any kind
BOREDOM = 3.0  # NEIGHBOUR: loss on the logit scale per unit of cosine similarity to the item before
TRUST = 0.15  # TRUST: P(reward | viewed) is divided by 1 + TRUST (rank - 1)
STATE = 0.8  # STATE: gain on the logit scale per explicit reward of the session before, minus STATE / 2


@record(eq=False)
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


def draw_log(feed: Feed, *, seed: int, sessions: int | None = None) -> Sessions:
    """A log under the logging policies, of users who are all drawn anew."""
    n = feed.settings.sessions if sessions is None else sessions
    return draw_sessions(feed, policies=tuple(range(feed.settings.loggers)), n=n, seed=seed)


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
    names = [field.name for field in fields(Sessions)]
    return Sessions(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in names))


def _visit(
    feed: Feed, kind: Ints, day: Ints, mood: Floats, *, policies: tuple[int, ...], rng: np.random.Generator
) -> Sessions:
    settings, n = feed.settings, len(kind)
    shares = np.cumsum([surface.share for surface in settings.surfaces])
    surface = np.minimum(np.searchsorted(shares, rng.random(n), side="right"), len(shares) - 1)
    policy = np.asarray(policies)[rng.integers(0, len(policies), n)]
    place = _rank(feed, kind, policy, rng)
    view = feed.view[kind, day, surface]
    reached = view > rng.random(n)[:, None]
    probability = rng.random((n, settings.length, len(REWARDS)))
    stops = rng.random((n, settings.length))
    logit = feed.logit[kind[:, None], place] + (feed.mood[day] + mood)[:, None, None]
    if Broken.NEIGHBOUR in settings.broken:
        logit = logit - BOREDOM * _similarity(feed, feed.pool[kind[:, None], place])[:, :, None]
    quality = expit(logit)
    if Broken.TRUST in settings.broken:
        quality = quality * trust(settings.length)[None, :, None]
    reward = (probability < quality) & reached[:, :, None]
    if Broken.CASCADE in settings.broken:
        ends = reward.any(axis=2) & (stops < STOP)
        before = np.logical_or.accumulate(ends, axis=1)
        goes_on = np.concatenate([np.ones((n, 1), dtype=bool), ~before[:, :-1]], axis=1)
        reached, reward = reached & goes_on, reward & goes_on[:, :, None]
    return Sessions(np.arange(n), kind, day, surface, policy, place, reached, reward)


def trust(length: int) -> Floats:
    """What is left of P(reward | viewed) at each rank where users trust high ranks."""
    return np.asarray(1.0 / (1.0 + TRUST * np.arange(length)))


def _rank(feed: Feed, kind: Ints, policy: Ints, rng: np.random.Generator) -> Ints:
    """A uniform subset of the pool, ranked by weight with Gumbel noise (Plackett-Luce)."""
    settings, n = feed.settings, len(kind)
    key = feed.weight[policy, kind] + rng.gumbel(size=(n, settings.pool))
    able = np.isfinite(key)
    probability = np.where(able, rng.random((n, settings.pool)), np.inf)
    drawn = np.argpartition(probability, settings.candidates - 1, axis=1)[:, : settings.candidates]
    order = np.argsort(-np.take_along_axis(key, drawn, axis=1), axis=1)[:, : settings.length]
    return np.take_along_axis(drawn, order, axis=1)


def _similarity(feed: Feed, item: Ints) -> Floats:
    """The cosine of each item with the one before it; 0 at rank 1."""
    direction = feed.vector / np.linalg.norm(feed.vector, axis=1, keepdims=True)
    cosine = np.zeros(item.shape)
    cosine[:, 1:] = np.einsum("srd,srd->sr", direction[item[:, 1:]], direction[item[:, :-1]])
    return cosine


SIMULATED = frozenset({Broken.STATE, Broken.CASCADE, Broken.NEIGHBOUR})
TRUE_SESSIONS = 400_000
AT_ONCE = 20_000
FIRST_DAY = datetime(2026, 1, 5)
FOLDER = FolderKind("feed", ("*.parquet", "truth.json"))  # the log, and a table for each policy


@record
class PolicyTruth:
    """The expected sum of a reward per session under a policy, over all days and on each day.

    Exact where no switch makes views or rewards depend on the list; else the mean of so many simulated sessions, with
    its Monte-Carlo error.
    """

    policy: str
    reward: str
    value: float
    stderr: float
    by_day: tuple[float, ...]
    impressions: float  # expected views per session


def truth_of(feed: Feed, policy: str, *, sessions: int = TRUE_SESSIONS) -> dict[str, PolicyTruth]:
    """The truth of one policy for every reward.

    V = mean over kinds, days and surfaces of Σ_a Σ_r P(a at r) P(V | r) P(Q | x, a), times trust in the rank where that
    switch is on.

    >>> from truerank.simulation.feed import FeedSettings, make_feed
    >>> feed = make_feed(FeedSettings(kinds=2, items=12, pool=6, candidates=4, length=3), seed=1)
    >>> truth_of(feed, "better")["reward"].value > truth_of(feed, "worse")["reward"].value
    True
    """
    number = feed.policy(policy)
    return _simulated(feed, number, sessions) if feed.settings.broken & SIMULATED else _exact(feed, number)


def _exact(feed: Feed, policy: int) -> dict[str, PolicyTruth]:
    settings = feed.settings
    share = np.array([surface.share for surface in settings.surfaces])
    trusted = trust(settings.length) if Broken.TRUST in settings.broken else np.ones(settings.length)
    view = np.einsum("kdsr,s->kdr", feed.view, share)
    viewed = np.einsum("kar,kdr->kda", feed.ranks[policy], view * trusted)
    by_day = np.einsum("kda,kdac->dc", viewed, feed.quality()) / settings.kinds
    impressions = float(view.mean(axis=(0, 1)).sum())
    return _truths(settings.policies[policy].name, by_day.mean(axis=0), np.zeros(len(REWARDS)), by_day, impressions)


def _simulated(feed: Feed, policy: int, sessions: int) -> dict[str, PolicyTruth]:
    """Users of one chunk share no session with others, so the error comes from sums per user."""
    settings = feed.settings
    users: list[Floats] = []
    days, counts, views = np.zeros((settings.days, len(REWARDS))), np.zeros(settings.days), 0.0
    size = min(AT_ONCE, sessions) // settings.visits * settings.visits
    for chunk in range(max(1, sessions // max(size, 1))):
        drawn = draw_sessions(feed, policies=(policy,), n=max(size, settings.visits), seed=-1 - chunk)
        earned = drawn.reward.sum(axis=1).astype(np.float64)
        users.append(earned.reshape(-1, settings.visits, len(REWARDS)).mean(axis=1))
        np.add.at(days, drawn.day, earned)
        counts += np.bincount(drawn.day, minlength=settings.days)
        views += float(drawn.viewed.sum())
    per_user = np.concatenate(users)
    stderr = per_user.std(axis=0, ddof=1) / np.sqrt(len(per_user))
    by_day, name = days / np.maximum(counts, 1)[:, None], settings.policies[policy].name
    return _truths(name, per_user.mean(axis=0), stderr, by_day, views / float(counts.sum()))


def _truths(policy: str, value: Floats, stderr: Floats, by_day: Floats, impressions: float) -> dict[str, PolicyTruth]:
    """The truth of each reward, from columns of rewards."""
    columns = zip(REWARDS, value.tolist(), stderr.tolist(), by_day.T.tolist(), strict=True)
    return {
        reward: PolicyTruth(policy, reward, mean, error, tuple(days), impressions)
        for reward, mean, error, days in columns
    }


def log_table(feed: Feed, drawn: Sessions) -> pl.DataFrame:
    """The viewed items as a log: session, user, item, position, rewards, propensity, time, surface; loggers if several.

    Rows are in the order of sessions and ranks.
    """
    settings = feed.settings
    session, rank = np.nonzero(drawn.viewed)
    kind, day, surface = drawn.kind[session], drawn.day[session], drawn.surface[session]
    pair = kind, day, surface, drawn.place[session, rank]
    start = np.array([FIRST_DAY + timedelta(days=number) for number in range(settings.days)], dtype="datetime64[us]")
    columns: dict[str, object] = {
        "session": session,
        "user": drawn.user[session],
        "item": feed.pool[kind, pair[-1]],
        "position": rank + 1,
        **{name: drawn.reward[session, rank, number].astype(np.float64) for number, name in enumerate(REWARDS)},
        "propensity": feed.logging_exposure()[pair],
        "time": start[day] + session * 37 % 86_000 * np.timedelta64(1, "s"),
        "surface": np.array([surface.name for surface in settings.surfaces])[surface],
    }
    if settings.loggers > 1:
        names = np.array([policy.name for policy in settings.policies])
        columns["logger"] = names[drawn.policy[session]]
        for number in range(settings.loggers):
            columns[f"propensity_{names[number]}"] = feed.exposure(number)[pair]
    return pl.DataFrame(columns)


def target_table(feed: Feed, drawn: Sessions, policy: str) -> pl.DataFrame:
    """What a policy would show in every session of a log: session, item, exposure, without items it never shows."""
    exposure = feed.exposure(feed.policy(policy))[drawn.kind, drawn.day, drawn.surface]
    session, place = np.nonzero(exposure > 0)
    return pl.DataFrame(
        {"session": session, "item": feed.pool[drawn.kind[session], place], "exposure": exposure[session, place]}
    )


def check_feed(settings: FeedSettings) -> None:
    """Refuse a feed whose tables cannot be held: exposures of kinds, and of sessions, to every item of a pool."""
    kinds, pool = float(settings.kinds), float(settings.pool)
    of_kinds = 16.0 * kinds * settings.items + 8.0 * len(settings.policies) * kinds * pool * settings.length
    views = 8.0 * kinds * settings.days * len(settings.surfaces) * (settings.length + pool)
    check_size(
        f"a feed of {settings.sessions:,} sessions, {settings.kinds:,} kinds of users and {settings.items:,} items",
        memory=of_kinds + views + 8.0 * settings.sessions * pool,
        instead="Ask for fewer sessions, kinds, days or items, or a smaller pool.",
    )


def write_feed(
    settings: FeedSettings,
    folder: Path,
    *,
    seed: int = 0,
    force: bool = False,
    say: Callable[[str, int, int], None] | None = None,
) -> dict[str, Path]:
    """Write a folder with log.parquet, a table of exposures for each policy, and truth.json; the paths by name.

    `force` replaces another one.
    """
    check_feed(settings)
    names = [policy.name for policy in settings.policies]

    def step(what: str, done: int) -> None:
        if say is not None:
            say(what, done, len(names) + 2)

    with whole_folder(folder, kind=FOLDER, force=force) as part:
        step("computing exposures", 0)
        feed = make_feed(settings, seed=seed)
        log = draw_log(feed, seed=seed)
        step("writing log", 1)
        write_table(log_table(feed, log), part / "log.parquet")
        for number, name in enumerate(names, 2):
            step(f"writing {name}", number)
            write_table(target_table(feed, log, name), part / f"{name}.parquet")
        written = {
            "about": "expected sum of each reward per session under each policy; stderr 0 is exact",
            "seed": seed,
            "settings": {**asdict(settings), "broken": sorted(settings.broken)},
            "loggers": names[: settings.loggers],
            "truth": [asdict(truth) for name in names for truth in truth_of(feed, name).values()],
        }
        with whole_file(part / "truth.json") as temporary:
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(written), indent=2))
    return {name: folder / f"{name}.parquet" for name in ("log", *names)} | {"truth": folder / "truth.json"}
