"""Environments of labelled pairs and of ranked impressions: how a draw samples a population and evaluates it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank_research.validation.environments import (
    SEED,
    Array,
    Environment,
    Parameters,
    Population,
    Tastes,
    Truth,
    discounts,
    draw_scores,
    draw_tastes,
    exchanged_models,
    expected_discounts,
    make_population,
    model_names,
    named_values,
    true_values,
    user_values,
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


@dataclass(frozen=True, slots=True, eq=False)
class LabelledWorld:
    """Base users with complete labels, scores, and how labelled pairs are sampled; arrays are [base users, items].

    `n_rows` is the number of uniform draws of each user, `propensity` P(labelled) of each pair; None where it does not
    apply. `judge` predicts labels; `is_listed` are pairs in the top K of a model.
    """

    labels: Array
    scores: Array
    is_candidate: Array
    n_rows: Array | None
    propensity: Array | None
    judge: Array | None
    is_listed: Array | None


def labelled_environment(name: str, key: tuple[int, ...], p: Parameters) -> Environment:
    """An environment of labelled pairs, evaluated by `tr.evaluate`."""
    world, population, truth = make_labelled_world(key, p)

    def evaluate(rng: np.random.Generator) -> Any:
        return evaluate_labelled(world, population, p, rng)

    return Environment(name, key, p, truth, evaluate)


def make_labelled_world(key: tuple[int, ...], p: Parameters) -> tuple[LabelledWorld, Population, Truth]:
    """Base users with labels and scores, the law by which they are drawn, and the true values under it."""
    rng = np.random.default_rng([SEED, *key, 2])
    n_base = int(np.clip(1_000_000 // p["n_items"], 1500, 6000)) // len(exchanged_models(p))
    tastes = draw_tastes(rng, n_base, p["n_items"], p)
    labels = rng.random(tastes.probability.shape) < tastes.probability
    scores = draw_scores(rng, tastes, p)
    if p["ties"]:
        scores = np.round(scores)
    is_candidate = np.ones(labels.shape, dtype=bool)
    if p["excluded"]:
        is_candidate = rng.random(labels.shape) >= p["excluded"] * rng.uniform(0, 2, size=(n_base, 1))
        labels = labels & is_candidate
        scores = np.where(is_candidate, scores, -np.inf)
    values = {metric: np.array([user_values(metric, table, labels) for table in scores]) for metric in p["metrics"]}
    totals = values[p["metrics"][0]]
    if p["exposure"] in ("full", "holdout"):
        is_recall = p["metrics"][0].startswith("Recall")
        totals = totals * labels.any(axis=1) / (np.maximum(labels.sum(axis=1), 1) if is_recall else 1)
    population = make_population(rng, tastes, p, totals)
    n_rows = _row_counts(rng, tastes, is_candidate, p)
    propensity = _propensities(tastes, scores, is_candidate, p)
    judge = _judge(rng, labels, scores, tastes, p)
    world = LabelledWorld(labels, scores, is_candidate, n_rows, propensity, judge, _listed_pairs(scores, p))
    return world, population, true_values(population, p, values, labels.sum(axis=1))


def _row_counts(rng: np.random.Generator, tastes: Tastes, is_candidate: Array, p: Parameters) -> Array | None:
    """The number of labelled items of each user under random exposure, whatever their labels."""
    if p["exposure"] != "random" or p["unequal_rows"] == "rate":
        return None
    n_rows = np.full(len(is_candidate), float(p["rows"]))
    if p["unequal_rows"] != "equal":
        n_rows *= rng.lognormal(0, p["rows_spread"], len(n_rows))
    if p["unequal_rows"] == "with activity":
        n_rows *= tastes.activity ** p["rows_activity"]
    return np.clip(np.round(n_rows), 1, is_candidate.sum(axis=1)).astype(np.int64)


def _propensities(tastes: Tastes, scores: Array, is_candidate: Array, p: Parameters) -> Array | None:
    """P(labelled) of each pair: a rate, a design for some of the models, or a log that follows popularity and taste."""
    n_items = p["n_items"]
    if p["exposure"] == "random" and p["unequal_rows"] == "rate":
        return np.where(is_candidate, min(max(p["rows"], 4) / n_items, 0.9), 0.0)
    if p["exposure"] == "designed":
        by_rank = 1 / np.arange(1, n_items + 1) ** 0.5 * (np.arange(n_items) < max(_cutoff(p), 5))
        wanted = np.sqrt(sum(expected_discounts(table, by_rank) ** 2 for table in scores[: p["designed_models"]]))
        wanted = np.where(is_candidate, wanted, 0.0)
        targeted = (1 - p["uniform_share"]) * p["rows"] * wanted / wanted.sum(axis=1, keepdims=True)
        return np.where(is_candidate, np.minimum(p["uniform_share"] * p["rows"] / n_items + targeted, 1.0), 0.0)
    if p["exposure"] == "biased":
        popular = tastes.affinity.mean(axis=0)
        leaning = p["exposure_popularity"] * popular + p["exposure_taste"] * (tastes.affinity - popular)
        odds = np.exp(leaning) / np.exp(leaning).mean() * p["rows"] / n_items
        return np.where(is_candidate, np.clip(odds, p["floor"], 0.95), 0.0)
    return None


def _cutoff(p: Parameters) -> int:
    cutoffs = [int(metric.partition("@")[2].partition("(")[0]) for metric in p["metrics"] if "RBP" not in metric]
    return max(cutoffs, default=10)


def _judge(rng: np.random.Generator, labels: Array, scores: Array, tastes: Tastes, p: Parameters) -> Array | None:
    """Predicted labels of all pairs: useless, good, or biased towards the list of the first model."""
    if p["judge"] == "none":
        return None
    if p["judge"] == "scores":  # of any scale, with heavy tails
        return np.exp(1.5 * (tastes.affinity + rng.normal(size=labels.shape)))
    probability = np.where(labels, p["sensitivity"], 1 - p["specificity"])
    if p["judge"] in ("useless", "contains labels"):
        probability = np.full(labels.shape, 0.3)
    if p["judge"] == "biased":
        favoured = expected_discounts(scores[0], discounts(f"Recall@{_cutoff(p)}", p["n_items"]))
        probability = np.clip(probability + 0.4 * favoured, 0, 1)
    return np.asarray(rng.random(labels.shape) < probability, dtype=float)


def _listed_pairs(scores: Array, p: Parameters) -> Array | None:
    """Pairs in the top K of any model, where the judge predicts labels."""
    if p["judge"] in ("none", "scores"):
        return None
    top = discounts(f"Recall@{_cutoff(p)}", p["n_items"])
    return np.asarray(np.any([expected_discounts(table, top) > 0 for table in scores], axis=0))


def labelled_pairs(world: LabelledWorld, p: Parameters, base: Array, rng: np.random.Generator) -> Array:
    """Which pairs [users, items] of these users are labelled."""
    is_candidate = world.is_candidate[base]
    if p["exposure"] == "full":
        return is_candidate
    if p["exposure"] == "holdout":
        return world.labels[base]
    if world.n_rows is not None:
        keys = np.where(is_candidate, rng.random(is_candidate.shape, dtype=np.float32), 2.0)
        n_rows = world.n_rows[base]
        limit = np.sort(keys, axis=1)[np.arange(len(base)), n_rows - 1]
        return np.asarray(keys <= limit[:, None])
    assert world.propensity is not None
    probability = world.propensity[base]
    if p["exposure"] == "designed" and p["draws_are"] == "systematic":
        order = np.argsort(rng.random(probability.shape), axis=1)
        steps = np.floor(np.cumsum(np.take_along_axis(probability, order, axis=1), axis=1) + rng.random((len(base), 1)))
        taken = np.diff(steps, axis=1, prepend=0.0) > 0
        result = np.zeros(probability.shape, dtype=bool)
        np.put_along_axis(result, order, taken, axis=1)
        return result
    return np.asarray(rng.random(probability.shape) < probability)


def label_columns(world: LabelledWorld, p: Parameters, base: Array, sampled: Array) -> dict[str, Array]:
    """The labelled pairs as columns, with propensities where the exposure has them."""
    user, item = np.nonzero(sampled)
    columns = {"user": user, "item": item, "label": world.labels[base[user], item].astype(float)}
    if world.propensity is not None and p["exposure"] != "random":
        columns["propensity"] = _stated_propensities(world.propensity, p)[base[user], item]
    return columns


def _stated_propensities(propensity: Array, p: Parameters) -> Array:
    """What the log says of P(labelled): correct, unless the environment has wrong ones."""
    if p.get("stated") == "means of items":
        return np.broadcast_to(propensity.mean(axis=0), propensity.shape)
    return np.asarray(np.sqrt(propensity)) if p.get("stated") == "square roots" else propensity


def model_scores(
    world: LabelledWorld, population: Population, p: Parameters, base: Array, copies: Array
) -> dict[str, Any]:
    """The scores of each model for the users of a draw."""
    users, items = np.arange(len(base)), np.arange(p["n_items"])
    return {
        name: tr.scores.dense(world.scores[population.exchange[copies, model], base], users=users, items=items)
        for model, name in enumerate(model_names(p))
    }


def evaluate_labelled(world: LabelledWorld, population: Population, p: Parameters, rng: np.random.Generator) -> Any:
    """One draw of users and labels, evaluated."""
    base, copies = population.sample(rng, p["n_users"])
    sampled = labelled_pairs(world, p, base, rng)
    if p.get("kept_for_positives", False):
        sampled &= (sampled & world.labels[base]).any(axis=1, keepdims=True)
    users, items = np.arange(p["n_users"]), np.arange(p["n_items"])
    columns = label_columns(world, p, base, sampled)
    if p.get("last_row_dropped", False):
        columns = {name: values[:-1] for name, values in columns.items()}
    rows: Any = pl.DataFrame(columns)
    exposure: Any = p["exposure"]
    if world.propensity is not None:
        rows = tr.read(rows, users=users)  # a user without a labelled pair counts too
        if p["exposure"] == "random":
            exposure = tr.exposure.RandomExposure(float(world.propensity.max()))
    judged: dict[str, Any] = {}
    if world.judge is not None and p["judge"] == "scores":
        judged["assist"] = tr.scores.dense(world.judge[base], users=users, items=items)
    elif world.judge is not None and world.is_listed is not None:
        is_recall = any(metric.startswith("Recall") for metric in p["metrics"])
        needed = world.is_candidate[base] if is_recall else sampled | world.is_listed[base]
        user, item = np.nonzero(needed)
        predicted = world.judge[base[user], item]
        if p["judge"] == "contains labels":
            predicted = np.where(sampled[user, item], world.labels[base[user], item], predicted)
        judged["judge"] = pl.DataFrame({"user": user, "item": item, "probability": predicted})
    if p["excluded"]:
        user, item = np.nonzero(~world.is_candidate[base])
        judged["exclude"] = pl.DataFrame({"user": user, "item": item})
    return tr.evaluate(
        model_scores(world, population, p, base, copies), rows, exposure=exposure, metrics=p["metrics"],
        estimators=p["estimators"], baseline="m0" if p["baseline"] else None, threads=1, **judged,
    )  # fmt: skip
