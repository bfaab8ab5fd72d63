"""Populations of users with known labels, from which few are drawn and judged: what `evaluate` is given.

Every user has a twin with the lists of models `a` and `b` exchanged, so that these two are equal in truth without being
alike for anybody; `c` is worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.chance import generator
from truerank.core.results import Results
from truerank.evaluation.designing import design_exposure
from truerank.evaluation.judged import evaluate
from truerank.exposure.kinds import BiasedExposure, Exposure
from truerank.ranks.scores.scores import dense
from truerank.uncertainty.intervals import Bootstrap, Design, Interval
from truerank_research.validation.calibration.said import Said, said_of

TWINS = 1500  # pairs of users in a population
MODELS = ("a", "b", "c")
PUBLISHED, CORRECTED = "published", "corrected"
RARE = 0.001  # the propensity of what is hardly ever shown


@dataclass(frozen=True, slots=True)
class JudgedWorld:
    """A population of users, and how `n_users` of them are drawn and judged.

    `judged` items of each user are drawn, or between 1 and 200 where it is None; `active` is the share of users with a
    relevant item. `ties` rounds scores to few values; `excluded` candidates are left out for every second user. With
    `biased` exposure items have propensities of .1 to .6, and a share of `rare` ones a thousandth. Where they are
    `fitted`, the log does not have them: a logistic model of the feature that they follow from is fitted to it. With
    `full` labels every candidate is judged. With `designed` exposure the `judged` items of each user are those that a
    design for `a` and `b` chose, which does not know `c`.
    """

    name: str
    n_users: int
    judged: int | None = 20
    active: float = 0.6
    ties: bool = False
    excluded: int = 0
    biased: bool = False
    rare: float = 0.0
    fitted: bool = False
    designed: bool = False
    full: bool = False
    interval: str = "population"
    n_items: int = 200
    metrics: tuple[str, ...] = ("Recall@20", "Precision@20")
    estimators: tuple[str, ...] = ("pooled", "horvitz-thompson", "hajek")

    @property
    def ample(self) -> bool:
        """Whether so much is known that nothing should be warned of; the published mean and models always are."""
        enough = self.n_users >= 1000 and self.active >= 0.5 and self.judged is not None
        return enough and not self.rare and not {PUBLISHED, CORRECTED} & set(self.estimators)

    def n_draws(self, asked: int) -> int:
        """Of the draws that are asked for: a quarter where each fits a model, for every list or without every group."""
        return -(-asked // 4) if self.fitted or CORRECTED in self.estimators else asked

    def draw(self, seed: int, run: int) -> Results:
        """The results of one draw of users and of what is judged."""
        rng = generator(seed, f"calibration {self.name} {run}")
        population = _population(self.n_items, self.active, self.excluded, seed, ties=self.ties)
        unit = self._these(seed) if self.interval == "design" else rng.integers(0, 2 * TWINS, self.n_users)
        if self.designed:
            chance = self._chosen(population, unit, rng)
            return self._evaluated(population, unit, chance > 0, interval=self._interval(), chance=chance)
        return self._evaluated(population, unit, self._shown(population, unit, rng), interval=self._interval())

    def said(self, seed: int, run: int) -> Iterator[Said]:
        return said_of(self.draw(seed, run), run)

    def truth(self, seed: int) -> Results:
        """The results when all users are drawn and every candidate is judged: the estimands themselves.

        An interval for exactly these users is about the users that are drawn again and again.
        """
        population = _population(self.n_items, self.active, self.excluded, seed, ties=self.ties)
        unit = self._these(seed) if self.interval == "design" else np.arange(2 * TWINS)
        return self._evaluated(population, unit, population.candidates[unit], whole=True, interval=None)

    def true_values(self, seed: int) -> dict[tuple[str, str, str], float]:
        """The estimand of each value and difference, by what, metric and estimator."""
        results = self.truth(seed)
        values = {(each.model, each.metric, each.estimator): each.value for each in results.estimates}
        if PUBLISHED in self.estimators:
            values |= self._kept_means(results, seed)
        return values | {
            (f"{model} - a", metric, estimator): value - values["a", metric, estimator]
            for (model, metric, estimator), value in values.items()
            if model != "a"
        }

    def _kept_means(self, results: Results, seed: int) -> dict[tuple[str, str, str], float]:
        """What the published mean estimates: users by their chance π to have a judged relevant item.

        Σ π R / Σ π over users with a relevant item, π = 1 - C(N - N⁺, N-bar) / C(N, N-bar), with no exclusions.
        """
        relevant = _population(self.n_items, self.active, self.excluded, seed, ties=self.ties).labels.sum(axis=1)
        draws = math.comb(self.n_items, self.judged or 0)
        kept = np.array([1 - math.comb(self.n_items - int(n), self.judged or 0) / draws for n in relevant])
        units = results.units().filter(pl.col("estimator") == PUBLISHED, pl.col("defined"))
        weighed = units.with_columns(pl.Series("kept", kept[units["unit"].to_numpy()]))
        mean = (pl.col("kept") * pl.col("value")).sum() / pl.col("kept").sum()
        means = weighed.group_by("model", "metric").agg(mean)
        return {(model, metric, PUBLISHED): float(value) for model, metric, value in means.rows()}

    def _these(self, seed: int) -> Ints:
        """The users of a world of design intervals: whole pairs of twins, so that equal models are equal here too."""
        pairs = generator(seed, f"calibration {self.name}").permutation(TWINS)[: self.n_users // 2]
        return np.concatenate([pairs, pairs + TWINS])

    def _interval(self) -> Interval | None:
        return {"population": None, "design": Design(), "bootstrap": Bootstrap(200)}[self.interval]

    def _propensity(self) -> Floats:
        """Of each item."""
        item = np.arange(self.n_items)
        if self.fitted:
            return np.asarray(1 / (1 + np.exp(1.0 - 1.5 * self._feature())))
        usual = 0.1 + 0.5 * (item % 11) / 10
        return np.where(item % 20 < 20 * self.rare, RARE, usual)

    def _feature(self) -> Floats:
        return (np.arange(self.n_items) % 11) / 5 - 1

    def _exposure(self, *, whole: bool) -> Exposure | str:
        if self.full:
            return "full"
        if self.designed:
            return "designed"
        if not self.fitted or whole:
            return "biased" if self.biased else "random"
        features = pl.DataFrame({"item": np.arange(self.n_items), "feature": self._feature()})
        return BiasedExposure("logistic", item_features=features)

    def _shown(self, population: UserPopulation, unit: Ints, rng: np.random.Generator) -> Bools:
        chance = rng.random((len(unit), self.n_items))
        allowed = population.candidates[unit]
        if self.full:
            return allowed
        if self.biased:
            return allowed & (chance < self._propensity())
        sizes = allowed.sum(axis=1)
        wanted = np.full(len(unit), self.judged or 0)
        if self.judged is None:
            wanted = np.exp(rng.uniform(0, np.log(200), len(unit))).astype(np.int64)
        place = np.where(allowed, chance, 2.0).argsort(axis=1).argsort(axis=1)
        found: Bools = place < np.minimum(wanted, sizes)[:, None]
        return found

    def _chosen(self, population: UserPopulation, unit: Ints, rng: np.random.Generator) -> Floats:
        """The chance of each pair that a design chose, 0 of the others."""
        users, items = np.arange(len(unit)), np.arange(self.n_items)
        known = {name: dense(population.scores[name][unit], users=users, items=items) for name in ("a", "b")}
        seed = int(rng.integers(2**62))
        made = design_exposure(known, metrics=self.metrics[1:], per_user=self.judged or 20, seed=seed).design
        chance = np.zeros((len(unit), self.n_items))
        chance[made.user, made.item] = made.chance
        return chance

    def _evaluated(
        self,
        population: UserPopulation,
        unit: Ints,
        shown: Bools,
        *,
        interval: Interval | None,
        whole: bool = False,
        chance: Floats | None = None,
    ) -> Results:
        row, item = np.nonzero(shown)
        columns: dict[str, np.ndarray[Any, Any]] = {
            "user": row,
            "item": item,
            "label": population.labels[unit[row], item].astype(np.int64),
        }
        if self.biased and (whole or not self.fitted):
            columns["propensity"] = np.ones(len(row)) if whole else self._propensity()[item]
        if self.designed:
            columns["propensity"] = np.ones(len(row)) if chance is None else chance[row, item]
        out_row, out_item = np.nonzero(~population.candidates[unit])
        users, items = np.arange(len(unit)), np.arange(self.n_items)  # few judged rows may not show what is user 0
        return evaluate(
            {name: dense(population.scores[name][unit], users=users, items=items) for name in MODELS},
            pl.DataFrame(columns),
            exposure=self._exposure(whole=whole),
            exclude=pl.DataFrame({"user": out_row, "item": out_item}) if len(out_row) else None,
            metrics=self.metrics,
            estimators=self.estimators,
            baseline="a",
            interval=interval,
            threads=1,
        )


@dataclass(frozen=True, slots=True, eq=False)
class UserPopulation:
    """Labels and scores of all users, and which items compete for each."""

    labels: Bools
    scores: dict[str, Floats]
    candidates: Bools


@lru_cache(maxsize=4)
def _population(n_items: int, active: float, excluded: int, seed: int, *, ties: bool) -> UserPopulation:
    rng = generator(seed, f"calibration population {n_items} {active} {ties} {excluded}")
    shape = (TWINS, n_items)
    taste = rng.normal(size=shape) + np.linspace(1.0, -1.0, n_items)
    strength = rng.gamma(2.0, 0.5, size=(TWINS, 1))
    has_some = rng.random((TWINS, 1)) < active
    labels = has_some & (rng.random(shape) < np.minimum(0.05 * strength * np.exp(0.7 * taste), 0.9))
    noisy = {name: signal * taste + rng.normal(size=shape) for name, signal in (("a", 0.6), ("b", 0.6), ("c", 0.3))}
    if ties:
        noisy = {name: np.round(scores) for name, scores in noisy.items()}
    out = (rng.random(shape).argsort(axis=1) < excluded) & (np.arange(TWINS) % 2 == 0)[:, None]
    twice = {
        "a": np.concatenate([noisy["a"], noisy["b"]]),
        "b": np.concatenate([noisy["b"], noisy["a"]]),
        "c": np.concatenate([noisy["c"], noisy["c"]]),
    }
    return UserPopulation(np.concatenate([labels, labels]), twice, ~np.concatenate([out, out]))
