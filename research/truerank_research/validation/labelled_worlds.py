"""Environments of labelled pairs: complete labels of a population, and how a draw samples and evaluates them."""

from __future__ import annotations

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
    true_values,
    user_values,
)


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
