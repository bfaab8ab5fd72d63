"""Whether plans keep their word: power as planned from a pilot, beside how often true differences are then shown.

Worlds whose truth is known, drawn at the level of what users contribute: thousands of draws take seconds. The pilot has
many users, so that what is compared is the plan and not the luck of a pilot, and half as many judged items or
sessions of each as are planned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.chance import generator
from truerank.core.clusters import Clusters
from truerank.core.metric import Additive
from truerank.core.rows import SampledRows
from truerank.core.terms import Smooth, known_total, ratio
from truerank.metrics import parse
from truerank.uncertainty.components import components_of, components_of_sessions
from truerank.uncertainty.intervals import Design, Interval, Population, between
from truerank.uncertainty.planning import Components, Sure, power_of
from truerank.uncertainty.verdicts import FEWEST
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

Both = tuple[Smooth, Smooth]
PILOT = 100_000  # users: what is left of the variance between them is the small difference of large numbers
GRID = 4000  # quantiles of how active users are


@dataclass(frozen=True, slots=True)
class ListWorld:
    """Users of whom `judged` of `n_items` items were judged at random, and the lists of two models.

    Of the items in the first list a share `better` is relevant, of those in the second `worse`, of the rest `rest`,
    each times how active a user is, which follows a gamma distribution of this shape. The two lists have `shared` items
    in common. The pilot has half as many judged items per user.
    """

    name: str
    n_users: int
    judged: int
    metric: str = "Precision@10"
    estimator: str = "horvitz-thompson"
    better: float = 0.3
    worse: float = 0.2
    rest: float = 0.03
    shape: float = 4.0
    shared: int = 3
    n_items: int = 300
    exactly_these: bool = False

    @property
    def rows(self) -> float:
        return float(self.judged)

    @property
    def interval(self) -> Interval:
        return Design() if self.exactly_these else Population()

    def difference(self) -> float:
        """By the expected number of relevant items at each place; of exactly these users by their labels."""
        if self.exactly_these:
            users = self._these()
            first, second = (users.labels[:, own] @ worth for own, worth in self._lists())
            if self.estimator == "pooled":
                return float((first.sum() - second.sum()) / (users.labels.sum() + users.rest.sum()))
            return float((first - second).mean())
        active = self._active(np.arange(0.5, GRID) / GRID)
        rate = self._rates(active).mean(axis=0)
        one, other = (float(rate[own] @ worth) for own, worth in self._lists())
        if self.estimator != "pooled":
            return one - other
        others = self.n_items - len(rate)
        return (one - other) / float(rate.sum() + others * np.minimum(self.rest * active, 1.0).mean())

    def draw(self, rng: np.random.Generator) -> Both:
        users = self._these() if self.exactly_these else self._users(rng, self.n_users)
        return self._judged(rng, users, self.judged)

    def components(self, rng: np.random.Generator) -> Components:
        if self.exactly_these:  # a pilot of the same users, again and again
            users = self._these()
            many = Users(*(np.tile(part, (50, 1)) for part in (users.labels, users.rest)))
        else:
            many = self._users(rng, PILOT)
        first, second = self._judged(rng, many, self.judged // 2)
        found = components_of(first, second, users=len(many.labels), design=self.exactly_these)
        if found is None:
            raise ValueError(f"{self.name}: the pilot shows no spread")
        return found

    # ---- how it is drawn

    def _lists(self) -> list[tuple[Ints, Floats]]:
        """Which items each model lists, and what each is worth; shared items stand at the same places."""
        metric = parse(self.metric)
        if not isinstance(metric, Additive) or metric.cutoff is None:
            raise ValueError(f"{self.metric}: expected a sum over a list")
        k = metric.cutoff
        worth = metric.worth(np.arange(1.0, k + 1)) / (k if metric.name == "Precision" else 1.0)
        own = np.arange(k)
        return [(own, worth), (np.concatenate([own[: self.shared], np.arange(k, 2 * k - self.shared)]), worth)]

    def _rates(self, active: Floats) -> Floats:
        """How likely each listed item is relevant; what both list is as likely as in the middle."""
        k = len(self._lists()[0][0])
        base = np.full(2 * k - self.shared, self.better)
        base[k:] = self.worse
        base[: self.shared] = (self.better + self.worse) / 2
        return np.minimum(base * active[:, None], 1.0)

    def _active(self, quantile: Floats) -> Floats:
        from truerank.core.special import gammaincinv

        return np.asarray(gammaincinv(self.shape, quantile) / self.shape)

    def _users(self, rng: np.random.Generator, n: int) -> Users:
        active = self._active(rng.random(n))
        rates = self._rates(active)
        labels = rng.random(rates.shape) < rates
        others = self.n_items - rates.shape[1]
        relevant = rng.binomial(others, np.minimum(self.rest * active, 1.0))
        return Users(labels.astype(np.float64), relevant[:, None].astype(np.float64))

    def _these(self) -> Users:
        return self._users(generator(0, f"power {self.name} these"), self.n_users)

    def _judged(self, rng: np.random.Generator, users: Users, judged: int) -> Both:
        n, listed = users.labels.shape
        among = rng.hypergeometric(listed, self.n_items - listed, judged, size=n)
        seen = rng.random((n, listed)).argsort(axis=1).argsort(axis=1) < among[:, None]
        relevant = users.rest[:, 0].astype(np.int64)
        others = self.n_items - listed
        hits = rng.hypergeometric(relevant, others - relevant, judged - among)
        found = seen * users.labels
        stands_for = self.n_items / judged
        size = np.full(n, float(self.n_items)), np.full(n, float(judged))
        made = []
        for own, worth in self._lists():
            value, place = found[:, own] * worth, seen[:, own] * worth
            if self.estimator == "pooled":
                row_den, den = found, found.sum(axis=1) + hits
            else:
                row_den = np.zeros_like(found) if self.estimator == "horvitz-thompson" else _spread(place, own, listed)
                den = np.full(n, 1 / stands_for) if self.estimator == "horvitz-thompson" else place.sum(axis=1)
            rows = self._rows(seen, _spread(value, own, listed), row_den, hits, size)
            num = value.sum(axis=1) * stands_for
            if self.estimator == "hajek":
                made.append(known_total(num, den * stands_for, np.full(n, worth.sum()), rows=rows))
            else:
                made.append(ratio(num, den * stands_for, rows=rows))
        return made[0], made[1]

    def _rows(self, seen: Bools, num: Floats, den: Floats, hits: Ints, size: tuple[Floats, Floats]) -> SampledRows:
        """Judged items of the lists, and for pooled recall one row for each relevant item beside the lists."""
        n = len(num)
        more = np.repeat(np.arange(n), hits) if self.estimator == "pooled" else np.zeros(0, dtype=np.int64)
        return SampledRows(
            unit=np.concatenate([np.nonzero(seen)[0], more]),
            sums=np.concatenate([np.stack([num[seen], den[seen]], axis=1), np.tile([0.0, 1.0], (len(more), 1))]),
            n_judged=size[1],
            n_candidates=size[0],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Users:
    """Labels of the items that one of the models lists, and how many others are relevant."""

    labels: Floats
    rest: Floats


def _spread(values: Floats, own: Ints, listed: int) -> Floats:
    """Values of one list at the places of all listed items."""
    found = np.zeros((len(values), listed))
    found[:, own] = values
    return found


@dataclass(frozen=True, slots=True)
class SessionWorld:
    """Users with `sessions` sessions each, whose rewards are alike; a target whose weights are known.

    A session has one of the `weights` with its `chances`, and earns 1 with probability `rewards`, times how active its
    user is (a beta distribution around 1 of this `spread`). The target is compared with the policy that logged.
    """

    name: str
    n_users: int
    sessions: int = 4
    estimator: str = "ips"
    weights: tuple[float, ...] = (0.0, 0.5, 1.0, 3.0)
    chances: tuple[float, ...] = (0.25, 0.3, 0.25, 0.2)
    rewards: tuple[float, ...] = (0.17, 0.2, 0.2, 0.23)
    alike: float = 0.5

    @property
    def rows(self) -> float:
        return float(self.sessions)

    @property
    def interval(self) -> Interval:
        return Population()

    def difference(self) -> float:
        weight, chance, reward = (np.array(part) for part in (self.weights, self.chances, self.rewards))
        ours = float((weight * chance * reward).sum())
        if self.estimator == "snips":
            ours /= float((weight * chance).sum())
        return ours - float((chance * reward).sum())

    def draw(self, rng: np.random.Generator) -> Both:
        first, second = self._logged(rng, self.n_users, self.sessions)
        by_user = Clusters.numbered(self.n_users)
        owner = first.clusters.of_row
        return first.reduce(owner, by_user), second.reduce(owner, by_user)

    def components(self, rng: np.random.Generator) -> Components:
        first, second = self._logged(rng, PILOT, self.sessions // 2)
        whole = components_of(first, second, users=PILOT)
        if whole is None:
            raise ValueError(f"{self.name}: the pilot shows no spread")
        return components_of_sessions(first, second, whole, users=PILOT)

    def _logged(self, rng: np.random.Generator, users: int, sessions: int) -> Both:
        """Terms of single sessions."""
        owner = np.repeat(np.arange(users), sessions)
        kind = rng.choice(len(self.weights), p=self.chances, size=len(owner))
        active = 1 + self.alike * (2 * rng.beta(1.0, 1.0, users) - 1)
        reward = (rng.random(len(owner)) < np.array(self.rewards)[kind] * active[owner]).astype(np.float64)
        weight = np.array(self.weights)[kind]
        clusters = Clusters(owner, np.arange(users, dtype=np.uint64))
        ones = np.ones(len(owner))
        below = weight if self.estimator == "snips" else ones
        return ratio(weight * reward, below, clusters=clusters), ratio(reward, ones, clusters=clusters)


PowerWorld = ListWorld | SessionWorld


def worlds() -> tuple[PowerWorld, ...]:
    """Every kind of estimate, few users and many, few and many judged items, exactly these users, sessions."""
    precision = ListWorld("precision, 300 users x 20", 300, 20, better=0.3, worse=0.18)
    hajek = replace(precision, name="precision hajek, 200 users x 20", n_users=200, estimator="hajek", worse=0.16)
    recall = ListWorld(
        "recall pooled, 300 users x 20", 300, 20, "Recall@10", "pooled", better=0.3, worse=0.17, rest=0.02
    )
    dcg = ListWorld("DCG, 400 users x 20", 400, 20, "DCG@10", better=0.28, worse=0.2)
    ips, snips = SessionWorld("sessions ips, 500 users x 4", 500), SessionWorld("sessions snips, 500 users x 4", 500)
    snips = replace(snips, estimator="snips")
    return (
        recall,
        replace(recall, name="recall pooled, 60 users x 40", n_users=60, judged=40, better=0.35, worse=0.1),
        precision,
        replace(precision, name="precision, 1,000 users x 40", n_users=1000, judged=40, better=0.25, worse=0.21),
        hajek,
        replace(hajek, name="precision hajek, 40 users x 30", n_users=40, judged=30, better=0.4, worse=0.15),
        dcg,
        replace(dcg, name="DCG hajek, 150 users x 30", n_users=150, judged=30, estimator="hajek", better=0.3),
        replace(precision, name="precision, 20 users x 60", n_users=20, judged=60, better=0.4, worse=0.2),
        replace(precision, name="precision, 12 users x 150", n_users=12, judged=150, better=0.4, worse=0.2),
        replace(precision, name="all labels, 25 users", n_users=25, judged=300, better=0.35, worse=0.25),
        replace(precision, name="close models, 2,000 users x 60", n_users=2000, judged=60, better=0.22, worse=0.2),
        replace(
            precision, name="exactly these, precision, 100 users x 30", n_users=100, judged=30, worse=0.2,
            exactly_these=True,
        ),
        replace(
            recall, name="exactly these, recall, 80 users x 40", n_users=80, judged=40, worse=0.15, exactly_these=True
        ),
        ips,
        replace(ips, name="sessions ips, 150 users x 8", n_users=150, sessions=8, alike=0.9),
        snips,
        replace(snips, name="sessions snips, 40 users x 30", n_users=40, sessions=30, alike=0.9),
    )  # fmt: skip


def compare_power(world: PowerWorld, draws: int, seed: int) -> pl.DataFrame:
    """The difference of a world, the power planned from its pilot, and the share of draws in which it is significant."""
    difference, sure = world.difference(), Sure()
    components = world.components(generator(seed, f"power {world.name} pilot")).towards(difference)
    planned = power_of(components, difference, users=world.n_users, rows=world.rows, sure=sure)
    rng = generator(seed, f"power {world.name}")
    n_significant = 0
    for _ in range(draws):
        spread = between(world.interval, *world.draw(rng), level=sure.level)
        enough = spread.informative >= FEWEST and not math.isnan(spread.stderr)
        n_significant += enough and spread.p < sure.alpha and spread.value * difference > 0
    row = {"world": world.name, "difference": difference, "planned": planned, "shown": n_significant / draws}
    return pl.DataFrame([row]).with_columns(
        noise=(pl.col("shown") * (1 - pl.col("shown"))).clip(1e-12).sqrt() / math.sqrt(draws),
        apart=pl.col("planned") - pl.col("shown"),
    )


CLOSE = 0.03  # that a plan may be apart from what happens


def measure(run: Run) -> Measured:
    """Power as planned beside the share of data sets of the planned size in which the difference was shown."""
    draws, every = (4000, 1) if run.full else (5, 4)  # the fourth is another kind of estimate
    arguments = [(world, draws, run.seed) for world in worlds()[::every]]
    rows = pl.concat(run.pieces(compare_power, arguments, about="drawing worlds"))
    return Measured({"worlds": rows.to_dicts()}, {"draws": draws})


STUDIES = (
    Study(
        "power", "Is a true difference significant as often as was planned?", measure, minutes=4,
    ),
)  # fmt: skip
