"""Environments of ranked impressions: users view positions of a logged list, and other rankings are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank_research.validation.environments import (
    SEED,
    Array,
    Environment,
    Parameters,
    draw_scores,
    draw_tastes,
    exchanged_models,
    make_population,
    model_names,
    named_values,
)


def view_probabilities(family: str, steepness: float, length: int) -> Array:
    """P(viewed) of each position, as the position models of the same names have it."""
    rank = np.arange(1, length + 1)
    if family == "log":
        return np.asarray(1 / np.log2(rank + 1))
    if family == "exp":
        return np.asarray(steepness ** (rank - 1))
    return np.concatenate([[1.0], np.cumprod(rank[:-1] / (rank[:-1] + steepness))])


def ranked_environment(name: str, key: tuple[int, ...], p: Parameters) -> Environment:
    """An environment of ranked impressions, evaluated by `tr.off_policy`: the value is the mean reward per session."""
    rng = np.random.default_rng([SEED, *key, 2])
    n_base = 4000 // len(exchanged_models(p))
    tastes = draw_tastes(rng, n_base, p["length"], p)
    scores = draw_scores(rng, tastes, p)
    ranks = (-scores).argsort(axis=2).argsort(axis=2) + 1
    logging = p["logging_quality"] * tastes.affinity + rng.normal(size=(p["logging_orders"], *tastes.affinity.shape))
    orders = (-logging).argsort(axis=2).argsort(axis=2) + 1
    n_sessions = np.ones(n_base, dtype=np.int64)
    if p["sessions"] == "few":
        n_sessions += rng.poisson(p["mean_sessions"] - 1, n_base)
    elif p["sessions"] == "pareto":
        tail = rng.pareto(p["pareto"], n_base)
        n_sessions += np.minimum(np.floor((p["mean_sessions"] - 1) * tail / tail.mean()), 200).astype(np.int64)
    curves = p.get("surfaces", [(p["family"], p["steepness"])])
    views = np.array([view_probabilities(family, steepness, p["length"]) for family, steepness in curves])
    view = views.mean(axis=0)  # surfaces are equally frequent, and unrelated to users
    by_user = (tastes.probability * view[ranks - 1]).sum(axis=2) * n_sessions
    population = make_population(rng, tastes, p, by_user)
    truth = named_values(p, "reward", "users", population.mean(by_user, n_sessions))
    by_log = (tastes.probability * view[orders - 1].mean(axis=0)).sum(axis=1) * n_sessions
    as_models = np.repeat(by_log[None], p["n_models"], axis=0)
    truth["log", "reward", "users"] = float(population.mean(as_models, n_sessions)[0])

    def evaluate(rng: np.random.Generator) -> Any:
        base, copies = population.sample(rng, p["n_users"])
        owner = np.repeat(np.arange(p["n_users"]), n_sessions[base])
        unit = base[owner]
        position = orders[rng.integers(p["logging_orders"], size=len(unit)), unit]
        target_ranks = {
            model_name: ranks[population.exchange[copies[owner], model], unit]
            for model, model_name in enumerate(model_names(p))
        }
        return evaluate_ranked(p, owner, position, tastes.probability[unit], target_ranks, views, rng)

    return Environment(name, key, p, truth, evaluate)


def evaluate_ranked(
    p: Parameters,
    owner: Array,
    position: Array,
    liking: Array,
    ranks: Mapping[str, Array],
    views: Array,
    rng: np.random.Generator,
) -> Any:
    """One log of sessions [sessions, items], evaluated for each target."""
    surface = rng.integers(len(views), size=len(owner)) if len(views) > 1 else np.zeros(len(owner), dtype=np.int64)
    view_probability = views[surface[:, None], position - 1]
    # users view every position down to where they stop, or each position independently
    viewed = rng.random((len(owner), 1) if p["views"] == "depth" else position.shape) < view_probability
    reward = (viewed & (rng.random(position.shape) < liking)).astype(float)
    if p["reward"] == "lognormal":
        reward *= rng.lognormal(-(p["reward_spread"] ** 2) / 2, p["reward_spread"], position.shape)
    session, item = np.nonzero(viewed)
    columns = {
        "session": session, "item": item, "position": position[session, item], "reward": reward[session, item],
        **{f"rank_{name}": rank[session, item] for name, rank in ranks.items()},
    }  # fmt: skip
    if p.get("with_candidates", True):
        columns["candidates"] = np.full(len(session), p["length"])
    if p.get("with_surface", False):
        columns["surface"] = surface[session]
    if p["sessions"] != "one":
        columns["user"] = owner[session]
    targets = {name: tr.exposure.RankColumn(f"rank_{name}") for name in ranks}
    if p["with_log"]:
        targets["log"] = tr.exposure.RankColumn("position")
    family = p["family"]
    position_model = f"fit:{family}" if p["fitted"] else family if family == "log" else f"{family}:{p['steepness']!r}"
    return tr.off_policy(
        pl.DataFrame(columns), targets, position=position_model, rewards=["reward"], estimators=p["estimators"],
        baseline="m0" if p["baseline"] else None, threads=1,
    )  # fmt: skip
