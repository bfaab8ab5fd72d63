"""Whether plans keep their word: power as planned from a pilot, beside how often true differences are then shown.

Worlds whose truth is known, drawn at the level of what users contribute: thousands of draws take seconds. The pilot has
many users, so that what is compared is the plan and not the luck of a pilot, and half as many judged items or
sessions of each as are planned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.clusters import Clusters
from truerank.core.metric import Additive
from truerank.core.rng import generator
from truerank.core.rows import SampledRows
from truerank.core.terms import Smooth, known_total, ratio
from truerank.inference.intervals import Design, Population, between
from truerank.inference.power import Components, Sure, power_of
from truerank.inference.variance_components import components_of, components_of_sessions
from truerank.inference.verdicts import FEWEST
from truerank.metrics import parse
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

Both = tuple[Smooth, Smooth]
Users = tuple[Floats, Floats]  # labels of the items that one of the models lists, and how many others are relevant
PILOT = 100_000  # users: what is left of the variance between them is the small difference of large numbers
GRID = 4000  # quantiles of how active users are
N_ITEMS, SHARED, SHAPE = 300, 3, 4.0  # items, those in both lists, and the shape of how active users are
# the weights that a session can have, how often it has them, and the chance that it is rewarded
WEIGHTS, CHANCES, REWARDS = np.array([[0.0, 0.5, 1.0, 3.0], [0.25, 0.3, 0.25, 0.2], [0.17, 0.2, 0.2, 0.23]])


@dataclass(frozen=True, slots=True)
class ListWorld:
    """Users of whom `rows` of all items were judged at random, and the lists of two models.

    Of the items in the first list a share `better` is relevant, of those in the second `worse`, of the rest `rest`,
    each times how active a user is, which follows a gamma distribution. The two lists have some items in common.
    """

    name: str
    n_users: int
    rows: int
    metric: str = "Precision@10"
    estimator: str = "horvitz-thompson"
    better: float = 0.3
    worse: float = 0.2
    rest: float = 0.03
    exactly_these: bool = False

    def difference(self) -> float:
        """By the expected number of relevant items at each place; of exactly these users by their labels."""
        first, second = self._worths()
        if self.exactly_these:
            labels, others = self._these()
            apart = labels @ (first - second)
            total = labels.sum() + others.sum()
            return float(apart.sum() / total if self.estimator == "pooled" else apart.mean())
        active = self._active(np.arange(0.5, GRID) / GRID)
        rate = self._rates(active).mean(axis=0)
        expected = float(rate @ (first - second))
        if self.estimator != "pooled":
            return expected
        return expected / float(rate.sum() + (N_ITEMS - len(rate)) * np.minimum(self.rest * active, 1.0).mean())

    def draw(self, rng: np.random.Generator) -> Both:
        users = self._these() if self.exactly_these else self._users(rng, self.n_users)
        return self._judged(rng, users, self.rows)

    def components(self, rng: np.random.Generator) -> Components:
        if self.exactly_these:  # a pilot of the same users, again and again
            labels, others = self._these()
            many = np.tile(labels, (50, 1)), np.tile(others, 50)
        else:
            many = self._users(rng, PILOT)
        pilot = self._judged(rng, many, self.rows // 2)
        spread = components_of(*pilot, users=len(many[0]), design=self.exactly_these)
        assert spread is not None, f"{self.name}: the pilot shows no spread"
        return spread

    # ---- how it is drawn

    def _worths(self) -> Floats:
        """What each listed item is worth in the list of each model; shared items come first, at the same places."""
        metric = parse(self.metric)
        assert isinstance(metric, Additive), self.metric
        assert metric.cutoff is not None, self.metric
        k = metric.cutoff
        worth = metric.rank_discount(np.arange(1.0, k + 1)) / (k if metric.name == "Precision" else 1.0)
        both = np.zeros((2, 2 * k - SHARED))
        both[0, :k] = worth
        both[1, :SHARED], both[1, k:] = worth[:SHARED], worth[SHARED:]
        return both

    def _rates(self, active: Floats) -> Floats:
        """How likely each listed item is relevant; what both list is as likely as in the middle."""
        first, second = self._worths() > 0
        base = np.where(first & second, (self.better + self.worse) / 2, np.where(first, self.better, self.worse))
        return np.minimum(base * active[:, None], 1.0)

    def _active(self, quantile: Floats) -> Floats:
        from truerank.core.special import gammaincinv

        return np.asarray(gammaincinv(SHAPE, quantile) / SHAPE)

    def _users(self, rng: np.random.Generator, n: int) -> Users:
        active = self._active(rng.random(n))
        rates = self._rates(active)
        labels = rng.random(rates.shape) < rates
        others = rng.binomial(N_ITEMS - rates.shape[1], np.minimum(self.rest * active, 1.0))
        return labels.astype(np.float64), others.astype(np.float64)

    def _these(self) -> Users:
        return self._users(generator(0, f"power {self.name} these"), self.n_users)

    def _judged(self, rng: np.random.Generator, users: Users, judged: int) -> Both:
        """Terms with judged items of the lists as rows, for pooled recall also relevant items beside the lists."""
        labels, others = users[0], users[1].astype(np.int64)
        n, listed = labels.shape
        among = rng.hypergeometric(listed, N_ITEMS - listed, judged, size=n)
        seen = rng.random((n, listed)).argsort(axis=1).argsort(axis=1) < among[:, None]
        hits = rng.hypergeometric(others, N_ITEMS - listed - others, judged - among)
        relevant, stands_for = seen * labels, N_ITEMS / judged
        more = np.repeat(np.arange(n), hits if self.estimator == "pooled" else 0)
        unit, beside = np.concatenate([np.nonzero(seen)[0], more]), np.tile([0.0, 1.0], (len(more), 1))
        terms = []
        for worth in self._worths():
            value, place = relevant * worth, seen * worth
            row_den, den = {
                "pooled": (relevant, relevant.sum(axis=1) + hits),
                "hajek": (place, place.sum(axis=1)),
                "horvitz-thompson": (np.zeros_like(value), np.full(n, 1 / stands_for)),
            }[self.estimator]
            sums = np.concatenate([np.stack([value[seen], row_den[seen]], axis=1), beside])
            rows = SampledRows(unit, sums, np.full(n, float(judged)), np.full(n, float(N_ITEMS)))
            num, den = value.sum(axis=1) * stands_for, den * stands_for
            known = np.full(n, worth.sum())
            terms.append(
                known_total(num, den, known, rows=rows) if self.estimator == "hajek" else ratio(num, den, rows=rows)
            )
        return terms[0], terms[1]


@dataclass(frozen=True, slots=True)
class SessionWorld:
    """Users with `rows` sessions each, whose rewards are alike; a target whose weights are known.

    A session earns 1 with the probability of its kind, times how active its user is (a beta distribution around 1). The
    target is compared with the policy that logged.
    """

    name: str
    n_users: int
    rows: int = 4
    estimator: str = "ips"
    alike: float = 0.5
    exactly_these: ClassVar[bool] = False

    def difference(self) -> float:
        ours = float((WEIGHTS * CHANCES * REWARDS).sum())
        if self.estimator == "snips":
            ours /= float((WEIGHTS * CHANCES).sum())
        return ours - float((CHANCES * REWARDS).sum())

    def draw(self, rng: np.random.Generator) -> Both:
        first, second = self._logged(rng, self.n_users, self.rows)
        by_user = Clusters.numbered(self.n_users)
        owner = first.clusters.of_row
        return first.reduce(owner, by_user), second.reduce(owner, by_user)

    def components(self, rng: np.random.Generator) -> Components:
        pilot = self._logged(rng, PILOT, self.rows // 2)
        whole = components_of(*pilot, users=PILOT)
        assert whole is not None, f"{self.name}: the pilot shows no spread"
        return components_of_sessions(*pilot, whole, users=PILOT)

    def _logged(self, rng: np.random.Generator, users: int, sessions: int) -> Both:
        """Terms of single sessions."""
        owner = np.repeat(np.arange(users), sessions)
        kind = rng.choice(len(WEIGHTS), p=CHANCES, size=len(owner))
        active = 1 + self.alike * (2 * rng.beta(1.0, 1.0, users) - 1)
        reward = (rng.random(len(owner)) < REWARDS[kind] * active[owner]).astype(np.float64)
        weight = WEIGHTS[kind]
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
        replace(recall, name="recall pooled, 60 users x 40", n_users=60, rows=40, better=0.35, worse=0.1),
        precision,
        replace(precision, name="precision, 1,000 users x 40", n_users=1000, rows=40, better=0.25, worse=0.21),
        hajek,
        replace(hajek, name="precision hajek, 40 users x 30", n_users=40, rows=30, better=0.4, worse=0.15),
        dcg,
        replace(dcg, name="DCG hajek, 150 users x 30", n_users=150, rows=30, estimator="hajek", better=0.3),
        replace(precision, name="precision, 20 users x 60", n_users=20, rows=60, better=0.4, worse=0.2),
        replace(precision, name="precision, 12 users x 150", n_users=12, rows=150, better=0.4, worse=0.2),
        replace(precision, name="all labels, 25 users", n_users=25, rows=300, better=0.35, worse=0.25),
        replace(precision, name="close models, 2,000 users x 60", n_users=2000, rows=60, better=0.22, worse=0.2),
        replace(
            precision, name="exactly these, precision, 100 users x 30", n_users=100, rows=30, worse=0.2,
            exactly_these=True,
        ),
        replace(
            recall, name="exactly these, recall, 80 users x 40", n_users=80, rows=40, worse=0.15, exactly_these=True
        ),
        ips,
        replace(ips, name="sessions ips, 150 users x 8", n_users=150, rows=8, alike=0.9),
        snips,
        replace(snips, name="sessions snips, 40 users x 30", n_users=40, rows=30, alike=0.9),
    )  # fmt: skip


def compare_power(world: PowerWorld, draws: int, seed: int) -> pl.DataFrame:
    """The difference of a world, the power planned from its pilot, and the share of draws in which it is significant."""
    difference, sure = world.difference(), Sure()
    components = world.components(generator(seed, f"power {world.name} pilot")).towards(difference)
    planned = power_of(components, difference, users=world.n_users, rows=float(world.rows), sure=sure)
    rng = generator(seed, f"power {world.name}")
    interval = Design() if world.exactly_these else Population()
    n_significant = 0
    for _ in range(draws):
        spread = between(interval, *world.draw(rng), level=sure.level)
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
