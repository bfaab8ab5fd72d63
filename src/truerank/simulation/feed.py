"""A simulated feed whose truth is known: users, items, two-stage policies, days, scroll depths (spec 10.3.4).

All five assumptions of paper 3 hold unless they are broken on purpose, one switch for each, so that one can see what an
estimate is worth when an assumption fails. Exposures are exact: policies are Plackett-Luce over random candidates.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.core.rng import generator
from truerank.core.special import expit
from truerank.core.values import Count, NotNegative, Range, check
from truerank.exposure.policies.rankers import ranker_probabilities, softened
from truerank.exposure.positions import parse_position
from truerank.exposure.positions.depths import FAMILIES, DepthFamily

REWARDS = ("reward", "complete")  # explicit and rare; implicit and common


class Broken(StrEnum):
    """An assumption of paper 3 that does not hold in a feed.

    STATE       1: what a user got in one session changes what the user likes in the next
    CASCADE     2: a user who found something good stops scrolling, so views depend on what stands above
    NEIGHBOUR   3: an item is liked less after a similar one
    TRUST       4: users trust high ranks: the same viewed item is liked less further down
    TRUNCATION  5: the logging policies never retrieve the items they score lowest
    """

    STATE = "state"
    CASCADE = "cascade"
    NEIGHBOUR = "neighbour"
    TRUST = "trust"
    TRUNCATION = "truncation"


@record
class FeedPolicy:
    """A ranker: `skill` is the correlation of its scores with the true appeal, `noise` the temperature of its ranking.

    Noise 0 ranks the candidates by score; more noise explores more (Plackett-Luce with weights exp(score / noise)).
    """

    name: str
    skill: Annotated[float, Range(least=0, most=1)] = 0.5
    noise: NotNegative = 1.0

    def __post_init__(self) -> None:
        check(self, where=f"policy {self.name}")


@record
class Surface:
    """A place where lists are scrolled: its position model (exp, yule or log:ALPHA) and its share of the sessions."""

    name: str
    position: str
    share: float


@record
class FeedSettings:
    """How large a feed is and how it behaves.

    There are `kinds` kinds of users, each with a pool of `pool` of the `items`. In each session a uniform subset of
    `candidates` of the pool is ranked and the first `length` can be scrolled to. A log has `sessions` sessions of users
    drawn from the kinds, `visits` sessions each, on one of `days` days; days differ in how good items are (`moods`, on
    the logit scale) and in how far users scroll (`lengths`), users in patience. Sessions go to the first `loggers` of
    `policies` with equal shares; the others are targets.
    """

    kinds: Count = 60
    items: Count = 300
    pool: Count = 20
    candidates: Count = 12
    length: Count = 10
    dimensions: Count = 8
    sessions: Count = 2000
    visits: Count = 2
    days: Count = 6
    moods: float = 0.3
    lengths: float = 0.3
    patience: float = 0.3
    policies: tuple[FeedPolicy, ...] = (
        FeedPolicy("logging", skill=0.4, noise=1.0),
        FeedPolicy("better", skill=0.8, noise=0.8),
        FeedPolicy("worse", skill=0.1, noise=0.8),
    )
    loggers: int = 1
    surfaces: tuple[Surface, ...] = (Surface("first", "yule:0.7", 0.7), Surface("second", "exp:0.8", 0.3))
    broken: frozenset[Broken] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "broken", frozenset(Broken(name) for name in self.broken))
        check(self, where="feed")
        for low, high in (("length", "candidates"), ("candidates", "pool"), ("pool", "items")):
            if getattr(self, low) > getattr(self, high):
                raise InputError(
                    f"a feed with {low} = {getattr(self, low)} and {high} = {getattr(self, high)}; expected length <= "
                    "candidates <= pool <= items."
                )
        if Broken.TRUNCATION in self.broken and self.candidates == self.pool:
            raise InputError(
                "truncation with candidates = pool; expected a pool that is larger, so that items are lost."
            )
        names = [policy.name for policy in self.policies]
        if not 1 <= self.loggers <= len(names) or len(set(names)) < len(names):
            raise InputError(
                f"{self.loggers} loggers of the policies {', '.join(names)}; expected 1 to all, named apart."
            )
        if any(policy.noise == 0 for policy in self.policies[: self.loggers]):
            raise InputError("a logging policy without noise; it would not show every item. Give it some.")
        if abs(sum(surface.share for surface in self.surfaces) - 1) > 1e-9:
            raise InputError("surfaces whose shares do not sum to 1; expected the share of sessions on each.")
        for surface in self.surfaces:
            _law(surface)


@record(eq=False)
class Feed:
    """Everything about a feed: kinds of users x items of their pool.

    `weight` is NaN-free log weights [policies x kinds x pool], -inf where a policy never retrieves an item; `ranks`
    P(item at rank) [policies x kinds x pool x ranks]; `view` P(V | rank) [kinds x days x surfaces x ranks].
    """

    settings: FeedSettings
    seed: int
    vector: Floats
    pool: Ints
    logit: Floats  # [kinds x pool x rewards]
    mood: Floats  # [days]
    view: Floats
    weight: Floats
    ranks: Floats

    def policy(self, name: str) -> int:
        names = [policy.name for policy in self.settings.policies]
        if name not in names:
            raise InputError(f"no policy {name!r} in this feed; expected one of {', '.join(names)}.")
        return names.index(name)

    def quality(self) -> Floats:
        """P(Q = 1 | x, a) [kinds x days x pool x rewards]."""
        return np.asarray(expit(self.logit[:, None] + self.mood[None, :, None, None]))

    def exposure(self, policy: int) -> Floats:
        """ε(x, a) [kinds x days x surfaces x pool] (eq. 6); exact."""
        return np.asarray(np.einsum("kar,kdsr->kdsa", self.ranks[policy], self.view, optimize=True))

    def logging_exposure(self) -> Floats:
        """ε0(x, a) of all loggers together: the balance heuristic with equal shares."""
        n = self.settings.loggers
        return np.asarray(sum(self.exposure(policy) for policy in range(n)) / n)


def make_feed(settings: FeedSettings | None = None, *, seed: int) -> Feed:
    """Draw a feed; its logs are drawn by `draw_log`, its truth is computed by `truth_of`.

    >>> feed = make_feed(FeedSettings(kinds=2, items=12, pool=6, candidates=4, length=3), seed=1)
    >>> feed.ranks.shape, bool(np.allclose(feed.ranks.sum(axis=2), 1))  # some item stands at every rank
    ((3, 2, 6, 3), True)
    """
    settings = FeedSettings() if settings is None else settings
    rng = generator(seed, "feed")
    vector = rng.normal(size=(settings.items, settings.dimensions)) / np.sqrt(settings.dimensions)
    taste = rng.normal(size=(settings.kinds, settings.dimensions))
    pool = np.argsort(rng.random((settings.kinds, settings.items)), axis=1)[:, : settings.pool]
    appeal = np.einsum("kd,kad->ka", taste, vector[pool]) + 0.5 * rng.normal(size=settings.items)[pool]
    appeal = (appeal - appeal.mean()) / appeal.std()
    like = -2.2 + 1.2 * appeal
    finish = -0.4 + 0.8 * appeal + 0.4 * rng.normal(size=appeal.shape)
    score = np.stack([_score(policy, appeal, rng) for policy in settings.policies])
    mood = settings.moods * _standard(settings.days, rng)
    length = settings.lengths * _standard(settings.days, rng)
    patience = settings.patience * rng.normal(size=settings.kinds)
    weight = _log_weights(settings, score)
    return Feed(
        settings=settings,
        seed=seed,
        vector=vector,
        pool=pool,
        logit=np.stack([like, finish], axis=2),
        mood=mood,
        view=_views(settings, length, patience),
        weight=weight,
        ranks=np.stack(
            [
                _rank_probabilities(settings, of_policy, noise=policy.noise)
                for policy, of_policy in zip(settings.policies, weight, strict=True)
            ]
        ),
    )


def _standard(n: int, rng: np.random.Generator) -> Floats:
    """Draws with mean 0 and standard deviation 1; 0 where there is one only."""
    drawn = rng.normal(size=n)
    return np.zeros(1) if n == 1 else (drawn - drawn.mean()) / drawn.std()


def _score(policy: FeedPolicy, appeal: Floats, rng: np.random.Generator) -> Floats:
    error = rng.normal(size=appeal.shape)
    return np.asarray(policy.skill * appeal + np.sqrt(1 - policy.skill**2) * error)


def _log_weights(settings: FeedSettings, score: Floats) -> Floats:
    """Scores on the scale of Gumbel noise; of a policy without noise, so far apart that noise changes nothing."""
    weight = np.empty_like(score)
    for p, policy in enumerate(settings.policies):
        if policy.noise > 0:
            weight[p] = np.log(softened(score[p], temperature=policy.noise))
        else:
            weight[p] = -1e6 * np.argsort(np.argsort(-score[p], axis=1), axis=1)
        if Broken.TRUNCATION in settings.broken and p < settings.loggers:
            n_lost = min(settings.pool // 4, settings.pool - settings.candidates)
            lost = np.argsort(np.argsort(score[p], axis=1, kind="stable"), axis=1) < n_lost
            weight[p][lost] = -np.inf
    return weight


def _rank_probabilities(settings: FeedSettings, weight: Floats, *, noise: float) -> Floats:
    """P(item at rank) of one policy [kinds x pool x ranks]."""
    probability = np.zeros((*weight.shape, settings.length))
    for kind, row in enumerate(weight):
        able = np.flatnonzero(np.isfinite(row))
        probability[kind, able] = ranker_probabilities(
            row[able], temperature=1.0 if noise else None, n_candidates=settings.candidates, depth=settings.length
        )
    return probability


def _law(surface: Surface) -> tuple[DepthFamily, float]:
    """The family of a surface's scroll depths and its parameter on the family's scale."""
    model = parse_position(surface.position)
    law = FAMILIES.get(getattr(model, "name", ""))
    if law is None or getattr(model, "cutoff", None) is not None or not hasattr(model, law.parameter):
        raise InputError(
            f"surface {surface.name} with position {surface.position!r}; expected exp:GAMMA, yule:RHO or log:ALPHA."
        )
    return law, law.point(float(getattr(model, law.parameter)))


def _views(settings: FeedSettings, length: Floats, patience: Floats) -> Floats:
    rank = np.arange(1.0, settings.length + 1.0)
    view = np.empty((settings.kinds, settings.days, len(settings.surfaces), settings.length))
    shift = patience[:, None] + length[None, :]
    for s, surface in enumerate(settings.surfaces):
        law, u = _law(surface)
        # more patience is a larger γ, but a smaller ρ or α
        sign = 1.0 if law.scale == "logit" else -1.0
        view[:, :, s] = np.exp(law.reached(u + sign * shift[:, :, None], rank)[0])
    return view
