"""Intervals of coverage and inequality, in populations whose lists are all known.

As many users are drawn again and again; what is to be covered is the mean over all draws, the value that as many users
have on average. Four worlds: a long tail that few users reach, tastes shared by groups of users, a small catalogue that
everybody fills, and one list for nearly everybody, where one user in fifty has a list of rare items instead. The second
model lists other items to a part of users.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.clusters import Clusters
from truerank.core.counted import CountedItems, CountForm, Covered, Inequality
from truerank.inference.intervals import Population
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

K = 10
POPULATION, SMALL = 20_000, 400
SIZES = (20, 50, 200, 1000)
LEVEL = 0.95
SEEDS = 1000  # of each seed of the study: one for the worlds, one for each number of users
OF_WORLDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class ListedPopulation:
    """Lists of two models for everybody, [users x K] items of a catalogue."""

    n_items: int
    lists: dict[str, Ints]

    @property
    def n_users(self) -> int:
        return len(self.lists["first"])


def rare_world(n_items: int, share: float, *, rng: np.random.Generator, n_users: int) -> ListedPopulation:
    """The same K items for everybody, but any others for a share of users; of the second model for half of it."""
    rare = rng.random(n_users)
    other = K + rng.integers(0, (n_items - K) // K, n_users)[:, None] * K + np.arange(K)
    lists = {
        model: np.where((rare < part)[:, None], other, np.arange(K))
        for model, part in (("first", share), ("second", share / 2))
    }
    return ListedPopulation(n_items, lists)


def zipf_world(
    n_items: int, exponent: float, groups: int, *, rng: np.random.Generator, n_users: int
) -> ListedPopulation:
    """Items by Zipf's law, in another order for each group; the second model is steeper for two thirds of users."""
    base = -exponent * np.log(np.arange(1, n_items + 1))
    weight = np.stack([rng.permutation(base) if groups > 1 else base for _ in range(groups)])
    group = rng.integers(0, groups, n_users)
    first = _drawn(weight[group], rng)
    steeper = _drawn(1.3 * weight[group], rng)
    changed = rng.random(n_users) < 2 / 3
    return ListedPopulation(n_items, {"first": first, "second": np.where(changed[:, None], steeper, first)})


def _drawn(weight: Floats, rng: np.random.Generator) -> Ints:
    """K items of each row without replacement (Gumbel's trick), in parts."""
    parts = []
    for part in np.array_split(weight, 40):
        keys = part + rng.gumbel(size=part.shape)
        parts.append(np.argpartition(-keys, K, axis=1)[:, :K])
    return np.concatenate(parts)


WORLDS: dict[str, Callable[..., ListedPopulation]] = {
    "long tail": partial(zipf_world, n_items=2000, exponent=1.0, groups=1),
    "groups of taste": partial(zipf_world, n_items=1000, exponent=0.7, groups=25),
    "small catalogue": partial(zipf_world, n_items=60, exponent=0.5, groups=1),
    "rare users": partial(rare_world, n_items=2000, share=0.02),
}


@cache
def listed_populations(n_users: int, seed: int) -> dict[str, ListedPopulation]:
    """All worlds by their names, one after the other from one stream of chance."""
    rng = np.random.default_rng(SEEDS * seed + OF_WORLDS)
    return {name: make(rng=rng, n_users=n_users) for name, make in WORLDS.items()}


def counted(found: ListedPopulation, model: str, users: Ints, form: CountForm) -> CountedItems:
    n = len(users)
    return CountedItems(form, found.lists[model][users], np.ones(n, dtype=bool), found.n_items, Clusters.numbered(n))


def list_intervals(found: ListedPopulation, n: int, *, draws: int, rng: np.random.Generator) -> pl.DataFrame:
    """Of each draw of n users: the first model's value and the difference, each with its interval."""
    whole = float(found.n_items)
    forms: dict[str, CountForm] = {"Coverage": Covered(whole), "Gini": Inequality(whole)}
    rows = []
    for _ in range(draws):
        users = rng.integers(0, found.n_users, n)
        for metric, form in forms.items():
            terms = {model: counted(found, model, users, form) for model in found.lists}
            alone, apart = Population().spreads(terms, [("second", "first")], level=LEVEL)
            for what, spread in (("value", alone["first"]), ("difference", apart["second", "first"])):
                rows.append((metric, what, spread.value, spread.stderr, spread.low, spread.high))
    return pl.DataFrame(rows, schema=["metric", "what", "value", "stderr", "low", "high"], orient="row")


def held(drawn: pl.DataFrame) -> list[dict[str, Any]]:
    """By metric: mean and sd over draws, the mean standard error, and how often intervals that are known hold the mean.

    `without` is the share of draws that have no interval.
    """
    rows = []
    for (metric, what), part in drawn.group_by("metric", "what", maintain_order=True):
        value, stderr, low, high = part.select("value", "stderr", "low", "high").to_numpy().T
        truth, known = value.mean(), ~np.isnan(stderr)
        inside = (low[known] <= truth) & (truth <= high[known])
        rows.append(
            {
                "metric": metric,
                "what": what,
                "mean": float(truth),
                "sd": float(value.std(ddof=1)),
                "stderr": float(np.sqrt(np.mean(stderr[known] ** 2))) if known.any() else None,
                "held": float(inside.mean()) if known.any() else None,
                "without": float(1 - known.mean()),
            }
        )
    return rows


def draw_lists(world: str, n_users: int, draws: int, everybody: int, seed: int) -> pl.DataFrame:
    """All draws of so many users of a population."""
    rng = np.random.default_rng(SEEDS * seed + SIZES.index(n_users))
    return list_intervals(listed_populations(everybody, seed)[world], n_users, draws=draws, rng=rng)


def measure(run: Run) -> Measured:
    """How often intervals of coverage and Gini hold the value that as many users have on average."""
    draws, everybody, sizes = (2000, POPULATION, SIZES) if run.full else (20, SMALL, SIZES[:2])
    cases = [(world, n) for world in WORLDS for n in sizes]
    tables = run.pieces(draw_lists, [(*case, draws, everybody, run.seed) for case in cases], about="drawing users")
    rows = [
        {"world": world, "users": n, **row}
        for (world, n), table in zip(cases, tables, strict=True)
        for row in held(table)
    ]
    return Measured({"intervals": rows}, {"draws": draws, "population": everybody})


STUDIES = (
    Study(
        "lists", "Do intervals of catalogue coverage and Gini cover the true value in 95% of draws?",
        measure, minutes=2,
    ),
)  # fmt: skip
