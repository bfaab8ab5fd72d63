"""Named corner cases of interim analyses: users arrive, and `tr.watch` looks at the data several times."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank_research.validation.environments import Array, Environment, Parameters, Truth
from truerank_research.validation.labelled_worlds import (
    label_columns,
    labelled_pairs,
    make_labelled_world,
    model_scores,
)

N_LOOKS = 8
K = 10
DECIDED = {"SHOWN": "better", "OPPOSITE": "worse"}
UNDECIDED = ("CLOSE", "GOING_ON", "EARLY", "REFUSED")


def watched_population(name: str, key: tuple[int, ...], p: Parameters) -> Environment:
    """Users of a population who arrive in random order; rows of returning users arrive at any time from then on."""
    world, population, truth = make_labelled_world(key, p)

    def draw(rng: np.random.Generator) -> tuple[dict[str, Array], dict[str, Any]]:
        base, copies = population.sample(rng, p["n_users"])
        columns = label_columns(world, p, base, labelled_pairs(world, p, base, rng))
        arrival = (np.arange(p["n_users"]) + 0.5) / p["n_users"]
        time = arrival[columns["user"]]
        if p.get("returning", False):
            time = time + (1 - time) * rng.random(len(time))
            first = np.full(p["n_users"], 2.0)
            np.minimum.at(first, columns["user"], time)
            time = np.where(time == first[columns["user"]], arrival[columns["user"]], time)
        return columns | {"time": time}, model_scores(world, population, p, base, copies)

    return _watched(name, key, p, truth, draw)


def watched_lists(name: str, key: tuple[int, ...], p: Parameters) -> Environment:
    """Two lists of other items, the same for all users, with equal precision over `kinds` of users.

    A kind has its share of users and P(relevant) of an item of each list; `propensities` are those of each list.
    """
    shares = np.array([share for share, *_ in p["kinds"]])
    relevance = np.array([lists for _, *lists in p["kinds"]]).repeat(K, axis=1)
    propensity = np.array(p["propensities"]).repeat(K)
    metric = f"Precision@{K}"
    truth = {(f"m{model}", metric, "users"): float(shares @ relevance[:, model * K]) for model in range(2)}
    users, items = np.arange(p["n_users"]), np.arange(2 * K)
    scores = {
        f"m{model}": tr.scores.dense(np.tile(np.where(items // K == model, 1.0, 0.0) - items / 1e3, (len(users), 1)),
                                     users=users, items=items)
        for model in range(2)
    }  # fmt: skip

    def draw(rng: np.random.Generator) -> tuple[dict[str, Array], dict[str, Any]]:
        probability = relevance[rng.choice(len(shares), len(users), p=shares)]
        labels = rng.random(probability.shape) < probability
        user, item = np.nonzero(rng.random(labels.shape) < propensity)
        columns = {"user": user, "item": item, "label": labels[user, item].astype(float)}
        if p["exposure"] != "full":
            columns["propensity"] = propensity[item]
        return columns | {"time": (user + 0.5) / len(users)}, scores

    return _watched(name, key, p | {"metrics": [metric]}, truth, draw)


def _watched(
    name: str,
    key: tuple[int, ...],
    p: Parameters,
    truth: Truth,
    draw: Callable[[np.random.Generator], tuple[dict[str, Array], dict[str, Any]]],
) -> Environment:
    """Rows with times in (0, 1], looked at several times: the verdict is the first decision of any look."""

    def evaluate(rng: np.random.Generator) -> Any:
        columns, scores = draw(rng)
        rows = pl.DataFrame(columns)
        verdict = "not shown"
        for look in range(1, N_LOOKS + 1):
            so_far = rows.filter(pl.col("time") <= look / N_LOOKS)
            watched = tr.watch(
                scores, so_far, require=f"m0 > m1: {p['metrics'][0]}", exposure=p["exposure"], metrics=p["metrics"],
                estimators=p["estimators"], planned=p["n_users"], threads=1,
            )  # fmt: skip
            state = watched.pairs[0].state.name
            if state not in (*DECIDED, *UNDECIDED):
                raise ValueError(f"unknown state {state} of watch")
            if state in DECIDED:
                verdict = DECIDED[state]
                break
        pair = watched.pairs[0]
        comparison = SimpleNamespace(
            model="m0", baseline="m1", metric=pair.metric, estimator=pair.estimator, difference=math.nan,
            low=math.nan, high=math.nan, verdict=verdict, reasons=(),
        )  # fmt: skip
        return SimpleNamespace(estimates=[], comparisons=[comparison], messages=watched.messages)

    return Environment(name, key, p, truth, evaluate)
